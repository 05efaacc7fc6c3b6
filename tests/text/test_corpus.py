"""Pairs are read in order, defective ones are set aside with a note, misaligned files are refused."""

import gzip
import json
import os
import random
import threading
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DataError
from dragoman.text.clean import Kind, Report
from dragoman.text.corpus import Pair, TextConfig, read_pairs, read_side


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read_two(tmp_path: Path, src: bytes | str, tgt: bytes | str, **settings: int) -> tuple[list[Pair], Report]:
    report = Report()
    de, en = write(tmp_path / "a.de", src), write(tmp_path / "a.en", tgt)
    return list(read_pairs(src=de, tgt=en, report=report, **settings)), report


def read_one(path: Path, content: bytes | str) -> tuple[list[Pair], Report]:
    report = Report()
    return list(read_pairs(pairs=write(path, content), report=report)), report


def good(n: int) -> str:
    return "".join(f"Satz {i}\n" for i in range(n))


def test_parallel_files(tmp_path: Path) -> None:
    pairs, report = read_two(tmp_path, "eins\nzwei\n", "one\ntwo")
    assert pairs == [Pair("eins", "one", 1), Pair("zwei", "two", 2)]
    assert (report.n_read, report.n_kept, report.summary()) == (2, 2, [])


def test_one_side_may_be_packed(tmp_path: Path) -> None:
    pairs, _ = read_two(tmp_path, gzip.compress(b"eins\nzwei\n"), "one\ntwo\n")
    assert pairs == [Pair("eins", "one", 1), Pair("zwei", "two", 2)]


@pytest.mark.parametrize("name", ["x.tsv", "x.TSV", "x.tsv.gz"])
def test_tsv(tmp_path: Path, name: str) -> None:
    content = b"eins\tone\nzwei\ttwo\n"
    pairs, _ = read_one(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    assert pairs == [Pair("eins", "one", 1), Pair("zwei", "two", 2)]


def test_jsonl(tmp_path: Path) -> None:
    lines = [{"src": "eins\tzwei", "tgt": "one"}, {"tgt": "☃", "src": "b", "id": 7}]
    pairs, _ = read_one(tmp_path / "x.jsonl", "\n".join(json.dumps(line) for line in lines))
    assert pairs == [Pair("eins\tzwei", "one", 1), Pair("b", "☃", 2)]


def test_odd_line_breaks_are_kept_and_reported(tmp_path: Path) -> None:
    pairs, report = read_two(tmp_path, "a\u2028b\nc\x0bd\n", "A\nC\x85D\n")
    assert pairs == [Pair("a\u2028b", "A", 1), Pair("c\x0bd", "C\x85D", 2)]
    assert report.counts == {Kind.ODD_BREAK: 3}


def test_windows_files_are_read_and_reported(tmp_path: Path) -> None:
    pairs, report = read_two(tmp_path, b"\xef\xbb\xbfeins\r\nzwei\r\n", "one\ntwo\n")
    assert pairs == [Pair("eins", "one", 1), Pair("zwei", "two", 2)]
    assert report.counts == {Kind.BOM: 1, Kind.CRLF: 2}


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (b"b\xfcse", Kind.INVALID_UTF8),
        (b"a\0b", Kind.NUL),
        (b"", Kind.EMPTY),
        (b" \t ", Kind.EMPTY),
        (b"\r", Kind.EMPTY),
        (b"x" * 21, Kind.TOO_LONG),
    ],
)
def test_a_defective_pair_is_set_aside_and_the_others_stay_aligned(tmp_path: Path, bad: bytes, kind: Kind) -> None:
    defective = good(12).encode().replace(b"Satz 5", bad)
    for src, tgt, file in ((defective, good(12), "a.de"), (good(12), defective, "a.en")):
        pairs, report = read_two(tmp_path, src, tgt, max_len_chars=20)
        assert [pair.line for pair in pairs] == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
        assert all(pair.src == pair.tgt == f"Satz {pair.line - 1}" for pair in pairs)
        assert (report.n_read, report.n_kept) == (12, 11)
        assert report.counts[kind] == 1
        (sentence,) = [s for s in report.summary() if "set aside" in s]
        assert sentence == f"1 pair set aside: {kind.value} ({tmp_path / file} line 6)"


