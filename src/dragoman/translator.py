"""Composer for use: subwords and an engine (model and search) make a translator. Nothing here needs torch itself."""

# Letters: S source length, T target length, L layers, H heads.

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.checkpoint.folder import SUBWORDS
from dragoman.config import Config, load_config
from dragoman.engines.choose import EngineName, PrecisionName, load_engine, load_torch
from dragoman.engines.engine import Engine, OpenEngine
from dragoman.engines.insist import insist
from dragoman.engines.stream import in_windows
from dragoman.errors import ConfigError, ModelError
from dragoman.score.likelihood import mean_loss
from dragoman.search.step import Constraints, Hypothesis, Sampling, SearchConfig
from dragoman.text.glossary import Glossary, Term, most_changed_words, untouched
from dragoman.text.split import split_long
from dragoman.tokens.subwords import Subwords
from dragoman.tokens.words import aligned_words, word_numbers

BATCH_TOKENS = 2048  # padded source tokens translated together; beams multiply it
WINDOW = 4096  # lines sorted by length together when there are many


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A translation and how it came about."""

    text: str
    score: float  # log-probability over length penalty: what the search maximises
    log_prob: float  # natural logarithm of the probability of the tokens, end included
    tokens: tuple[str, ...]  # subwords, without the end
    token_log_probs: tuple[float, ...] | None = None  # one per token and one for the end, when asked for
    alignment: tuple[tuple[int, int], ...] | None = None  # (source word, target word), when asked for
    alternatives: tuple[Translation, ...] = ()  # the rest of the n-best list, best first
    terms: tuple[tuple[str, str | None, bool], ...] = ()  # of a glossary: source, form that is met, met also without it
    is_cut: bool = False  # whether it reached the limit of length, and did not end by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Every layer's and head's attention for one sentence pair: rows look at columns and sum to one."""

    src_tokens: tuple[str, ...]  # columns of `encoder` and `cross`, rows of `encoder`; ends with </s>
    tgt_tokens: tuple[str, ...]  # row t of `decoder` and `cross` is the step that produced tgt_tokens[t]
    tgt_in_tokens: tuple[str, ...]  # columns of `decoder`: <s>, then the tokens before each step
    encoder: np.ndarray  # (L, H, S, S)
    decoder: np.ndarray  # (L, H, T, T)
    cross: np.ndarray  # (L, H, T, S)


