"""First half of training: text files to subwords and encoded pairs in the run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dragoman.batches.store import EncodedPairs, open_store, write_store
from dragoman.checkpoint.folder import SHORTLIST, SUBWORDS, write_atomically
from dragoman.config import Config
from dragoman.text.clean import Report
from dragoman.text.corpus import Pair, read_pairs
from dragoman.tokens.shortlist import Shortlist, build_shortlist, coverage
from dragoman.tokens.subwords import Subwords
from dragoman.watch import Watcher

_PAIRS_PER_NOTE = 1_000_000  # a large text takes a while
ENCODED = "encoded"  # the training text as ids, in the run folder only while it trains
DISTILLED = "distilled/pairs.jsonl"  # the training text of a run with teachers
_LEAST_COVERAGE = 0.99  # of what the model writes, or a shortlist costs quality (docs/notes/0006-engines.md)
_MOST_HELD_OUT = 1000  # sentences of the validation text on which a shortlist is tried


@dataclass(frozen=True, slots=True)
class Data:
    """The text, ready for use."""

    subwords: Subwords
    pairs: EncodedPairs
    valid: list[Pair]  # none if there is no validation text


def prepare(config: Config, run: Path, watcher: Watcher) -> tuple[Data, Config]:
    """The data of the run, made now or found from before, and the config with the vocabulary it came to."""
    report = Report()
    valid = read_valid(config, report)
    for sentence in report.summary():
        watcher.warn(f"validation text: {sentence}")
    if not valid:
        watcher.warn("no validation text: the best checkpoint cannot be told, and there will be no BLEU")

    subwords = _subwords(config, run, watcher)
    config = replace(config, model=replace(config.model, vocab_size=subwords.vocab_size, pad_id=subwords.pad_id))

    if (run / ENCODED).exists():
        pairs = open_store(run / ENCODED)
    else:
        watcher.note("encoding the text")
        pairs = write_store(run / ENCODED, _encoded(config, run, subwords, watcher), subwords.vocab_size)
    data = Data(subwords, pairs, valid)
    if not (run / SHORTLIST).exists():
        _shortlist(data, run, watcher)
    return data, config


def make_shortlist(config: Config, run: Path, watcher: Watcher) -> Shortlist:
    """The shortlist that the training text of this config gives a model, written to its folder."""
    subwords = Subwords.load(run / SUBWORDS)
    with tempfile.TemporaryDirectory() as folder:
        pairs = write_store(Path(folder) / ENCODED, _encoded(config, run, subwords, watcher), subwords.vocab_size)
        shortlist = build_shortlist(pairs, subwords.vocab_size)
    write_atomically(run / SHORTLIST, shortlist.save)
    return shortlist


def check_shortlist(run: Path, subwords: Subwords, sources: list[str], texts: list[str], watcher: Watcher) -> None:
    """Removes the shortlist if it lacks too much of these translations, which the model found without it.

    What it has for their sources and what it has for any source are judged alike. Each translation counts as much as
    any other: one that is a loop of odd subwords would outweigh many.
    """
    path = run / SHORTLIST
    if not path.exists():  # it may be deleted at any time
        return
    shortlist, encode = Shortlist.load(path, subwords.vocab_size), subwords.encode
    pairs = [(encode(src), encode(text)) for src, text in zip(sources, texts, strict=True)]
    share = min(
        sum(coverage(shortlist, [pair]).share for pair in pairs) / len(pairs),
        sum(float(np.isin(tgt, shortlist.usual).mean()) if tgt else 1.0 for _, tgt in pairs) / len(pairs),
    )
    if share < _LEAST_COVERAGE:
        path.unlink()
        watcher.note(
            f"no shortlist is kept: it holds {100 * share:.1f} % of the subwords of these translations, "
            f"less than {100 * _LEAST_COVERAGE:g} %"
        )


def read_valid(config: Config, report: Report) -> list[Pair]:
    """The validation text; nothing if none was given."""
    text = config.text
    if text.valid_src is None and text.valid_pairs is None:
        return []
    files = {"src": text.valid_src, "tgt": text.valid_tgt, "pairs": text.valid_pairs}
    return list(read_pairs(**files, max_len_chars=text.max_len_chars, report=report))


def count_chars(config: Config, run: Path) -> int:
    """The characters of the training text, both sides."""
    return sum(len(pair.src) + len(pair.tgt) for pair in _read_train(config, run, Report()))


def evenly(pairs: list[Pair], n: int | None) -> list[Pair]:
    """So many of the pairs, evenly spaced; all if there are no more."""
    if n is None or n >= len(pairs):
        return pairs
    return [pairs[i * len(pairs) // n] for i in range(n)]


def subwords_from(config: Config) -> str | None:
    """The trained model whose subwords are used, if none are learned."""
    return config.train.init or (config.text.teachers[0] if config.text.teachers else None)


def _subwords(config: Config, run: Path, watcher: Watcher) -> Subwords:
    path = run / SUBWORDS
    if path.exists():
        return Subwords.load(path)
    if (origin := subwords_from(config)) is not None:
        subwords = Subwords.load(Path(origin) / SUBWORDS)
        subwords.save(path)
        return subwords
    watcher.note(f"learning {config.tokens.vocab_size} subwords")
    texts = (side for pair in _read_train(config, run, Report()) for side in (pair.src, pair.tgt))
    subwords = Subwords.train(texts, config.tokens.vocab_size)
    subwords.save(path)
    return subwords


def _shortlist(data: Data, run: Path, watcher: Watcher) -> None:
    """Writes the shortlist of the training text, and says how much of the validation text it holds."""
    vocab_size, encode = data.subwords.vocab_size, data.subwords.encode
    shortlist = build_shortlist(data.pairs, vocab_size)
    if data.valid:
        held_out = ((encode(pair.src), encode(pair.tgt)) for pair in evenly(data.valid, _MOST_HELD_OUT))
        share, n_ids = coverage(shortlist, held_out)
        watcher.note(
            f"the shortlist holds {100 * share:.1f} % of the validation text's subwords, "
            f"{n_ids:,.0f} of {vocab_size:,} for a sentence"
        )
    write_atomically(run / SHORTLIST, shortlist.save)


def _encoded(config: Config, run: Path, subwords: Subwords, watcher: Watcher) -> Iterator[tuple[list[int], list[int]]]:
    """The training pairs as ids with the end of sentence, those too long for the model left out."""
    report, longest, n_long = Report(), config.batches.max_len_tokens, 0
    for pair in _read_train(config, run, report):
        if report.n_kept % _PAIRS_PER_NOTE == 0:
            watcher.note(f"{report.n_kept:,} pairs encoded so far")
        src, tgt = ([*subwords.encode(side), subwords.eos_id] for side in (pair.src, pair.tgt))
        if max(len(src), len(tgt)) > longest:
            n_long += 1
            if n_long == 1:
                watcher.warn(f"line {pair.line} is longer than batches.max_len_tokens={longest} and is left out")
        else:
            yield src, tgt
    for sentence in report.summary():
        watcher.warn(sentence)
    left = report.n_kept - n_long
    watcher.note(f"{left:,} of {report.n_read:,} pairs to train on" + (f", {n_long:,} too long" if n_long else ""))


def _read_train(config: Config, run: Path, report: Report) -> Iterator[Pair]:
    text = config.text
    files = {"src": text.src, "tgt": text.tgt, "pairs": text.pairs}
    if text.teachers:
        files = {"pairs": str(run / DISTILLED)}
    return read_pairs(**files, max_len_chars=text.max_len_chars, report=report)
