"""Clients that ask one thing after another, each on a connection of its own, and note every answer.

They share the cores with the server that they measure. So questions are put into bytes before the clock starts, and an
answer is compared as it came: a client costs a few hundredths of a millisecond for each.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

_RETRY_AFTER_S = 1.0  # as a refusal says


@dataclass
class Account:
    """What the clients saw."""

    seconds: float = 0.0
    latencies_s: list[float] = field(default_factory=list)  # of what was answered with 200
    refusals_s: list[float] = field(default_factory=list)  # of what was refused with 503
    other: list[int] = field(default_factory=list)  # any other status
    n_wrong: int = 0  # answers that are not those expected
    n_reconnected: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)

    def add(self, other: Account) -> None:
        """Takes over what was seen at another time."""
        self.seconds += other.seconds
        self.latencies_s += other.latencies_s
        self.refusals_s += other.refusals_s
        self.other += other.other
        self.n_wrong += other.n_wrong
        self.n_reconnected += other.n_reconnected

    def per_s(self) -> float:
        return len(self.latencies_s) / self.seconds

    def ms(self, share: float, of: Sequence[float] | None = None) -> float:
        """The latency that this share of the answers did not exceed."""
        values = sorted(self.latencies_s if of is None else of)
        return 1000 * values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def _question(text: str) -> bytes:
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    head = f"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Client(asyncio.Protocol):
    """Asks until `until`, or through its texts `once`; every `step`-th text, from `number` on."""

    def __init__(
        self, account: Account, texts: Sequence[str], questions: Sequence[bytes], expected: dict[str, bytes] | None, *,
        number: int, step: int, until: float, once: bool,
    ) -> None:  # fmt: skip
        self._account, self._texts, self._questions, self._expected = account, texts, questions, expected
        self._turn, self._step, self._until, self._once = number, step, until, once
        self._came, self._asked = b"", 0.0
        self._loop = asyncio.get_running_loop()
        self.ended = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._asked:
            self._asked = time.perf_counter()
        self._transport.write(self._questions[self._turn % len(self._questions)])

    def connection_lost(self, error: Exception | None) -> None:
        """One that was idle may be closed by the server: the question is asked again on a new one."""
        if self.ended.done():
            return
        self._account.n_reconnected += 1
        self._came = b""
        self._task = self._loop.create_task(self.connect(self._transport.get_extra_info("peername")[1]))

    async def connect(self, port: int) -> None:
        try:
            await self._loop.create_connection(lambda: self, "127.0.0.1", port)
        except OSError as error:
            self.ended.set_exception(error)

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, _, body = self._came.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if not length or len(body) < int(length):
            return
        now = time.perf_counter()
        self._came = b""
        self._note(int(head[9:12]), body, now - self._asked)

    def _note(self, status: int, body: bytes, took_s: float) -> None:
        account, text = self._account, self._texts[self._turn % len(self._texts)]
        self._turn += self._step
        if status == 200:
            account.latencies_s.append(took_s)
            account.answers[text] = body
            account.n_wrong += self._expected is not None and self._expected[text] != body
        elif status == 503:
            account.refusals_s.append(took_s)
            self._loop.call_later(_RETRY_AFTER_S, self._ask)
            return
        else:
            account.other.append(status)
        self._ask()

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        if self._asked >= self._until or (self._once and self._turn >= len(self._texts)):
            self.ended.set_result(None)
            self._transport.close()
        elif not self._transport.is_closing():  # else it is asked on the next connection
            self._transport.write(self._questions[self._turn % len(self._questions)])


async def clients(
    port: int,
    texts: Sequence[str],
    *,
    n: int,
    seconds: float,
    expected: dict[str, bytes] | None = None,
    once: bool = False,
) -> Account:
    """`n` clients at once, for a time, or through the texts `once`; answers are compared with those expected."""
    account, questions = Account(), [_question(text) for text in texts]
    began = time.perf_counter()
    everyone = [
        _Client(account, texts, questions, expected, number=number, step=n, until=began + seconds, once=once)
        for number in range(n)
    ]
    await asyncio.gather(*(client.connect(port) for client in everyone))
    await asyncio.gather(*(client.ended for client in everyone))
    account.seconds = time.perf_counter() - began
    return account
