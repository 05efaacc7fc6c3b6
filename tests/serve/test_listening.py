"""The socket of the server."""

from __future__ import annotations

import socket

from dragoman.serve.server import listening


def test_answers_do_not_wait_to_be_confirmed() -> None:
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
