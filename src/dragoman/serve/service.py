"""The models, and texts of every kind through them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dragoman.engines.engine import n_cores
from dragoman.serve.batcher import Batcher, QueueFullError, Search
from dragoman.serve.documents import Document
from dragoman.serve.keys import ApiKeys, Rate
from dragoman.serve.languages import Detector
from dragoman.serve.limits import Limits
from dragoman.serve.markup import Markup
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusals import Refusal
from dragoman.serve.remote import RemoteTranslator
from dragoman.translator import Translation

T = TypeVar("T")
_SHORT = 15  # characters; a single word is often taken for another language
_CHUNK = 64  # sentences of a file that wait in the queue at a time
_PATIENCE_S = 0.05  # until a file tries again to get into a full queue
_MOST_ALONE = 16  # requests that wait to be worked on alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A translator from one language to another, as the server holds it."""

    src: str
    tgt: str
    folder: Path
    translator: RemoteTranslator
    batcher: Batcher

    @property
    def name(self) -> str:
        return f"{self.src}-{self.tgt}"


class Service:
    """Everything the addresses of the server have in common."""

    def __init__(
        self,
        models: Sequence[tuple[str, str, Path, RemoteTranslator]],
        *,
        limits: Limits,
        metrics: Metrics,
        keys: ApiKeys | None = None,
        threads: int | None = None,
    ) -> None:
        """`models` are source and target language, folder and translator."""
        self.limits, self.metrics, self.keys = limits, metrics, keys
        self.rate = Rate(limits.requests_per_minute)
        self.models: dict[tuple[str, str], Model] = {}
        for src, tgt, folder, translator in models:
            n_workers = _n_workers(translator, threads)
            self.models[src, tgt] = Model(
                src=src, tgt=tgt, folder=folder, translator=translator,
                batcher=Batcher(
                    translator.translate,
                    n_workers=n_workers,
                    n_ahead=n_workers if translator.n_at_once > 1 else 0,
                    max_batch=limits.max_batch,
                    max_queue=limits.max_queue,
                    observe=self._observe(f"{src}-{tgt}"),
                ),
            )  # fmt: skip
        self.languages = list(dict.fromkeys(code for pair in self.models for code in pair))
        self.detector = Detector(self.languages)
        self._alone, self._n_alone = asyncio.Lock(), 0
        metrics.gauge("dragoman_queue_sentences", "Sentences waiting", lambda: self.n_waiting)

    @property
    def n_waiting(self) -> int:
        return sum(model.batcher.n_waiting for model in self.models.values())

    async def start(self) -> None:
        """In the event loop that it will be used in."""
        for model in self.models.values():
            await model.translator.connect()

    async def close(self) -> None:
        """Waits for work that is under way."""
        for model in self.models.values():
            await model.batcher.close()
            await model.translator.close()

    def model_for(self, src: str, tgt: str) -> Model:
        """The model between two languages, or a refusal."""
        for code in (src, tgt):
            if code not in self.languages:
                raise Refusal(400, f"{code} is not supported")
        if (src, tgt) not in self.models:
            raise Refusal(400, f"{tgt} is not available as a target language from {src}")
        return self.models[src, tgt]

    def detected(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The language of each text and how sure that is in percent; short ones are taken for what all are."""
        together = self.detector.ranked("\n".join(texts))
        if not together:
            if len({src for src, _ in self.models}) > 1:
                raise Refusal(400, "the languages of this server cannot be told apart: name the source")
            return [(next(iter(self.models))[0], 0.0)] * len(texts)
        return [(self.detector.ranked(text) if len(text) > _SHORT else together)[0] for text in texts]

    async def sentences(self, model: Model, sentences: Sequence[str], search: Search) -> list[Translation]:
        """Translations of sentences together with other requests', or a refusal if too many wait."""
        try:
            return await model.batcher.translate(sentences, search)
        except QueueFullError:
            raise Refusal(503, "too many requests are waiting", retry_after_s=1) from None

    async def texts(self, model: Model, texts: Sequence[str], style: str, nbest: int = 1) -> list[list[str]]:
        """Of each text or HTML its translation and up to `nbest` - 1 others, which have each sentence's next best."""
        documents = [_document(text, model.src, style) for text in texts]
        sentences = [sentence for document in documents for sentence in document.sentences]
        found = iter(await self.sentences(model, sentences, _search(model, nbest)))
        self._count(model, texts)
        return [_versions(document, [next(found) for _ in document.sentences], nbest) for document in documents]

    async def long_text(self, model: Model, text: str, style: str) -> str:
        """A translation of any length, some sentences at a time: it does not fill the queue, and is not refused."""
        document = await asyncio.to_thread(_document, text, model.src, style)
        found: list[Translation] = []
        while len(found) < len(document.sentences):
            chunk = document.sentences[len(found) : len(found) + _CHUNK]
            try:
                found += await model.batcher.translate(chunk, _search(model, 1))
            except QueueFullError:
                await asyncio.sleep(_PATIENCE_S)
        self._count(model, [text])
        return await asyncio.to_thread(document.filled, [one.text for one in found])

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """What cannot be shared (sampling, glossaries, attention), one such thing at a time."""
        if self._n_alone >= _MOST_ALONE:
            raise Refusal(503, "too many requests are waiting", retry_after_s=1)
        self._n_alone += 1
        try:
            async with self._alone:
                return await work()
        finally:
            self._n_alone -= 1

    def _count(self, model: Model, texts: Sequence[str]) -> None:
        self.metrics.chars.labels(model.name).inc(sum(map(len, texts)))

    def _observe(self, name: str) -> Callable[[int, float], None]:
        sizes, seconds = self.metrics.batch_sentences.labels(name), self.metrics.batch_seconds.labels(name)

        def observe(n_sentences: int, took_s: float) -> None:
            sizes.observe(n_sentences)
            seconds.observe(took_s)

        return observe


def _n_workers(translator: RemoteTranslator, threads: int | None) -> int:
    """As many as the engine has threads, if it can do several things at once."""
    if translator.n_at_once == 1:
        return 1
    return threads or max(n_cores(), translator.n_at_once)


def _document(text: str, language: str, style: str) -> Document | Markup:
    return Markup(text, language) if style == "html" else Document(text, language)


def _search(model: Model, nbest: int) -> Search:
    """No more than the beam has: a wider one might find another best translation."""
    return Search(nbest=min(nbest, model.translator.config.search.beam))


def _versions(document: Document | Markup, found: list[Translation], nbest: int) -> list[str]:
    lists = [[one.text, *(other.text for other in one.alternatives)] for one in found]
    n = min(nbest, max(map(len, lists), default=1))
    versions = [document.filled([texts[min(k, len(texts) - 1)] for texts in lists]) for k in range(n)]
    return list(dict.fromkeys(versions))
