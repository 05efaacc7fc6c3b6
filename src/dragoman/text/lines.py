"""Files to lines: bytes are split at "\\n" and nowhere else, whatever Unicode calls a line break."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

from dragoman.errors import DataError
from dragoman.text.clean import Kind, Report

_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_MAX_LINE_BYTES = 1 << 24  # bounds memory when a file without line breaks is given by mistake
_MAX_INVALID_SHARE = 0.1  # beyond this the file is in another encoding rather than damaged here and there


def read_lines(
    source: str | Path | BinaryIO, *, name: str | None = None, report: Report | None = None
) -> Iterator[str]:
    """Every line of a file to be translated or scored, in order; none is dropped, "" for an empty one.

    `source` is a path (plain or gzip) or an open binary stream, whose display name is `name`.
    A line that is not text raises DataError: leaving it out would shift all lines after it.
    """
    if name is None:
        name = str(source) if isinstance(source, str | Path) else str(getattr(source, "name", "input"))
    for line, text in enumerate(decoded_lines(source, name, report or Report()), start=1):
        if text is None:
            raise DataError(
                f"line {line} of {name} is not valid UTF-8",
                hint="convert the file, for example: iconv -f LATIN1 -t UTF-8",
            )
        if "\0" in text:
            raise DataError(f"line {line} of {name} contains a NUL character", hint="remove it from the line")
        yield text


def count_lines(path: str | Path) -> int:
    """How many lines `read_lines` will give."""
    return sum(1 for _ in _raw_lines(path, str(path)))


def read_aligned(src: str | Path, ref: str | Path) -> tuple[list[str], list[str]]:
    """The lines of two files, line n of one with line n of the other; DataError if one has more."""
    sources, references = list(read_lines(src)), list(read_lines(ref))
    if len(sources) != len(references):
        raise DataError(
            f"{src} has {len(sources)} lines but {ref} has {len(references)}",
            hint="line n of one file must translate line n of the other",
        )
    return sources, references


def decoded_lines(source: str | Path | BinaryIO, name: str, report: Report) -> Iterator[str | None]:
    """Every line without its line end, None where it is not UTF-8; what was stripped goes to the report."""
    n_lines = n_invalid = 0
    for raw in _raw_lines(source, name):
        n_lines += 1
        if n_lines == 1:
            raw = _without_bom(raw, name, report)
        if raw.endswith(b"\r"):
            raw = raw[:-1]
            report.note(Kind.CRLF, name, n_lines)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            n_invalid += 1
            yield None
        else:
            yield text
    if n_invalid > _MAX_INVALID_SHARE * n_lines:
        raise DataError(
            f"{name} does not look like UTF-8: {n_invalid} of {n_lines} lines cannot be decoded",
            hint="convert it first, for example: iconv -f LATIN1 -t UTF-8",
        )


def _without_bom(raw: bytes, name: str, report: Report) -> bytes:
    """The first line of a file without its byte order mark."""
    if raw.startswith(_UTF16_BOMS):
        raise DataError(f"{name} is UTF-16, not UTF-8", hint="convert it first, for example: iconv -f UTF-16 -t UTF-8")
    if not raw.startswith(_UTF8_BOM):
        return raw
    report.note(Kind.BOM, name, 1)
    return raw.removeprefix(_UTF8_BOM)


def _raw_lines(source: str | Path | BinaryIO, name: str) -> Iterator[bytes]:
    """Lines as bytes without "\\n"; every way in which reading can fail becomes a DataError."""
    line = 0
    try:
        # A stream that was handed in belongs to the caller, who closes it.
        with _open(source) if isinstance(source, str | Path) else nullcontext(source) as stream:
            while raw := stream.readline(_MAX_LINE_BYTES):
                line += 1
                if len(raw) == _MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    raise DataError(
                        f"line {line} of {name} is longer than {_MAX_LINE_BYTES:,} bytes",
                        hint="is this a text file with one sentence per line?",
                    )
                yield raw.removesuffix(b"\n")
    except FileNotFoundError:
        raise DataError(f"{name} does not exist", hint="check the path") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a directory, not a file", hint="name a file inside it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(
            f"{name} is a damaged gzip file: it breaks off after line {line}",
            hint="copy or download it again, and check it with: gzip -t",
        ) from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}", hint="check the file") from None


def _open(path: str | Path) -> BinaryIO:
    """The file's text as bytes, unpacked if it starts like a gzip file, whatever it is called."""
    file = open(path, "rb")  # noqa: SIM115 (the caller closes it)
    if not file.peek(2).startswith(_GZIP_MAGIC):
        return file
    return _GzipText(file)


class _GzipText(io.BufferedReader):
    """A gzip file being read, which also closes the file it reads from."""

    def __init__(self, packed: BinaryIO) -> None:
        super().__init__(gzip.GzipFile(fileobj=packed, mode="rb"))
        self._packed = packed

    def close(self) -> None:
        super().close()
        self._packed.close()
