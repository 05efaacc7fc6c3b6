"""Clients that ask one thing after another, each on a connection of its own, and note every answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Account:
    """What the clients saw."""

    seconds: float = 0.0
    latencies_s: list[float] = field(default_factory=list)  # of what was answered with 200
    refusals_s: list[float] = field(default_factory=list)  # of what was refused with 503
    other: list[int] = field(default_factory=list)  # any other status
    n_wrong: int = 0  # answers that are not those expected
    n_reconnected: int = 0
    answers: dict[str, str] = field(default_factory=dict)

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


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: str) -> tuple[int, dict[str, object]]:
    """One question on an open connection."""
    body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
    head = f"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    return int(answer.split()[1]), json.loads(await reader.readexactly(length))


async def clients(
    port: int,
    texts: Sequence[str],
    *,
    n: int,
    seconds: float,
    expected: dict[str, str] | None = None,
    once: bool = False,
) -> Account:
    """`n` clients at once, for a time, or through the texts `once`; answers are compared with those expected."""
    account, began = Account(), time.perf_counter()

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number
        while time.perf_counter() - began < seconds and not (once and turn >= len(texts)):
            text = texts[turn % len(texts)]
            turn += n
            asked = time.perf_counter()
            try:
                status, answer = await ask(reader, writer, text)
            except (ConnectionError, asyncio.IncompleteReadError):  # closed, as a connection may be that was idle
                account.n_reconnected += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                status, answer = await ask(reader, writer, text)
            took = time.perf_counter() - asked
            if status == 200:
                found = str(answer["translatedText"])
                account.latencies_s.append(took)
                account.answers[text] = found
                account.n_wrong += expected is not None and expected[text] != found
            elif status == 503:
                account.refusals_s.append(took)
                await asyncio.sleep(1)  # as the answer's Retry-After says
            else:
                account.other.append(status)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(n)))
    account.seconds = time.perf_counter() - began
    return account
