"""Clients that mean harm, all at once, while a good one goes on asking."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.serve_load.clients import Account, clients
from benchmarks.serve_load.server import Server

_MB = 1 << 20


async def attack(server: Server, texts: Sequence[str], expected: dict[str, bytes], n_left: int) -> dict[str, Any]:
    """What the good client and the memory of the server were like, before and during each attack."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report: dict[str, Any] = {}
    attacks = {
        "nobody": _nobody(),
        "200 slow senders": _slow(server.port, 200),
        "bodies of a gigabyte, said and unsaid": _gigabytes(server.port),
        "200 deep JSON bodies": _deep(server.port, 200),
        f"{n_left} connections left open": _left(server.port, min(n_left, hard - 500)),
    }
    for name, work in attacks.items():
        task = asyncio.ensure_future(work)
        peak, accounts, began = 0.0, list[Account](), time.monotonic()
        while not task.done() or time.monotonic() - began < 5:
            accounts.append(await clients(server.port, texts[:20], n=1, seconds=60, expected=expected, once=True))
            peak = max(peak, server.rss_mb())
        good = Account(latencies_s=[s for account in accounts for s in account.latencies_s])
        report[name] = {
            "answered": len(good.latencies_s),
            "wrong or refused": sum(a.n_wrong + len(a.refusals_s) + len(a.other) for a in accounts),
            "reconnected": sum(account.n_reconnected for account in accounts),
            "p99_ms": round(good.ms(0.99), 1),
            "peak_mb": round(peak),
            "saw": task.result(),
        }
    return report


async def _nobody() -> str:
    await asyncio.sleep(5)
    return ""


async def _slow(port: int, n: int) -> str:
    """A byte at a time, until the server has had enough."""

    async def one(at_once: bytes, slowly: bytes) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(at_once)
        try:
            for byte in slowly:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.5)
                if reader.at_eof():
                    break
            answer = await reader.read(12)
        except ConnectionError:
            answer = b""
        writer.close()
        return answer[9:12].decode() or "closed"

    head = b"POST /translate HTTP/1.1\r\nContent-Length: 500\r\n"
    slow = [(head, b"X: " + b"x" * 500), (head + b"\r\n", b"x" * 500)]  # a head that does not end, and a body
    found = await asyncio.gather(*(one(*slow[i % 2]) for i in range(n)))
    return ", ".join(f"{found.count(one)} {one}" for one in sorted(set(found)))


async def _gigabytes(port: int) -> str:
    async def one(head: bytes, before: bytes, after: bytes) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /translate HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
        n_sent = 0
        try:
            for _ in range(1024):
                writer.write(before + b"x" * _MB + after)
                await writer.drain()
                n_sent += 1
        except ConnectionError:
            pass
        try:
            answer = await asyncio.wait_for(reader.read(12), 15)
        except (ConnectionError, asyncio.TimeoutError):
            answer = b""
        writer.close()
        return f"{answer[9:12].decode() or 'closed'} ({n_sent} MB sent)"

    said = one(b"Content-Length: 1073741824", b"", b"")
    unsaid = one(b"Transfer-Encoding: chunked", f"{_MB:x}\r\n".encode(), b"\r\n")
    return ", ".join(await asyncio.gather(said, unsaid))


async def _deep(port: int, n: int) -> str:
    async def one() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b"[" * 500_000
        head = f"POST /translate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        answer = await reader.read(12)
        writer.close()
        return answer[9:12].decode()

    found = await asyncio.gather(*(one() for _ in range(n)))
    return ", ".join(f"{found.count(one)} × {one}" for one in sorted(set(found)))


async def _left(port: int, n: int) -> str:
    opened = []
    for start in range(0, n, 200):
        opened += await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", port) for _ in range(start, min(n, start + 200))),
            return_exceptions=True,
        )
    streams = [one for one in opened if isinstance(one, tuple)]
    await asyncio.sleep(15)
    n_closed = sum(reader.at_eof() or reader.exception() is not None for reader, _ in streams)
    for _, writer in streams:
        writer.close()
    return f"{len(streams)} opened, {n_closed} closed by the server after 15 s"
