"""What travels on a connection, and when."""

from __future__ import annotations

import json
from pathlib import Path

from tame_server import tame_server

BODY = json.dumps({"q": "guten Tag", "source": "en", "target": "de"}).encode()
HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(BODY)


def test_head_and_body_of_an_answer_arrive_together(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        connection = server.connect()
        for _ in range(5):
            connection.sendall(HEAD + b"\r\n" + BODY)
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b'{"translatedText":"GUTEN TAG"}')


def test_a_client_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        connection = server.connect()
        connection.sendall(HEAD + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert b"GUTEN TAG" in connection.recv(65536)


def test_a_head_without_a_body_arrives_too(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        connection = server.connect()
        connection.sendall(b"HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 405")
        assert connection.recv(1) == b""
