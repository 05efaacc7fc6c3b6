"""Requests translated together as they arrive: while the model works on some, others gather.

Nothing waits for company: an idle worker takes what is there. While all compute, some more may read a batch ahead of
time if it is worth it, so that none of the former is idle at its end. A request with many sentences does not hold up
the others, because each batch takes some of every request in turn. All of this runs in one event loop; the model works
in a process of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field

from dragoman.translator import Translation

_SHARE = 8  # sentences of one request, before the next request has its turn
_WORTH_READING = 16  # sentences: fewer had better gather until a worker is idle

Translate = Callable[..., Awaitable[list[Translation]]]  # sentences, and the options of `Translator.translate`


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
        translate: Translate,
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
        self._translate, self._max_batch, self._max_queue, self._observe = translate, max_batch, max_queue, observe
        self._under_way: set[asyncio.Task[None]] = set()
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

    async def close(self) -> None:
        """Waits for the workers."""
        await asyncio.gather(*self._under_way)

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
            task = loop.create_task(self._work(loop, batch, search))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

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

    async def _work(self, loop: asyncio.AbstractEventLoop, batch: list[tuple[_Job, int]], search: Search) -> None:
        began = time.monotonic()
        try:
            found = await self._translate([job.sentences[i] for job, i in batch], **asdict(search))
        except Exception as error:
            self._fail(batch, error)
        else:
            self._finish(batch, found)
            self._observe(len(batch), time.monotonic() - began)
        self._n_idle += 1
        if self._jobs:
            self._give_out(loop)

    def _fail(self, batch: list[tuple[_Job, int]], error: Exception) -> None:
        for job, _ in batch:
            if not job.done.done():
                job.done.set_exception(error)

    def _finish(self, batch: list[tuple[_Job, int]], found: list[Translation]) -> None:
        for (job, i), translation in zip(batch, found, strict=True):
            if job.done.done():  # cancelled, or failed in another batch
                continue
            job.results[i] = translation
            job.n_left -= 1
            if job.n_left == 0:
                job.done.set_result(job.results)  # type: ignore[arg-type]
