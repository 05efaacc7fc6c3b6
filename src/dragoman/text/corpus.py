"""Files to sentence pairs: two parallel files, one TSV or one JSONL, streamed in constant memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import ConfigError, DataError
from dragoman.text.align import find_split
from dragoman.text.clean import Kind, Report, find_defect, has_odd_break
from dragoman.text.lines import decoded_lines

_PAST_END = "\n"  # no line contains its own end
_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can spell half a character: "\ud800"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextConfig:
    """Where the text is: two parallel files, or one file of pairs; None means not given."""

    src: str | None = None  # training text to translate from, a sentence per line, plain or .gz
    tgt: str | None = None  # the same sentences in the other language
    pairs: str | None = None  # both in one file instead: .tsv or .jsonl, plain or .gz
    valid_src: str | None = None  # validation text, likewise
    valid_tgt: str | None = None  # its translation
    valid_pairs: str | None = None  # or both in one file
    teachers: tuple[str, ...] | None = None  # trained models that translate src; tgt, if given, is trained on as well
    teacher_beam: int | None = None  # hypotheses the teachers keep at each step; their own setting unless given
    max_len_chars: int = 2000  # a longer side sets the pair aside

    def __post_init__(self) -> None:
        if not self.teachers:
            _check_one_source("text.", self.src, self.tgt, self.pairs)
        elif self.src is None or self.pairs is not None:
            raise ConfigError(
                "text.teachers translate text.src, which is not given" if self.src is None else
                "text.teachers translate text.src, not text.pairs",
                hint="give text.src, and text.tgt if it is to be trained on as well",
            )  # fmt: skip
        _check_one_source("text.valid_", self.valid_src, self.valid_tgt, self.valid_pairs)
        if self.max_len_chars < 1:
            raise ConfigError(
                f"text.max_len_chars={self.max_len_chars} would set every pair aside",
                hint="use 1 or more; 2000 suits sentences",
            )


class Pair(NamedTuple):
    """A sentence and its translation, with the line they stand on (from 1)."""

    src: str
    tgt: str
    line: int


class _Row(NamedTuple):
    """A pair as read: each side with its file's name; None for text that is not UTF-8."""

    line: int
    src_file: str
    src: str | None
    tgt_file: str
    tgt: str | None


def read_pairs(
    *,
    src: str | Path | None = None,
    tgt: str | Path | None = None,
    pairs: str | Path | None = None,
    max_len_chars: int = 2000,
    report: Report,
) -> Iterator[Pair]:
    """The usable pairs in file order; those set aside are counted in the report.

    Misaligned or malformed files raise DataError. Files of unequal length are only known to be so at
    their end: treat what was read as void if the iterator raises.
    """
    _check_one_source("", src, tgt, pairs)
    if pairs is not None:
        return _usable(_rows_of_file(pairs, report), str(pairs), max_len_chars, report)
    if src is not None and tgt is not None:
        return _usable(_rows_of_two(src, tgt, report), f"{src} and {tgt}", max_len_chars, report)
    raise ConfigError("no text was given", hint="give src and tgt, or pairs")


def read_side(path: str | Path, *, max_len_chars: int, report: Report) -> Iterator[str]:
    """The usable lines of one side, to be translated; those set aside are counted in the report."""
    for line, text in enumerate(decoded_lines(path, str(path), report), start=1):
        report.n_read += 1
        defect = find_defect(text, max_len_chars)
        if defect is not None:
            report.note(defect, str(path), line)
            continue
        assert text is not None  # else it had a defect
        report.n_kept += 1
        yield text
    if report.n_kept == 0:
        raise DataError(
            f"no usable line in {path}", hint="; ".join(report.summary()) or "the file is empty: is it the right one?"
        )


def _check_one_source(prefix: str, src: str | Path | None, tgt: str | Path | None, pairs: str | Path | None) -> None:
    """Raises unless there are two parallel files, one file of pairs, or nothing."""
    if pairs is not None and (src is not None or tgt is not None):
        raise ConfigError(
            f"{prefix}pairs excludes {prefix}src and {prefix}tgt",
            hint="give two parallel files or one file of pairs, not both",
        )
    if (src is None) != (tgt is None):
        given, missing = ("src", "tgt") if tgt is None else ("tgt", "src")
        raise ConfigError(
            f"{prefix}{given} is given without {prefix}{missing}",
            hint=f"give {prefix}{missing} too: line n of one translates line n of the other",
        )


