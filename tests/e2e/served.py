"""A server in a process of its own, as users start it, and the least that is needed to talk to it."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from small_run import DRAGOMAN, ENVIRONMENT

_START_S = 120


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, url: str) -> None:
        self.process, self._log, self.url = process, log, url
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, **fields: Any) -> Answer:
        """A request with a JSON body."""
        return self.ask("POST", path, json.dumps(fields), {"Content-Type": "application/json"})

    def send_file(self, name: str, content: bytes, **fields: str) -> Answer:
        """A file in a form, as browsers send it."""
        edge = "edge-of-the-form"
        parts = [
            f'--{edge}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()
        ]
        parts.append(f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode())
        body = b"".join([*parts, content, f"\r\n--{edge}--\r\n".encode()])
        return self.ask("POST", "/translate_file", body, {"Content-Type": f"multipart/form-data; boundary={edge}"})

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def stop(self) -> int:
        """Ends it as a service manager does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def served(run: Path, folder: Path, *flags: str, model: str = "en-de") -> Iterator[Server]:
    """A server of the model in a run folder; its log and its files are in `folder`."""
    log = folder / f"serve-{time.monotonic_ns()}.log"
    with log.open("wb") as err:
        process = subprocess.Popen(
            [*DRAGOMAN, "serve", "--model", f"{model}={run}", "--port", "0", "--files", str(folder / "files"), *flags],
            stderr=err, stdout=subprocess.DEVNULL, env=ENVIRONMENT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + _START_S
        while not (found := re.search(r" at (http://\S+)\n", log.read_text(encoding="utf-8"))):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield Server(process, log, found[1])
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