class Translator:
    """Turns sentences into translations. Call it with one sentence, or use `translate` for many."""

    def __init__(self, engine: Engine, subwords: Subwords, config: Config, folder: Path | None = None) -> None:
        """`folder` is where the model was loaded from: an engine that can be looked into comes from there if needed."""
        self.engine = engine
        self.subwords = subwords
        self.config = config
        self._folder = folder
        self._open: OpenEngine | None = engine if engine.can_look_inside else None  # type: ignore[assignment]

    def __call__(self, text: str) -> str:
        """The best translation of one sentence."""
        return self.translate([text])[0].text

    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        nbest: int = 1,
        sampling: Sampling | None = None,
        prefix: str | Sequence[str] = "",
        no_repeat_ngram: int = 0,
        glossary: Glossary | None = None,
        unk_copy: bool = False,
        alignments: bool = False,
        token_log_probs: bool = False,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Translation]:
        """A translation of each sentence, in order; with `nbest` above 1 the others are its alternatives.

        Beam and length penalty are the model's own settings unless given. No sentence's result depends on its
        neighbours or on `batch_tokens`. An empty sentence has an empty translation. A text longer than those of the
        training is translated in pieces, sentence by sentence if it has several; that has no alternatives, and its
        numbers are sums over the pieces.

        If given, every translation begins with the words of `prefix` (or of its own, of a list of them), none has a run
        of `no_repeat_ngram` subwords twice; where a source has a term of the glossary, one of its forms is insisted on,
        and with `unk_copy` so are placeholders, addresses, numbers and tags, as they stand in the source. What had to
        be insisted on has no alternatives.
        """
        if isinstance(sentences, str):
            raise TypeError("translate takes a list of sentences; call the translator itself for one")
        if nbest < 1 or batch_tokens < 1:
            raise ConfigError(f"nbest={nbest} or batch_tokens={batch_tokens} is below 1", hint="raise it")
        search = self.config.search
        search = replace(
            search,
            beam=search.beam if beam is None else beam,
            length_penalty=search.length_penalty if length_penalty is None else length_penalty,
        )
        pieces = [split_long(text, self._fits) for text in sentences]
        prefixes = [prefix] * len(sentences) if isinstance(prefix, str) else prefix
        first = 0 if sampling is None else sampling.first_sentence
        places = [(row, k) for row, parts in enumerate(pieces) for k in range(len(parts))]
        texts = [pieces[row][k].strip() if len(pieces[row]) > 1 else pieces[row][k] for row, k in places]
        begun = ["" if k else prefixes[row] for row, k in places]
        found = self._translate(
            texts,
            search,
            Constraints(
                prefixes=[self.subwords.encode(text) for text in begun] if prefix else None,
                no_repeat_ngram=no_repeat_ngram,
            ),
            nbest=nbest,
            sampling=sampling,
            numbers=[first + row + (k << 40) for row, k in places],  # later pieces draw from streams of their own
            alignments=alignments,
            token_log_probs=token_log_probs,
            batch_tokens=batch_tokens,
        )
        if glossary is not None or unk_copy:
            again = partial(
                self.translate, beam=beam, length_penalty=length_penalty, nbest=search.beam,
                no_repeat_ngram=no_repeat_ngram, alignments=alignments, token_log_probs=token_log_probs,
                batch_tokens=batch_tokens,
            )  # fmt: skip
            found = [
                self._with_terms(text, beginning, one, glossary, unk_copy, again)
                for text, beginning, one in zip(texts, begun, found, strict=True)
            ]
        rest = iter(found)
        return [_joined(parts, [next(rest) for _ in parts]) for parts in pieces]

    def _translate(
        self,
        sentences: Sequence[str],
        search: SearchConfig,
        constraints: Constraints,
        *,
        nbest: int,
        sampling: Sampling | None,
        numbers: Sequence[int],
        alignments: bool,
        token_log_probs: bool,
        batch_tokens: int,
    ) -> list[Translation]:
        """As `translate`, of sentences that are not too long."""
        encoded = [self.subwords.encode(text) for text in sentences]
        rows = [row for row, ids in enumerate(encoded) if ids]
        src_ids, constraints = [encoded[row] for row in rows], constraints.of(rows)
        if sampling is not None:
            found = self.looked_into().sample(
                src_ids, search, constraints, sampling,
                n_samples=nbest, numbers=[numbers[row] for row in rows], batch_tokens=batch_tokens,
            )  # fmt: skip
        else:
            found = self.engine.search(
                src_ids, search, constraints, nbest=nbest, batch_tokens=batch_tokens, token_log_probs=token_log_probs
            )
        nothing = Translation(text="", score=0.0, log_prob=0.0, tokens=(), alignment=() if alignments else None)
        results = [replace(nothing, token_log_probs=() if token_log_probs else None)] * len(encoded)
        limits = constraints.limits([len(ids) for ids in src_ids], search.max_extra_tokens)
        for row, limit, hypotheses in zip(rows, limits, found, strict=True):
            best, *others = (
                self._translation(encoded[row], one, limit, alignments, token_log_probs) for one in hypotheses
            )
            results[row] = replace(best, alternatives=tuple(others))
        return results

    def _fits(self, text: str) -> bool:
        """Whether a text is no longer than those the model was trained on."""
        most = self.config.batches.max_len_tokens - 1  # without eos
        return len(text.encode(errors="replace")) < most or len(self.subwords.encode(text)) <= most

    def stream(
        self, lines: Iterable[str], *, window: int = WINDOW, **options: Any
    ) -> Generator[Translation, None, None]:
        """The translations of lines without end, in order, each soon after it and those before it are done.

        `options` are those of `translate`. Lines are sorted by length and translated together in windows that take
        about two seconds, of at most `window` lines; no more than a few windows are in memory.
        """
        sampling: Sampling | None = options.pop("sampling", None)

        def translated(chunk: list[str], n_before: int) -> list[Translation]:
            drawn = sampling and replace(sampling, first_sentence=sampling.first_sentence + n_before)
            return self.translate(chunk, sampling=drawn, **options)

        return in_windows(lines, translated, most=window, n_at_once=self.engine.n_at_once)

    def tokens(self, text: str, *, prefix: str = "", no_repeat_ngram: int = 0) -> Iterator[str]:
        """The translation of a text as `translate` finds it with a beam of 1, bit by bit while it is made."""
        search = replace(self.config.search, beam=1)
        for k, piece in enumerate(pieces := split_long(text, self._fits)):
            whole = len(pieces) == 1
            begun = self.subwords.encode(prefix) if prefix and not k else []
            constraints = Constraints(prefixes=[begun] if prefix else None, no_repeat_ngram=no_repeat_ngram)
            src_ids, ids, given = self.subwords.encode(piece if whole else piece.strip()), [], ""
            for token_id in self.engine.tokens(src_ids, search, constraints) if src_ids else ():
                ids.append(token_id)
                so_far = self.subwords.decode(ids)
                if not so_far.endswith("\ufffd"):  # else in the middle of a character that is spelled in bytes
                    yield so_far.removeprefix(given)
                    given = so_far
            rest = self.subwords.decode(ids).removeprefix(given)
            yield rest + (" " if not whole and k < len(pieces) - 1 and piece[-1].isspace() else "")

    def loss(self, sentences: Sequence[str], references: Sequence[str], *, batch_tokens: int = BATCH_TOKENS) -> float:
        """Plain cross-entropy of the references in nats per target token, the end of each sentence included."""
        src_ids, tgt_ids = ([self.subwords.encode(text) for text in texts] for texts in (sentences, references))
        return mean_loss(self.engine.token_log_probs(src_ids, tgt_ids, batch_tokens=batch_tokens))

    def attention(self, text: str, target: str | None = None) -> Attention:
        """The attention of every layer and head while translating `text`, or while producing `target`."""
        if target is None:
            target = self(text)
        src_ids, tgt_ids = self.subwords.encode(text), self.subwords.encode(target)
        weights = self.looked_into().explain(src_ids, tgt_ids)
        tgt_tokens = self.subwords.pieces(tgt_ids)
        return Attention(
            src_tokens=(*self.subwords.pieces(src_ids), "</s>"),
            tgt_tokens=(*tgt_tokens, "</s>"),
            tgt_in_tokens=("<s>", *tgt_tokens),
            encoder=weights.encoder,
            decoder=weights.decoder,
            cross=weights.cross,
        )

    def looked_into(self) -> OpenEngine:
        """The engine, or one with the same weights, that samples and shows its attention."""
        if self._open is None:
            assert self._folder is not None
            self._open = load_torch([(self._folder, self.config)], "cpu")
        return self._open

    def _with_terms(
        self,
        src: str,
        begun: str,
        best: Translation,
        glossary: Glossary | None,
        unk_copy: bool,
        translate: Callable[..., list[Translation]],
    ) -> Translation:
        """The translation with the terms that its source asks for, and the account of them."""
        terms = [*(glossary.terms_in(src) if glossary is not None else ()), *(untouched(src) if unk_copy else ())]
        if not terms:
            return best

        def search(beginnings: list[str]) -> list[Translation]:
            kept = [text for text in beginnings if text.startswith(begun)]
            found = translate([src] * len(kept), prefix=kept)
            return [each for one in found for each in (replace(one, alternatives=()), *one.alternatives)]

        def places(text: str, term: Term) -> list[tuple[int, int]]:
            return self._translated_by(src, term.left_out(src), text)

        final = insist(best, terms, search, places)
        final = replace(final, text=final.text.rstrip())
        account = tuple((term.src, term.met(final.text), term.met(best.text) is not None) for term in terms)
        return replace(final, terms=account)

    def _translated_by(self, src: str, src_without: str, tgt: str) -> list[tuple[int, int]]:
        """From which character to which a translation may have the words for what the second source lacks.

        Those are the words that become much less likely: no attention is looked at, so that every engine will do.
        """
        src_ids, tgt_ids = [self.subwords.encode(text) for text in (src, src_without)], self.subwords.encode(tgt)
        if not (src_ids[1] and tgt_ids):
            return []
        with_it, without = self.engine.token_log_probs(src_ids, [tgt_ids] * 2, batch_tokens=BATCH_TOKENS)
        ends = [len(self.subwords.decode(tgt_ids[: i + 1])) for i in range(len(tgt_ids))]
        return most_changed_words(tgt, [(end, a - b) for end, a, b in zip(ends, with_it, without, strict=False)])

    def _translation(
        self, src_ids: list[int], hypothesis: Hypothesis, limit: int, with_alignment: bool, with_numbers: bool
    ) -> Translation:
        tgt_ids = list(hypothesis.ids)
        return Translation(
            text=self.subwords.decode(tgt_ids),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.subwords.pieces(tgt_ids)),
            token_log_probs=hypothesis.token_log_probs if with_numbers else None,
            alignment=self._alignment(src_ids, tgt_ids) if with_alignment else None,
            is_cut=len(tgt_ids) >= limit,
        )

    def _alignment(self, src_ids: list[int], tgt_ids: list[int]) -> tuple[tuple[int, int], ...]:
        """For each target word the source word it looked at most, cross-attention averaged over layers and heads."""
        if not src_ids or not tgt_ids:
            return ()
        cross_TS = self.looked_into().explain(src_ids, tgt_ids).cross.mean(axis=(0, 1))
        src_words, tgt_words = (word_numbers(self.subwords.pieces(ids)) for ids in (src_ids, tgt_ids))
        aligned = aligned_words(cross_TS[: len(tgt_ids), : len(src_ids)], src_words, tgt_words)
        return tuple((src, tgt) for tgt, src in enumerate(aligned))


