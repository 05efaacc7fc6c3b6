"""What stands before every request: sizes, times, clients that go away, and the account of it all.

A body is counted while it arrives and refused as soon as it is too large. A request whose client has gone is given up,
which frees its place in the queue. Nothing of the users' text is written down: a log line has the path (not what stands
after the question mark), the status and the time.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusals import Refusal

_log = logging.getLogger("dragoman.serve")
_UPLOADS, _DOWNLOADS = "/translate_file", "/download_file/"
_CLIENT_GONE = 499  # for the log; nobody is there to be told


class ClientGoneError(Exception):
    """Nobody is there to be answered."""


class Gate:
    """The application behind its limits."""

    def __init__(self, app: ASGIApp, *, limits: Limits, metrics: Metrics) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._n_held_bytes = 0
        self._paths: set[str] = set()
        self.n_under_way = 0

    def knows(self, paths: set[str]) -> None:
        """Paths that are counted each by itself; strangers' inventions are counted together."""
        self._paths |= paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self.n_under_way += 1
        exchange = _Exchange(scope, send)
        try:
            await self._answer(exchange, scope, receive)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except ClientGoneError:
            exchange.status = exchange.status or _CLIENT_GONE
        except Exception as error:
            exchange.failure = error
            await exchange.refuse(Refusal(500, "the server failed; its log says more"))
        finally:
            self.n_under_way -= 1
            self._account(exchange)

    async def _answer(self, exchange: _Exchange, scope: Scope, receive: Receive) -> None:
        """Receives the body and lets the application answer, until time is up or the client has gone."""
        limits, has_body = self._limits, scope["method"] not in ("GET", "HEAD")
        is_upload = scope["path"] == _UPLOADS
        is_file = is_upload or scope["path"].startswith(_DOWNLOADS)
        timeout_s = limits.file_timeout_s if is_file else limits.timeout_s
        loop, end = asyncio.get_running_loop(), _End(exchange)
        slow = Refusal(408, f"the request took longer than {limits.body_timeout_s:g} s to arrive")
        late = Refusal(504, f"the request took longer than {timeout_s:g} s")
        timer, watcher = loop.call_later(limits.body_timeout_s, end.give_up, slow), None
        body = bytearray()
        try:
            if has_body:
                # With a file come the other fields of its form.
                most = limits.max_file_bytes + 65536 if is_upload else limits.max_body_bytes
                await self._receive(body, scope, receive, most)
                watcher = loop.create_task(_watch(receive, end))
                receive = _replay(bytes(body))
            timer.cancel()
            timer = loop.call_later(timeout_s, end.give_up, late)
            await self._app(scope, receive, exchange.send)
        except asyncio.CancelledError:
            if end.why is None:
                raise
            end.undo()
            raise end.why from None
        finally:
            timer.cancel()
            if watcher is not None:
                watcher.cancel()
            self._n_held_bytes -= len(body)

    async def _receive(self, body: bytearray, scope: Scope, receive: Receive, most: int) -> None:
        """Adds what arrives to the body, and to the account of all bodies."""
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        too_large = Refusal(413, f"the request is larger than {most:,} bytes")
        if said.isdigit() and int(said) > most:
            raise too_large
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > most:
                raise too_large
            if self._n_held_bytes + len(chunk) > self._limits.max_held_bytes:
                raise Refusal(503, "the server holds too many requests", retry_after_s=1)
            body += chunk
            self._n_held_bytes += len(chunk)
            if not message.get("more_body", False):
                return

    def _account(self, exchange: _Exchange) -> None:
        seconds = time.monotonic() - exchange.began
        path = exchange.path if exchange.path in self._paths else "other"
        if exchange.path.startswith(_DOWNLOADS):
            path = "/download_file"
        self._metrics.requests(path, exchange.status).inc()
        self._metrics.seconds(path).observe(seconds)
        record: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "method": exchange.method,
            "path": path,
            "status": exchange.status,
            "ms": round(1000 * seconds, 1),
            **exchange.notes,
        }
        level = logging.INFO
        if exchange.failure is not None:
            # Not its message, which might have users' text in it.
            record["failure"] = type(exchange.failure).__name__
            record["at"] = [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(exchange.failure.__traceback__)][
                -8:
            ]
            level = logging.ERROR
        if _log.isEnabledFor(level):
            _log.log(level, "%s", json.dumps(record))


class _End:
    """The end of a request before its time, if it comes: its task is cancelled, and why is kept here."""

    def __init__(self, exchange: _Exchange) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._exchange = task, exchange
        self.why: Refusal | ClientGoneError | None = None

    def give_up(self, why: Refusal | ClientGoneError) -> None:
        if self.why is None and not self._exchange.is_complete:
            self.why = why
            self._task.cancel()

    def undo(self) -> None:
        """The task goes on, to say why."""
        if hasattr(self._task, "uncancel"):  # from Python 3.11 on
            self._task.uncancel()


async def _watch(receive: Receive, end: _End) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    end.give_up(ClientGoneError())


def _replay(body: bytes) -> Receive:
    """A body that has been received, for those who expect to receive it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()  # whether the client goes away is seen to elsewhere
        return messages.pop()

    return receive


class _Exchange:
    """A request, and what has been answered so far."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.began = time.monotonic()
        self.status = 0
        self.is_complete = False
        self.failure: Exception | None = None
        self.notes: dict[str, Any] = scope.setdefault("state", {}).setdefault("notes", {})
        self._scope, self._send = scope, send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.is_complete = True
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Answers with the refusal, unless an answer has begun; then the connection is cut by what goes on above."""
        if self.status:
            return

        async def nothing() -> Message:
            return {"type": "http.disconnect"}

        await refusal.response()(self._scope, nothing, self.send)
