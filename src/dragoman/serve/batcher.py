"""Requests translated together as they arrive: while the model works on some, others gather.

Nothing waits for company: an idle worker takes what is there. While all compute, some more may read a batch ahead of
time if it is worth it, so that none of the former is idle at its end. A request with many sentences does not hold up
the others, because each batch takes some of every request in turn. All of this runs in one event loop; only the model's
own work is done in threads.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from dragoman.translator import Translation, Translator

_SHARE = 8  # sentences of one request, before the next request has its turn
_WORTH_READING = 16  # sentences: fewer had better gather until a worker is idle


class QueueFullError(Exception):
    """There are too many sentences waiting: the request was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The options of `Translator.translate` whose requests can be translated together, if they are equal."""

    beam: int | None = None
    length_penalty: float | None = None
    nbest: int = 1
    no_repeat_ngram: int = 0
    token_log_probs: bool = False


@dataclass(slots=True, eq=False)
class _Job:
    """The sentences of one request."""

    sentences: Sequence[str]
    search: Search
    done: asyncio.Future[list[Translation]]
    results: list[Translation | None] = field(default_factory=list)
    n_taken: int = 0
    n_left: int = 0

    @property
    def n_waiting(self) -> int:
        return len(self.sentences) - self.n_taken


class Batcher:
    """The model, its workers, and the sentences that wait for them."""

    def __init__(
        self,
        translator: Translator,
        *,
        n_workers: int,
        n_ahead: int = 0,
        max_batch: int,
        max_queue: int,
        observe: Callable[[int, float], None] = lambda n_sentences, seconds: None,
    ) -> None:
        """`n_workers` batches are computed at a time, and `n_ahead` more may be read and wait inside the translator.

        `observe` is told of each batch: how many sentences, and how long it took.
        """
        self._translator, self._max_batch, self._max_queue, self._observe = translator, max_batch, max_queue, observe
        self._pool = ThreadPoolExecutor(n_workers + n_ahead, thread_name_prefix="translate")
        self._n_idle, self._n_ahead = n_workers, n_ahead
        self._jobs: deque[_Job] = deque()
        self._is_due = False
        self.n_waiting = 0

    async def translate(self, sentences: Sequence[str], search: Search) -> list[Translation]:
        """The translations, in order. If the caller is cancelled, what has not begun is dropped."""
        if not sentences:
            return []
        if self.n_waiting and self.n_waiting + len(sentences) > self._max_queue:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        job = _Job(sentences, search, loop.create_future(), [None] * len(sentences), n_left=len(sentences))
        self._jobs.append(job)
        self.n_waiting += len(sentences)
        self._schedule(loop)
        try:
            return await job.done
        finally:
            if job.n_waiting:
                self.n_waiting -= job.n_waiting
                self._jobs.remove(job)

    def close(self) -> None:
        """Waits for the workers."""
        self._pool.shutdown()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work is given out once all requests that have arrived by now are in the queue."""
        if not self._is_due:
            self._is_due = True
            loop.call_soon(self._give_out, loop)

    def _give_out(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_due = False
        while self._jobs and self._has_room():
            search, batch = self._take(-(-self.n_waiting // max(1, self._n_idle)))
            self._n_idle -= 1
            work = loop.run_in_executor(self._pool, self._work, [job.sentences[i] for job, i in batch], search)
            work.add_done_callback(lambda ended, batch=batch: self._finish(loop, batch, ended))  # type: ignore[misc]

    def _has_room(self) -> bool:
        return self._n_idle > 0 or (self._n_idle > -self._n_ahead and self.n_waiting >= _WORTH_READING)

    def _take(self, n_share: int) -> tuple[Search, list[tuple[_Job, int]]]:
        """Sentences of the oldest request and of others that are searched for in the same way."""
        search, batch, passed = self._jobs[0].search, list[tuple[_Job, int]](), list[_Job]()
        room = min(self._max_batch, max(_SHARE, n_share))
        while self._jobs and len(batch) < room:
            job = self._jobs.popleft()
            if job.search != search:
                passed.append(job)
                continue
            n = min(_SHARE, room - len(batch), job.n_waiting)
            batch += [(job, i) for i in range(job.n_taken, job.n_taken + n)]
            job.n_taken += n
            if job.n_waiting:
                self._jobs.append(job)
        self._jobs.extendleft(reversed(passed))
        self.n_waiting -= len(batch)
        return search, batch

    def _work(self, sentences: list[str], search: Search) -> list[Translation]:
        began = time.monotonic()
        found = self._translator.translate(sentences, **asdict(search))
        self._observe(len(sentences), time.monotonic() - began)
        return found

    def _finish(
        self, loop: asyncio.AbstractEventLoop, batch: list[tuple[_Job, int]], ended: asyncio.Future[Any]
    ) -> None:
        self._n_idle += 1
        error = ended.exception()
        for row, (job, i) in enumerate(batch):
            if job.done.done():  # cancelled, or failed in another batch
                continue
            if error is not None:
                job.done.set_exception(error)
                continue
            job.results[i] = ended.result()[row]
            job.n_left -= 1
            if job.n_left == 0:
                job.done.set_result(job.results)  # type: ignore[arg-type]
        if self._jobs:
            self._give_out(loop)
