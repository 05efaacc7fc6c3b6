"""The strict reader: every line counts, and what is not text is refused by name and line."""

import gzip
import io
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.text.clean import Kind, Report
from dragoman.text.lines import read_lines

LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0\ufeff"))


@given(lines=st.lists(LINE), ends_in_newline=st.booleans())
@settings(deadline=None, max_examples=100)
def test_every_line_comes_back_as_it_was(lines: list[str], ends_in_newline: bool) -> None:
    if lines and not lines[-1]:
        ends_in_newline = True  # an empty last line exists only by its end
    raw = "\n".join(lines) + ("\n" if ends_in_newline and lines else "")
    assert list(read_lines(io.BytesIO(raw.encode()))) == lines


@pytest.mark.parametrize("character", [*"\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "a\rb"])
def test_nothing_but_newline_ends_a_line(character: str) -> None:
    text = f"one{character}line"
    assert list(read_lines(io.BytesIO(f"{text}\nnext".encode()))) == [text, "next"]


def test_byte_order_mark_and_carriage_returns_are_stripped_and_reported() -> None:
    report = Report()
    raw = b"\xef\xbb\xbfone\r\ntwo\r\r\n\r\n\xef\xbb\xbfthree"
    assert list(read_lines(io.BytesIO(raw), report=report)) == ["one", "two\r", "", "\ufeffthree"]
    assert report.counts == {Kind.BOM: 1, Kind.CRLF: 3}


def test_an_empty_file_has_no_lines() -> None:
    assert list(read_lines(io.BytesIO(b""))) == []


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    packed = tmp_path / "packed.txt"
    packed.write_bytes(gzip.compress("grün\nblau\n".encode()))
    plain = tmp_path / "plain.gz"
    plain.write_text("grün\nblau", encoding="utf-8")
    assert list(read_lines(packed)) == list(read_lines(str(plain))) == ["grün", "blau"]


def test_a_stream_is_left_open_for_its_owner() -> None:
    stream = io.BytesIO(b"one")
    list(read_lines(stream))
    assert not stream.closed


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    assert list(read_lines(pipe)) == ["one", "two"]
    writer.join()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"good\nb\xfcse\n", "line 2 of stdin is not valid UTF-8"),
        (b"\xed\xa0\x80\n", "line 1 of stdin is not valid UTF-8"),  # a surrogate
        (b"good\ngood\na\0b", "line 3 of stdin contains a NUL character"),
        ("UTF-16".encode("utf-16"), "stdin is UTF-16, not UTF-8"),
        (b"\xfe\xff\0a", "stdin is UTF-16, not UTF-8"),
    ],
)
def test_what_is_not_text_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        list(read_lines(io.BytesIO(raw), name="stdin"))
    assert caught.value.message == message
    assert caught.value.hint


def test_a_file_without_line_breaks_does_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.text.lines._MAX_LINE_BYTES", 100)
    assert list(read_lines(io.BytesIO(b"x" * 99 + b"\n" + b"y" * 99))) == ["x" * 99, "y" * 99]
    with pytest.raises(DataError, match="line 2 of input is longer than 100 bytes"):
        list(read_lines(io.BytesIO(b"short\n" + b"x" * 1000)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.de does not exist"):
        list(read_lines(tmp_path / "missing.de"))
    with pytest.raises(DataError, match="is a directory, not a file"):
        list(read_lines(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be read: Not a directory"):
        list(read_lines(tmp_path / "file" / "inside"))


@pytest.mark.parametrize("damage", ["cut", "flipped", "header only"])
def test_damaged_gzip(tmp_path: Path, damage: str) -> None:
    packed = bytearray(gzip.compress(b"".join(b"line %d\n" % (i * i) for i in range(5000))))
    if damage == "cut":
        del packed[len(packed) // 2 :]
    elif damage == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    else:
        del packed[2:]
    path = tmp_path / "damaged.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match=r"damaged\.gz is a damaged gzip file"):
        list(read_lines(path))
