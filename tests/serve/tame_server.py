"""A server in a thread of the test, with a translator that obeys: it waits when told to, and says what it was given."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dragoman.serve.app import make_app
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.server import listening, make_server
from dragoman.serve.service import Service
from dragoman.translator import Translation


class TameTranslator:
    """Translates by capital letters, once it may go on."""

    def __init__(self) -> None:
        self.n_at_once = 1
        self.config = SimpleNamespace(search=SimpleNamespace(beam=4))
        self.calls: list[list[str]] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    async def connect(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        return await asyncio.to_thread(self._translate, sentences)

    def _translate(self, sentences: Sequence[str]) -> list[Translation]:
        self.calls.append(list(sentences))
        assert self.may_go_on.wait(60)
        if "fail" in sentences:
            raise RuntimeError("told to fail")
        return [Translation(text=text.upper(), score=0.0, log_prob=0.0, tokens=()) for text in sentences]


class TameServer:
    """The server, and what is inside it."""

    def __init__(self, port: int, translator: TameTranslator, service: Service, uvicorn: Any) -> None:
        self.port, self.translator, self.service, self.uvicorn = port, translator, service, uvicorn
        self.connections: list[socket.socket] = []

    @property
    def n_connections(self) -> int:
        return len(self.uvicorn.server_state.connections)

    def connect(self) -> socket.socket:
        self.connections.append(socket.create_connection(("127.0.0.1", self.port), timeout=30))
        return self.connections[-1]

    def send(self, body: bytes, path: str = "/translate") -> socket.socket:
        """A request on its way."""
        connection = self.connect()
        head = f"POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        return connection

    def ask(self, text: str) -> socket.socket:
        return self.send(b'{"q": "%s", "source": "en", "target": "de"}' % text.encode())

    def answer(self, text: str) -> bytes:
        """Asks and waits for the answer."""
        return received(self.ask(text))


def received(connection: socket.socket) -> bytes:
    """The head and the body of an answer."""
    with connection, connection.makefile("rb") as file:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = file.readline()
            if not line:
                return head
            head += line
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return head + file.read(length)


def wait_until(holds: Any) -> None:
    """Looks again and again; a test that waits in vain fails."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def tame_server(folder: Path, **limits: Any) -> Iterator[TameServer]:
    translator, given = TameTranslator(), Limits(**limits)
    service = Service([("en", "de", folder, translator)], limits=given, metrics=Metrics())  # type: ignore[list-item]
    server = make_server(make_app(service, files=folder / "files"), given)
    listener = listening("127.0.0.1", 0)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    tame = TameServer(listener.getsockname()[1], translator, service, server)
    try:
        yield tame
    finally:
        for connection in tame.connections:
            connection.close()
        translator.may_go_on.set()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()