def _usable(rows: Iterator[_Row], name: str, max_len_chars: int, report: Report) -> Iterator[Pair]:
    """The rows without a defect; a row with several is reported once."""
    n_kept = 0
    for row in rows:
        report.n_read += 1
        src_defect = find_defect(row.src, max_len_chars)
        tgt_defect = find_defect(row.tgt, max_len_chars)
        if src_defect is not None:
            report.note(src_defect, row.src_file, row.line)
            continue
        if tgt_defect is not None:
            report.note(tgt_defect, row.tgt_file, row.line)
            continue
        assert row.src is not None  # else it had a defect
        assert row.tgt is not None
        for file, text in ((row.src_file, row.src), (row.tgt_file, row.tgt)):
            if has_odd_break(text):
                report.note(Kind.ODD_BREAK, file, row.line)
        n_kept += 1
        report.n_kept += 1
        yield Pair(row.src, row.tgt, row.line)
    if n_kept == 0:
        raise DataError(
            f"no usable pair in {name}", hint="; ".join(report.summary()) or "the file is empty: is it the right one?"
        )


def _rows_of_two(src: str | Path, tgt: str | Path, report: Report) -> Iterator[_Row]:
    """Line n of one file with line n of the other; raises if one of them goes on after the other."""
    src_name, tgt_name = str(src), str(tgt)
    src_lines = decoded_lines(src, src_name, report)
    tgt_lines = decoded_lines(tgt, tgt_name, report)
    n_src = n_tgt = 0
    for src_text, tgt_text in zip_longest(src_lines, tgt_lines, fillvalue=_PAST_END):
        n_src += src_text != _PAST_END
        n_tgt += tgt_text != _PAST_END
        if n_src == n_tgt:
            yield _Row(n_src, src_name, src_text, tgt_name, tgt_text)
    if n_src > n_tgt:
        raise _misaligned(src, n_src, tgt, n_tgt)
    if n_tgt > n_src:
        raise _misaligned(tgt, n_tgt, src, n_src)


def _misaligned(long: str | Path, n_long: int, short: str | Path, n_short: int) -> DataError:
    """The error for files of unequal length, which reads them once more to say where they come apart."""
    message = f"{long} has {n_long} lines but {short} has {n_short}"
    hint = "line n of one file must translate line n of the other"
    if Path(long).is_file() and Path(short).is_file():  # a pipe cannot be read twice
        line = find_split(_line_chars(long), _line_chars(short))
        hint = f"they seem to come apart near line {line}; {hint}"
    return DataError(message, hint=hint)


def _line_chars(path: str | Path) -> Iterator[int]:
    """The length of each line in characters."""
    return (len(text or "") for text in decoded_lines(path, str(path), Report()))


def _rows_of_file(path: str | Path, report: Report) -> Iterator[_Row]:
    """The rows of a TSV or JSONL file, told apart by name; a blank line is a pair with empty sides."""
    name = str(path)
    suffix = Path(name.lower().removesuffix(".gz")).suffix
    if suffix not in (".tsv", ".jsonl"):
        raise ConfigError(
            f"{name} is neither .tsv nor .jsonl, so the format of its pairs is not known",
            hint="name it .tsv (two columns) or .jsonl (objects with src and tgt), with .gz if packed",
        )
    split = _split_tsv if suffix == ".tsv" else _split_jsonl
    return _rows_of_lines(name, decoded_lines(path, name, report), split)


def _rows_of_lines(
    name: str, lines: Iterator[str | None], split: Callable[[str, str], tuple[str | None, str | None]]
) -> Iterator[_Row]:
    for line, text in enumerate(lines, start=1):
        if text is None:
            src = tgt = None
        elif not text.strip():
            src = tgt = ""
        else:
            src, tgt = split(text, f"line {line} of {name}")
        yield _Row(line, name, src, name, tgt)


def _split_tsv(text: str, place: str) -> tuple[str, str]:
    columns = text.split("\t")
    if len(columns) != 2:
        raise DataError(
            f"{place} has {len(columns)} tab-separated columns, not 2",
            hint="each line must be: source, one tab, target",
        )
    return columns[0], columns[1]


def _split_jsonl(text: str, place: str) -> tuple[str | None, str | None]:
    """The two strings of a JSON object; None for one that UTF-8 could not write."""
    hint = 'each line must look like {"src": "...", "tgt": "..."}'
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):  # nesting deep enough exhausts the parser
        raise DataError(f"{place} is not JSON", hint=hint) from None
    if not isinstance(record, dict):
        raise DataError(f"{place} is not a JSON object", hint=hint)
    src, tgt = record.get("src"), record.get("tgt")
    if not isinstance(src, str) or not isinstance(tgt, str):
        raise DataError(f'{place} does not have "src" and "tgt" as strings', hint=hint)
    return None if _SURROGATE.search(src) else src, None if _SURROGATE.search(tgt) else tgt
