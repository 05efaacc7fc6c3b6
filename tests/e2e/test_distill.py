"""`distill`: a student learns from what its teacher says, and goes on when it was stopped as if it had not been."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file
from small_run import Corpus, Ended, Forks, small, write_corpus

import dragoman
from dragoman.batches.store import open_store
from dragoman.tokens.subwords import Subwords

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

N_LINES = 2300  # three goes of the teacher, 1024 lines each but the last
_, STEPS, _, _, *REST = small(9)  # without the size of a vocabulary, which is the teacher's
FLAGS = ["--steps", STEPS, *REST]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return write_corpus(tmp_path_factory.mktemp("text"), n_pairs=N_LINES)


def command(text: Corpus, teacher: Path, out: Path, *more: str) -> list[str]:
    words = text.flags()
    del words[words.index("--tgt") : words.index("--tgt") + 2]
    return ["distill", "--teacher", str(teacher), *words, "--out", str(out), *FLAGS, *more]


@pytest.fixture(scope="module")
def whole(forks: Forks, run: Path, text: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The student that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "student"
    ended = forks.run(command(text, run, out))
    assert ended.code == 0, ended.err
    return out, ended


def pairs(student: Path) -> list[tuple[str, str]]:
    lines = (student / "distilled" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    return [(record["src"], record["tgt"]) for record in map(json.loads, lines)]


def settings(student: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads((student / "config.toml").read_text(encoding="utf-8"))


def translations(run: Path, lines: list[str]) -> dict[str, str]:
    """What the teacher says; what was cut at the limit of length is no translation."""
    teacher = dragoman.load(run, threads=1)
    chunks = [lines[i : i + 1024] for i in range(0, len(lines), 1024)]
    found = [one for chunk in chunks for one in teacher.translate(chunk)]
    return {src: one.text for src, one in zip(lines, found, strict=True) if not one.is_cut}


def test_the_pairs_are_the_teachers_translations(run: Path, text: Corpus, whole: tuple[Path, Ended]) -> None:
    student, ended = whole
    lines = text.src.read_text(encoding="utf-8").splitlines()
    expected = translations(run, lines)
    assert pairs(student) == [(src, expected[src]) for src in lines if src in expected]
    originals = dict(zip(lines, text.tgt.read_text(encoding="utf-8").splitlines(), strict=True))
    assert sum(tgt != originals[src] for src, tgt in pairs(student)) > N_LINES / 2, "the teacher is not good"
    n_cut = N_LINES - len(pairs(student))
    said = [line for line in ended.err.splitlines() if "were cut at the limit" in line]
    assert said == (
        [f"warning: {n_cut:,} translations were cut at the limit of length and are not trained on"] * (n_cut > 0)
    )
    assert f"translated 1024/{N_LINES}" in ended.err
    assert f"translated {N_LINES}/{N_LINES}" in ended.err
    assert "ETA" in ended.err


def test_the_student_is_trained_on_them(forks: Forks, run: Path, text: Corpus, tmp_path: Path) -> None:
    """Not on the originals: the text as it is when training begins."""
    student = tmp_path / "student"
    stopped = forks.run(command(text, run, student), signal_in=("dragoman.train.loop._clip", 2, signal.SIGINT))
    assert stopped.code == 130
    store, subwords = open_store(student / "encoded"), Subwords.load(student / "subwords.model")
    sides = [tuple(subwords.decode(side(i)) for side in (store.src, store.tgt)) for i in range(len(store))]
    assert sides == pairs(student)


def test_it_has_the_teachers_subwords_and_is_of_the_preset_fast(run: Path, whole: tuple[Path, Ended]) -> None:
    student, _ = whole
    assert (student / "subwords.model").read_bytes() == (run / "subwords.model").read_bytes()
    both = dragoman.load([run, student], threads=1)
    assert both("ba de") is not None, "the two can be averaged"
    assert settings(student)["text"]["teachers"] == [str(run)]
    assert settings(student)["batches"]["tokens"] == 300
    card = (student / "README.md").read_text(encoding="utf-8")
    assert "→ translations by" in card
    assert str(run).replace("_", "\\_") in card
    assert not (student / "encoded").exists()


def test_its_settings_give_the_same_weights(forks: Forks, whole: tuple[Path, Ended], tmp_path: Path) -> None:
    again = tmp_path / "again"
    ended = forks.run(["train", "--config", str(whole[0] / "config.toml"), "--out", str(again)])
    assert ended.code == 0, ended.err
    check_same_end(again, whole[0])


def check_same_end(student: Path, whole: Path) -> None:
    for name in ("distilled/pairs.jsonl", "subwords.model", "config.toml"):
        assert (student / name).read_bytes() == (whole / name).read_bytes(), name
    weights, expected = load_file(student / "model.safetensors"), load_file(whole / "model.safetensors")
    assert weights.keys() == expected.keys()
    assert all(weights[name].tobytes() == expected[name].tobytes() for name in weights)
    assert sorted(path.name for path in (student / "distilled").iterdir()) == ["pairs.jsonl", "state.json"]


@pytest.mark.parametrize(
    ("place", "nth", "number", "n_kept"),
    [
        ("dragoman.translator:Translator.translate", 1, signal.SIGKILL, 0),
        ("dragoman.translator:Translator.translate", 2, signal.SIGKILL, 1),
        ("dragoman.translator:Translator.translate", 3, signal.SIGINT, 2),
        ("dragoman.checkpoint.resumable:ResumableFile._keep", 2, signal.SIGKILL, 1),
        ("dragoman.prepare._encoded", 1, signal.SIGTERM, 3),
        ("dragoman.train.loop._clip", 7, signal.SIGKILL, 3),
    ],
)
def test_stopped_and_resumed(
    forks: Forks, run: Path, text: Corpus, whole: tuple[Path, Ended], tmp_path: Path,
    place: str, nth: int, number: int, n_kept: int,
) -> None:  # fmt: skip
    student = tmp_path / "a student"
    stopped = forks.run(command(text, run, student), signal_in=(place, nth, number))
    assert stopped.code == (-number if number == signal.SIGKILL else 128 + number), stopped.err
    advice = f"dragoman distill --resume --out {shlex.quote(str(student))}"
    if number != signal.SIGKILL:
        assert stopped.err.splitlines()[-1].endswith(f"go on with: {advice}")
        assert json.loads((student / "distilled" / "state.json").read_text(encoding="utf-8"))["elapsed_s"] > 0
    ended = forks.run(shlex.split(advice)[1:])
    assert ended.code == 0, ended.err
    done = [line.split()[1] for line in ended.err.splitlines() if line.startswith("translated ")]
    every = [f"{n}/{N_LINES}" for n in (1024, 2048, N_LINES)]
    assert done == every[n_kept:], "what was done before is not done again"
    check_same_end(student, whole[0])


@pytest.mark.parametrize("kill_at", [3, 5, 7, 9, 12, 15])
def test_a_kill_between_any_two_changes_to_the_disk(
    forks: Forks, run: Path, text: Corpus, whole: tuple[Path, Ended], tmp_path: Path, kill_at: int
) -> None:
    student = tmp_path / "student"
    killed = forks.run(command(text, run, student), kill_at=kill_at, folder=student)
    assert killed.code == -signal.SIGKILL
    args = ["distill", "--resume", "--out", str(student)]
    ended = forks.run(args if (student / "config.toml").exists() else command(text, run, student))
    assert ended.code == 0, ended.err
    check_same_end(student, whole[0])


def test_a_finished_student_trains_on_without_its_teacher(
    forks: Forks, whole: tuple[Path, Ended], tmp_path: Path
) -> None:
    student = tmp_path / "student"
    shutil.copytree(whole[0], student)
    ended = forks.run(["distill", "--resume", "--out", str(student), "--steps", "11"])
    assert ended.code == 0, ended.err
    assert "translated" not in ended.err
    assert settings(student)["train"]["steps"] == 11


def test_the_originals_may_be_trained_on_as_well(forks: Forks, run: Path, corpus: Corpus, tmp_path: Path) -> None:
    student = tmp_path / "student"
    ended = forks.run(command(corpus, run, student, "--tgt", str(corpus.tgt), "--beam", "1"))
    assert ended.code == 0, ended.err
    sides = (path.read_text(encoding="utf-8").splitlines() for path in (corpus.src, corpus.tgt))
    originals = list(zip(*sides, strict=True))
    assert len(pairs(student)) > len(originals), "the teacher's come on top"
    greedy = dragoman.load(run, threads=1).translate([src for src, _ in originals], beam=1)
    said = {(src, one.text) for (src, _), one in zip(originals, greedy, strict=True) if not one.is_cut}
    assert set(pairs(student)) == said | set(originals)
    assert settings(student)["text"]["teacher_beam"] == 1


def test_a_budget_covers_the_teacher_too(forks: Forks, run: Path, corpus: Corpus, tmp_path: Path) -> None:
    student = tmp_path / "student"
    args = [word for word in command(corpus, run, student) if word not in ("--steps", STEPS)]
    ended = forks.run([*args, "--budget", "9s"])
    assert ended.code == 0, ended.err
    lines = ended.err.splitlines()
    assert lines.index("the plan for 9s:") > lines.index(f"translating 240 lines with {run}")
    assert not any(line.startswith("  tokens.vocab_size") for line in lines), "it is the teacher's"
    last = json.loads((student / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    spent = json.loads((student / "distilled" / "state.json").read_text(encoding="utf-8"))["elapsed_s"]
    assert 0 < spent < last["elapsed_s"]