def load(
    path: str | Path | Sequence[str | Path],
    *,
    engine: EngineName = "auto",
    precision: PrecisionName = "auto",
    device: str = "auto",
    threads: int | None = None,
    shortlist: bool = True,
) -> Translator:
    """The translator in a run folder or checkpoint. Reads TOML, SentencePiece and safetensors: never a pickle.

    Of several folders the probabilities are averaged, if the models have the same subwords.

    The engine "auto" is CTranslate2 where it is installed and fits the model, unless there is a CUDA device. The
    precision "auto" is int8 on a processor, if the model's settings allow it (`search.int8`), and float32 with the
    engine "torch".

    Without `shortlist` int8 and bfloat16 look at every subword for every token. With it, CTranslate2 looks at those
    that the training text's translations are made of, and our own int8 and bfloat16 at those likely for the source.
    """
    paths = [path] if isinstance(path, str | Path) else path
    models = [(folder, load_config(folder)) for folder in map(Path, paths)]
    folder, config = models[0]
    subwords = _load_subwords(models)
    chosen = load_engine(
        models, subwords, engine=engine, precision=precision, device=device, threads=threads,
        shortlist=shortlist,
    )  # fmt: skip
    return Translator(chosen, subwords, config, folder)


def _load_subwords(models: Sequence[tuple[Path, Config]]) -> Subwords:
    """The subwords that all the models share."""
    loaded = [Subwords.load(folder / SUBWORDS) for folder, _ in models]
    every = range(loaded[0].vocab_size)
    for (folder, config), subwords in zip(models, loaded, strict=True):
        if subwords.vocab_size != config.model.vocab_size:
            raise ModelError(
                f"{folder / SUBWORDS} has {subwords.vocab_size} subwords, but the model has {config.model.vocab_size}",
                hint="the files of this folder do not belong together",
            )
        if subwords.vocab_size != len(every) or subwords.pieces(every) != loaded[0].pieces(every):
            raise ModelError(
                f"{folder} has other subwords than {models[0][0]}, so that the two cannot be averaged",
                hint="train the second with --init, or from the same subwords",
            )
    return loaded[0]


def _joined(pieces: list[str], translations: list[Translation]) -> Translation:
    """The translation of a text from those of its pieces."""
    if len(pieces) == 1:
        return translations[0]
    text, words, alignment = "", (0, 0), []
    for piece, one in zip(pieces, translations, strict=True):
        alignment += [(src + words[0], tgt + words[1]) for src, tgt in one.alignment or ()]
        words = words[0] + len(piece.split()), words[1] + len(one.text.split())
        text += one.text + (" " if piece[-1].isspace() else "")
    numbers = [one.token_log_probs for one in translations]
    return Translation(
        text=text.rstrip(),
        score=sum(one.score for one in translations),
        log_prob=sum(one.log_prob for one in translations),
        tokens=tuple(token for one in translations for token in one.tokens),
        token_log_probs=None if numbers[0] is None else tuple(number for each in numbers for number in each or ()),
        alignment=None if translations[0].alignment is None else tuple(alignment),
        is_cut=any(one.is_cut for one in translations),
        terms=tuple(term for one in translations for term in one.terms),
    )