def test_a_pair_with_two_defects_is_one_pair_set_aside(tmp_path: Path) -> None:
    _, report = read_two(tmp_path, "\na\n", "\nb\n")
    assert report.counts == {Kind.EMPTY: 1}


def test_defects_in_files_of_pairs(tmp_path: Path) -> None:
    tsv = good(20).replace("\n", "\tx\n").encode().replace(b"Satz 3", b"S\xe4tze").replace(b"Satz 4", b"")
    pairs, report = read_one(tmp_path / "x.tsv", tsv + b"\n")
    assert len(pairs) == 18
    assert report.counts == {Kind.INVALID_UTF8: 1, Kind.EMPTY: 2}  # an empty column, a blank line
    jsonl = '{"src": "\\ud800", "tgt": "a"}\n{"src": "a", "tgt": "\\u0000"}\n\n{"src": "a", "tgt": "b"}'
    pairs, report = read_one(tmp_path / "x.jsonl", jsonl)
    assert pairs == [Pair("a", "b", 4)]
    assert report.counts == {Kind.INVALID_UTF8: 1, Kind.NUL: 1, Kind.EMPTY: 1}


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("x.tsv", "only one", "line 2 of {} has 1 tab-separated columns, not 2"),
        ("x.tsv", "a\tb\tc", "line 2 of {} has 3 tab-separated columns, not 2"),
        ("x.jsonl", '{"src": "a", "tgt"', "line 2 of {} is not JSON"),
        ("x.jsonl", "[" * 100_000, "line 2 of {} is not JSON"),
        ("x.jsonl", '["a", "b"]', "line 2 of {} is not a JSON object"),
        ("x.jsonl", '{"src": "a"}', 'line 2 of {} does not have "src" and "tgt" as strings'),
        ("x.jsonl", '{"src": "a", "tgt": 1}', 'line 2 of {} does not have "src" and "tgt" as strings'),
    ],
)
def test_a_malformed_line_is_refused(tmp_path: Path, name: str, line: str, message: str) -> None:
    first = "a\tb" if name == "x.tsv" else '{"src": "a", "tgt": "b"}'
    with pytest.raises(DataError) as caught:
        read_one(tmp_path / name, f"{first}\n{line}\n")
    assert caught.value.message == message.format(tmp_path / name)
    assert caught.value.hint


def test_another_encoding_is_recognised(tmp_path: Path) -> None:
    latin = "".join("grün\n" if i % 5 == 0 else "rot\n" for i in range(50)).encode("latin-1")
    with pytest.raises(DataError, match=r"a\.de does not look like UTF-8: 10 of 50 lines") as caught:
        read_two(tmp_path, latin, good(50))
    assert "iconv" in str(caught.value.hint)


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no usable pair in") as caught:
        read_two(tmp_path, "\n\n", "a\nb\n")
    assert "2 pairs set aside: empty side" in str(caught.value.hint)
    with pytest.raises(DataError, match="no usable pair in"):
        read_two(tmp_path, "", "")


