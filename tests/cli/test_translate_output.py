"""`dragoman translate`: line for line, in order, whatever the lines hold and however they arrive."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import DRAGOMAN, ENVIRONMENT, Corpus

from dragoman.cli.main import run as run_command

# An empty line, blanks, line separators other than a line end, an unknown script, and no end of line at the end.
ODD = "bade kiba\n\n   \nlo\u2028mu\u2029na\n\x0bri\x0c\x85\nतीन 🙂\nbaba dede kiki"


@pytest.fixture
def translate(run: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    """Runs `dragoman translate` in this process and returns its output; `text` is its stdin."""

    def call(*args: object, text: str | bytes = b"") -> str:
        raw = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        words = ["translate", "--model", str(run), "--threads", "1", "--device", "cpu", *map(str, args)]
        code = run_command(words)
        out, err = capsysbinary.readouterr()
        assert (code, err) == (0, b"")
        return out.decode()

    return call


def test_each_line_in_has_one_line_out(translate) -> None:
    out = translate(text=ODD)
    lines = ODD.split("\n")
    assert out.endswith("\n")
    translations = out.removesuffix("\n").split("\n")
    assert len(translations) == len(lines)
    assert translations[1] == ""
    for line, translation in zip(lines, translations, strict=True):
        assert translate(text=line) == (translation + "\n" if line else ""), "alone as in company"


def test_streamed_is_what_greedy_search_finds(translate) -> None:
    assert translate("--stream", text=ODD) == translate("--beam", 1, text=ODD)


def test_a_pipe_is_read_but_once(translate, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", f"printf 'bade kiba\\nlo\\n' > {pipe}"])
    assert translate(pipe) == translate(text="bade kiba\nlo\n")
    assert writer.wait(10) == 0


def test_no_lines_in_no_lines_out(translate) -> None:
    assert translate(text="") == ""


def test_an_empty_line_stays(translate) -> None:
    assert translate(text="\n\n") == "\n\n"


def test_crlf_and_byte_order_mark_do_not_reach_the_model(translate) -> None:
    assert translate(text="\ufeffbade kiba\r\nloba\r\n") == translate(text="bade kiba\nloba\n")


def test_file_stdin_dash_gzip_and_batch_size_agree(translate, corpus: Corpus, tmp_path: Path) -> None:
    text = corpus.valid_src.read_bytes()
    packed = tmp_path / "valid.gz"
    packed.write_bytes(gzip.compress(text))
    from_file = translate(corpus.valid_src)
    assert from_file.count("\n") == text.count(b"\n")
    assert translate(text=text) == from_file
    assert translate("-", text=text) == from_file
    assert translate(packed) == from_file
    assert translate(corpus.valid_src, "--batch-tokens", 1) == from_file
    assert translate(corpus.valid_src, "--batch-tokens", 100_000) == from_file


def test_more_lines_than_one_window(translate, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows bound memory; neither they nor the samples drawn in them may show."""
    plain, drawn = translate(corpus.valid_src), translate(corpus.valid_src, "--sample", "--seed", 3)
    monkeypatch.setattr("dragoman.cli.translate._WINDOW", 3)
    assert translate(corpus.valid_src) == plain
    assert translate(corpus.valid_src, "--sample", "--seed", 3) == drawn


