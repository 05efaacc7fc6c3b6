"""Connections that nobody uses: they are closed after a while, and the oldest at once when there are too many.

uvicorn waits without limit for the head of a request. A program that opens connections and leaves them, or sends a
byte a minute, or never reads its answer, would take all there are.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_HEAD = 65536  # bytes
_LARGEST_REST = 4 << 20  # bytes of a refused body that are thrown away, so that its sender comes to read the answer


class _Together:
    """A connection that sends what is written to it in one turn of the event loop at once, as head and body are."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._parts = transport, loop, list[bytes]()

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def flush(self) -> None:
        data = b"".join(self._parts)
        self._parts.clear()
        if not self._transport.is_closing():
            self._transport.write(data)


def protocol(*, max_connections: int, header_timeout_s: float, stall_timeout_s: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with these limits."""
    waiting: dict[Connection, None] = {}  # those without a request under way, the one that waits longest first

    class Connection(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None  # while the client does not read
        _is_in_head = False
        _n_bytes = 0  # since the head or the answer

        def connection_made(self, transport: Any) -> None:
            super().connection_made(_Together(transport, self.loop))  # type: ignore[arg-type]
            self._wait()
            if len(self.connections) > max_connections:
                oldest = next(iter(waiting))  # ourselves, if all others are at work
                oldest._wait_no_longer()
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait_no_longer()
            self._no_longer_stalled()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.transport.is_closing():
                return
            if self._is_at_work():
                self._wait_no_longer()
                return
            self._wait()
            self._n_bytes += len(data)
            if self._n_bytes > (_LARGEST_HEAD if self._is_in_head else _LARGEST_REST):
                self.transport.abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._is_in_head, self._n_bytes = True, 0

        def on_headers_complete(self) -> None:
            super().on_headers_complete()
            self._is_in_head = False

        def on_response_complete(self) -> None:
            self.transport.flush()  # type: ignore[attr-defined]  # before it counts as idle, and may have to make room
            super().on_response_complete()
            if not self.transport.is_closing() and not self._is_at_work():
                waiting[self] = None
                self._n_bytes = 0

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(stall_timeout_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._no_longer_stalled()

        def _no_longer_stalled(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

        def _is_at_work(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait(self) -> None:
            """Begins to count the time until a request is there, unless it is being counted."""
            waiting[self] = None
            if self._timer is None:
                self._timer = self.loop.call_later(header_timeout_s, self.transport.abort)

        def _wait_no_longer(self) -> None:
            waiting.pop(self, None)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Connection