def sentences(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Lines with the spread of lengths of real sentences, and translations about as long."""
    rng = random.Random(seed)
    n_words = [max(3, round(rng.lognormvariate(2.9, 0.5))) for _ in range(n)]
    src = [" ".join("w" * rng.randint(2, 9) for _ in range(k)) for k in n_words]
    tgt = [" ".join("v" * rng.randint(2, 10) for _ in range(max(2, k + rng.randint(-2, 2)))) for k in n_words]
    return src, tgt


@pytest.mark.parametrize("place", [0, 1, 250, 777, 998, 999])
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_missing_line_is_found(tmp_path: Path, place: int, side: str) -> None:
    src, tgt = sentences(1000, seed=place)
    del (src if side == "src" else tgt)[place]
    with pytest.raises(DataError) as caught:
        read_two(tmp_path, "\n".join(src), "\n".join(tgt))
    de, en = tmp_path / "a.de", tmp_path / "a.en"
    long, short = (en, de) if side == "src" else (de, en)
    assert caught.value.message == f"{long} has 1000 lines but {short} has 999"
    near = int(str(caught.value.hint).split("near line ")[1].split(";")[0])
    assert abs(near - (place + 1)) <= 2


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    src, tgt = sentences(300, seed=1)
    with pytest.raises(DataError) as caught:
        read_two(tmp_path, "\n".join(src), "\n".join(tgt[:250]))
    assert "near line 251;" in str(caught.value.hint)
    with pytest.raises(DataError, match="has 3 lines but"):
        read_two(tmp_path, "", "a\nb\nc\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_misaligned_pipes_are_refused_without_being_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"a\nb\n",))
    writer.start()
    with pytest.raises(DataError, match="has 3 lines but") as caught:
        list(read_pairs(src=tmp_path / "pipe", tgt=write(tmp_path / "en", good(3)), report=Report()))
    writer.join()
    assert caught.value.hint == "line n of one file must translate line n of the other"


def test_settings_that_contradict_one_another() -> None:
    TextConfig(src="a", tgt="b", valid_pairs="c.tsv")
    with pytest.raises(ConfigError, match=r"text\.src is given without text\.tgt"):
        TextConfig(src="a")
    with pytest.raises(ConfigError, match=r"text\.valid_tgt is given without text\.valid_src"):
        TextConfig(valid_tgt="a")
    with pytest.raises(ConfigError, match=r"text\.pairs excludes text\.src and text\.tgt"):
        TextConfig(pairs="a.tsv", src="a", tgt="b")
    with pytest.raises(ConfigError, match=r"text\.max_len_chars=0"):
        TextConfig(max_len_chars=0)


def test_arguments_are_checked_before_reading() -> None:
    with pytest.raises(ConfigError, match="tgt is given without src"):
        read_pairs(tgt="a", report=Report())
    with pytest.raises(ConfigError, match="no text was given"):
        read_pairs(report=Report())
    with pytest.raises(ConfigError, match=r"x\.csv is neither \.tsv nor \.jsonl"):
        read_pairs(pairs="x.csv", report=Report())


def test_one_side_alone_is_read_with_the_same_care(tmp_path: Path) -> None:
    report = Report()
    path = write(tmp_path / "a.de", b"eins\n\n" + b"x" * 30 + b"\nzw\xf6lf\n" + b"gut\r\n" * 30)
    assert list(read_side(path, max_len_chars=20, report=report)) == ["eins", *["gut"] * 30]
    assert (report.n_read, report.n_kept) == (34, 31)
    set_aside = {Kind.EMPTY: 1, Kind.TOO_LONG: 1, Kind.INVALID_UTF8: 1, Kind.CRLF: 30}
    assert dict(report.counts) == set_aside


def test_one_side_without_a_usable_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no usable line in") as caught:
        list(read_side(write(tmp_path / "a.de", "\n\n"), max_len_chars=20, report=Report()))
    assert "2 pairs set aside: empty side" in (caught.value.hint or "")


def test_teachers_translate_the_source() -> None:
    assert TextConfig(src="a", teachers=("run",)).tgt is None
    assert TextConfig(src="a", tgt="b", teachers=("run",)).tgt == "b"
    with pytest.raises(ConfigError, match=r"text\.teachers translate text\.src, which is not given"):
        TextConfig(teachers=("run",))
    with pytest.raises(ConfigError, match=r"text\.teachers translate text\.src, not text\.pairs"):
        TextConfig(src="a", pairs="b.tsv", teachers=("run",))
    with pytest.raises(ConfigError, match=r"text\.src is given without text\.tgt"):
        TextConfig(src="a", teachers=())
