"""A translator in a process of its own: the server's event loop never waits for its interpreter, nor it for the loop's.

A socket connects the two. Questions have numbers, and are answered in whatever order they are done. When the server
ends, however that may be, the socket is closed, and so the other process ends; when the other ends by itself, what was
asked of it fails, and the server stops.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import IO, Any

from dragoman.config import load_config
from dragoman.errors import DragomanError, ModelError
from dragoman.memory import keep_freed_memory, search_garbage_seldom
from dragoman.serve.messages import answer, question, read_answer, read_question, read_refusal, refusal
from dragoman.translator import Translation, Translator

_HEAD = struct.Struct("<IIB")  # bytes that follow, number of the question, kind
_TRANSLATE, _EXPLAIN = 0, 1  # kinds of questions
_DONE, _REFUSED, _FAILED = 0, 1, 2  # kinds of answers
_BUFFER = 1 << 20
# Modules are looked for where the server finds them, which is not the working directory. Its standard input is the
# socket. Signals that a terminal or a service sends to every process are for the server.
_START = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.path[:] = {path!r}
from {module} import work
work()
"""

Explain = Callable[[Translator, str, str | None, tuple[str, ...]], Mapping[str, Any]]


class TranslatorFailedError(Exception):
    """A translator failed; its own line in the log says how."""


class RemoteTranslator:
    """A translator in another process, as the server sees it."""

    def __init__(self, folder: Path, work: str, *, n_at_a_time: int, **options: Any) -> None:
        """Starts the process; `options` are those of `dragoman.load`.

        `work` is the module whose function of that name calls `work_for_server` there.
        """
        self.config = load_config(folder)
        self.has_ended = False
        self._folder = folder
        self._socket, theirs = socket.socketpair()
        with theirs:
            start = _START.format(path=sys.path, module=work)
            self._process = subprocess.Popen([sys.executable, "-c", start], stdin=theirs.fileno())
        settings = {"folder": str(folder), "n_at_a_time": n_at_a_time, "options": options}
        self._socket.sendall(_framed(json.dumps(settings).encode()))
        self._numbers, self._asked = count(), dict[int, asyncio.Future[tuple[int, bytes]]]()

    def wait(self) -> None:
        """Until the model is loaded; raises if it cannot be."""
        with self._socket.makefile("rb") as file:
            _, kind, payload = _read(file) or (0, _FAILED, b"")
        if kind != _DONE:
            self._socket.close()
            self._process.wait()
            raise read_refusal(payload) if kind == _REFUSED else self.ended()
        about = json.loads(payload)
        self.engine: str = about["engine"]
        self.n_at_once: int = about["n_at_once"]
        self.n_subwords: int = about["n_subwords"]

    async def connect(self) -> None:
        """From now on it belongs to this event loop."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=_BUFFER)
        self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Waits for what it is working on."""
        self._listening.cancel()
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        await asyncio.to_thread(self._process.wait)

    async def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        """As `Translator.translate`."""
        return read_answer(await self._ask(_TRANSLATE, question(sentences, options)))

    async def explain(self, text: str, target: str | None, off_heads: Sequence[str]) -> bytes:
        """The JSON of what an explanation says."""
        return await self._ask(_EXPLAIN, json.dumps([text, target, off_heads]).encode())

    async def _ask(self, kind: int, payload: bytes) -> bytes:
        if self.has_ended:
            raise TranslatorFailedError
        number, answered = next(self._numbers) % (1 << 32), asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        self._writer.write(_framed(payload, number, kind))
        try:
            kind, told = await answered
        finally:
            del self._asked[number]
        if kind == _REFUSED:
            raise read_refusal(told)
        if kind == _FAILED:
            raise TranslatorFailedError
        return told

    async def _listen(self) -> None:
        try:
            while True:
                n_bytes, number, kind = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                payload = await self._reader.readexactly(n_bytes)
                if number in self._asked and not self._asked[number].done():  # else nobody waits for it any more
                    self._asked[number].set_result((kind, payload))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.has_ended = True
            for answered in self._asked.values():
                if not answered.done():
                    answered.set_exception(TranslatorFailedError())
            signal.raise_signal(signal.SIGTERM)  # a server without its model had better be started anew

    def ended(self) -> ModelError:
        """What to say when it has ended by itself."""
        return ModelError(
            f"the process of {self._folder} ended by itself, with code {self._process.wait()}",
            hint="is the memory exhausted? start the server again",
        )


def work_for_server(load: Callable[..., Translator], explain: Explain) -> None:
    """What the other process does: loads the model, then answers questions, until there is nobody to ask any."""
    keep_freed_memory()
    channel = socket.socket(fileno=sys.stdin.fileno())
    with suppress(ConnectionError), channel.makefile("rb") as file:
        frame = _read(file)
        if frame is None:
            return
        settings = json.loads(frame[2])
        try:
            translator = load(settings["folder"], **settings["options"])
        except DragomanError as error:
            channel.sendall(_framed(refusal(error), kind=_REFUSED))
            return
        about = {
            "engine": type(translator.engine).__name__.removesuffix("Engine").lower(),
            "n_at_once": translator.engine.n_at_once,
            "n_subwords": translator.subwords.vocab_size,
        }
        channel.sendall(_framed(json.dumps(about).encode()))
        search_garbage_seldom()
        sending = Lock()

        def reply(number: int, kind: int, payload: bytes) -> None:
            kind, told = _replied(translator, explain, kind, payload)
            with suppress(ConnectionError), sending:  # the server may have ended
                channel.sendall(_framed(told, number, kind))

        with ThreadPoolExecutor(settings["n_at_a_time"]) as pool:
            while (frame := _read(file)) is not None:
                pool.submit(reply, *frame)


def _replied(translator: Translator, explain: Explain, kind: int, payload: bytes) -> tuple[int, bytes]:
    """The kind of the answer, and the answer."""
    try:
        if kind == _EXPLAIN:
            text, target, off_heads = json.loads(payload)
            return _DONE, json.dumps(explain(translator, text, target, tuple(off_heads))).encode()
        sentences, options = read_question(payload)
        return _DONE, answer(translator.translate(sentences, **options))
    except DragomanError as error:
        return _REFUSED, refusal(error)
    except Exception as error:
        # Not its message, which might have users' text in it.
        places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)][-8:]
        print(json.dumps({"failure": type(error).__name__, "at": places}), file=sys.stderr, flush=True)
        return _FAILED, b""


def _framed(payload: bytes, number: int = 0, kind: int = 0) -> bytes:
    return _HEAD.pack(len(payload), number, kind) + payload


def _read(file: IO[bytes]) -> tuple[int, int, bytes] | None:
    """Number, kind and payload of the next message; None at the end."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    n_bytes, number, kind = _HEAD.unpack(head)
    payload = file.read(n_bytes)
    return (number, kind, payload) if len(payload) == n_bytes else None