def test_an_output_file_appears_whole(translate, corpus: Corpus, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("of an earlier time", encoding="utf-8")
    assert translate(corpus.valid_src, "--output", output) == ""
    assert output.read_bytes().decode() == translate(corpus.valid_src)
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_an_output_file_is_left_alone_by_a_failure(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cli.translate._WINDOW", 1)
    bad, output = tmp_path / "bad", tmp_path / "out.txt"
    bad.write_bytes(b"bade\nkiba\nsch\xf6n\n")
    output.write_text("of an earlier time", encoding="utf-8")
    args = ["translate", "--model", str(run), "--threads", "1", "--output", str(output), str(bad)]
    assert run_command(args) == 1
    assert "line 3 of" in capsys.readouterr().err
    assert output.read_text(encoding="utf-8") == "of an earlier time"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "out.txt"]


def test_columns(translate) -> None:
    text = "bade kiba\n\nloba\n"
    plain = translate(text=text).splitlines()
    scored = [line.split("\t") for line in translate("--scores", text=text).splitlines()]
    assert [columns[1] for columns in scored] == plain
    assert all(float(columns[0]) <= 0 for columns in scored)
    aligned = [line.split("\t") for line in translate("--alignments", text=text).splitlines()]
    assert [columns[0] for columns in aligned] == plain
    assert aligned[1] == ["", ""], "an empty line has the columns of the others"
    for line, (translation, alignment) in zip(text.splitlines(), aligned, strict=True):
        links = [tuple(map(int, link.split("-"))) for link in alignment.split()]
        assert {tgt for _, tgt in links} == set(range(len(translation.split())))
        assert all(src < len(line.split()) for src, _ in links)


def test_nbest(translate) -> None:
    text = "bade kiba\n\nloba\n"
    rows = [line.split("\t") for line in translate("--nbest", 3, "--beam", 4, text=text).splitlines()]
    assert [int(row[0]) for row in rows] == [1, 1, 1, 2, 3, 3, 3], "nothing has one translation: nothing"
    for number in ("1", "3"):
        scores = [float(score) for n, score, _ in rows if n == number]
        assert scores == sorted(scores, reverse=True)
    best = [next(row[2] for row in rows if row[0] == number) for number in "123"]
    assert best == translate("--beam", 4, text=text).splitlines()


def test_json(translate) -> None:
    text = "bade kiba\n\nloba\n"
    records = [json.loads(line) for line in translate("--format", "json", text=text).splitlines()]
    assert [record["text"] for record in records] == translate(text=text).splitlines()
    keys = {"text", "score", "log_prob", "tokens", "token_log_probs", "alternatives", "is_cut"}
    assert all(record.keys() == keys for record in records)
    for record in records:
        assert sum(record["token_log_probs"]) == pytest.approx(record["log_prob"])
    flags = ("--format", "json", "--nbest", 2, "--alignments")
    records = [json.loads(line) for line in translate(*flags, text=text).splitlines()]
    assert all(record.keys() == keys | {"alignment"} for record in records)
    assert [len(record["alternatives"]) for record in records] == [1, 0, 1]
    assert records[0]["alternatives"][0].keys() == keys - {"alternatives"} | {"alignment"}
    assert records[1]["alignment"] == []


def test_samples_depend_on_the_seed_alone(translate, corpus: Corpus) -> None:
    def drawn(*flags: object) -> str:
        return translate(corpus.valid_src, "--sample", *flags)

    first = drawn("--seed", 1)
    assert drawn("--seed", 1, "--batch-tokens", 1) == first
    assert drawn("--seed", 2) != first
    greedy = translate(corpus.valid_src, "--beam", 1, "--engine", "torch")
    assert drawn("--top-k", 1) == greedy
    assert drawn("--temperature", 0.001) == greedy
    assert drawn("--top-p", 0.000001) == greedy


def test_stdin_may_be_closed_when_a_file_is_given(
    run: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is for a daemon: Python then has no sys.stdin at all."""
    monkeypatch.setattr(sys, "stdin", None)
    assert run_command(["translate", "--model", str(run), "--threads", "1", str(corpus.valid_src)]) == 0
    assert capsys.readouterr().out.count("\n") == 8


def test_a_reader_that_goes_away_is_no_disaster(run: Path, corpus: Corpus, tmp_path: Path) -> None:
    """`dragoman translate … | head -1`, with more output than a pipe holds."""
    many = tmp_path / "many"
    many.write_bytes(corpus.src.read_bytes() * 12)
    args = [*DRAGOMAN, "translate", "--model", str(run), "--threads", "1", "--beam", "1", "--format", "json", str(many)]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["text"]
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_control_c_leaves_no_traceback(run: Path) -> None:
    args = [*DRAGOMAN, "translate", "--model", str(run), "--threads", "1"]
    ours, theirs = os.openpty()  # at a terminal every line is answered at once: then it is surely at work
    with subprocess.Popen(
        args, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True
    ) as process:
        os.write(ours, b"bade kiba\n")
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().endswith(b"\n")
        process.send_signal(signal.SIGINT)
        assert process.stderr.read().strip() == b"error: stopped"
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 130
