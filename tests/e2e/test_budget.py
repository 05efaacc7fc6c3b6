"""`train --budget`: a plan with reasons, an end in time, and settings that give the same weights again."""

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
from small_run import Corpus, Forks

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUDGET_S = 9
SHAPE = [
    "model.d_model=32", "model.d_ff=64", "model.n_heads=2", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
    "batches.max_len_tokens=64", "search.max_extra_tokens=6", "model.dropout=0.1",
]  # fmt: skip


def command(corpus: Corpus, out: Path, *more: str) -> list[str]:
    sets = [word for setting in SHAPE for word in ("--set", setting)]
    flags = ["--budget", f"{BUDGET_S}s", "--vocab-size", "300", "--threads", "1", "--device", "cpu"]
    return ["train", *corpus.flags(), "--out", str(out), *flags, *sets, *more]


def settings(run: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def weights(run: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(run / "model.safetensors").items()}


@pytest.fixture(scope="module")
def finished(forks: Forks, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    run = tmp_path_factory.mktemp("budget") / "run"
    ended = forks.run(command(corpus, run))
    assert ended.code == 0, ended.err
    return run, ended.err


def test_the_plan_is_shown_with_a_reason_for_each_choice(finished: tuple[Path, str]) -> None:
    run, err = finished
    lines = err.splitlines()
    start = lines.index(f"the plan for {BUDGET_S}s:") + 1
    plan = [line for line in lines[start:] if line.startswith("  ")]
    chosen = {line.split()[0]: line.split(maxsplit=2) for line in plan}
    assert all(len(words) == 3 for words in chosen.values()), "setting, value, reason"
    for name in ("train.accumulate", "batches.tokens", "model.norm", "train.lr", "train.warmup_steps"):
        assert name in chosen
        section, key = name.split(".")
        assert str(settings(run)[section][key]) == chosen[name][1], "what was shown is what was done"
    given = {setting.split("=")[0] for setting in SHAPE} | {"tokens.vocab_size"}
    assert not given & chosen.keys(), "what was given is not chosen"
    for setting in SHAPE:
        name, value = setting.split("=")
        section, key = name.split(".")
        assert settings(run)[section][key] == json.loads(value)


def test_it_ends_where_the_time_is_up_with_the_rate_at_zero(finished: tuple[Path, str]) -> None:
    """How exactly, is measured in benchmarks: machines are shared."""
    run, _ = finished
    train = settings(run)["train"]
    last = records(run)[-1]
    assert "budget_s" not in train
    assert last["step"] == train["steps"]
    assert train["pace"][-1] == [train["steps"] + 1, 1.0]
    rates = [record["lr"] for record in records(run) if "lr" in record]
    assert rates[-1] < 0.05 * max(rates)
    assert "9 s" not in (run / "README.md").read_text(encoding="utf-8")
    assert "of a budget of 0.15" in (run / "README.md").read_text(encoding="utf-8")


def test_while_it_trains_it_says_what_to_expect(finished: tuple[Path, str]) -> None:
    run, err = finished
    expected = [record["expected_bleu"] for record in records(run) if "expected_bleu" in record]
    assert expected
    assert all(low <= likely <= high for low, likely, high in expected)
    assert "; at the end probably loss" in err
    assert "10 more minutes would give about BLEU" in err


def test_its_settings_give_the_same_weights_without_a_clock(
    forks: Forks, finished: tuple[Path, str], tmp_path: Path
) -> None:
    run, _ = finished
    again = tmp_path / "again"
    ended = forks.run(["train", "--config", str(run / "config.toml"), "--out", str(again)])
    assert ended.code == 0, ended.err
    assert weights(again) == weights(run)
    assert settings(again) == settings(run)


def test_stopped_and_resumed_it_spends_the_rest(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    stopped = forks.run(command(corpus, run), signal_in=("dragoman.session:Session._keep_pace", 40, signal.SIGINT))
    assert stopped.code == 130, stopped.err
    spent = max(json.loads(p.read_text(encoding="utf-8"))["elapsed_s"] for p in run.glob("checkpoints/*/state.json"))
    assert 0 < spent < BUDGET_S
    ended = forks.run(shlex.split(stopped.err.splitlines()[-1].partition("go on with: dragoman ")[2]))
    assert ended.code == 0, ended.err
    assert "the plan for" not in ended.err, "it was made before"
    last = records(run)[-1]
    assert "final" in last
    assert spent < last["elapsed_s"]
    assert settings(run)["train"]["pace"][-1] == [last["step"] + 1, 1.0]
    again = forks.run([*command(corpus, run), "--resume"])
    assert again.code == 0
    assert "is finished" in again.err


def test_more_steps_go_on_with_a_run_whose_time_was_up(
    forks: Forks, finished: tuple[Path, str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished[0], run)
    steps = settings(run)["train"]["steps"] + 5
    ended = forks.run(["train", "--resume", "--out", str(run), "--steps", str(steps)])
    assert ended.code == 0, ended.err
    assert records(run)[-1]["step"] == settings(run)["train"]["steps"] == steps
    assert "pace" not in settings(run)["train"]


def test_killed_before_the_plan_was_made_it_plans_again(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    killed = forks.run(command(corpus, run), signal_in=("dragoman.prepare._encoded", 1, signal.SIGKILL))
    assert killed.code == -signal.SIGKILL
    ended = forks.run(["train", "--resume", "--out", str(run)])
    assert ended.code == 0, ended.err
    assert "the plan for" in ended.err
    assert settings(run)["model"]["d_model"] == 32, "what was given then still holds"


def test_what_cannot_be_is_refused(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    for wrong, message in (("30", "is not a length of time"), ("soon", "is not a length of time"), ("0s", "above 0")):
        ended = forks.run(["train", *corpus.flags(), "--out", str(tmp_path / "run"), "--budget", wrong])
        assert ended.code == 2, wrong
        assert message in ended.err.splitlines()[0]
        assert not (tmp_path / "run").exists()
    ended = forks.run(command(corpus, tmp_path / "run", "--steps", "5"))
    assert ended.code == 2
    assert ended.err.startswith("error: --budget and --steps both say how long to train")


def test_too_little_time_leaves_nothing_behind(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    ended = forks.run(["train", *corpus.flags(), "--out", str(tmp_path / "run"), "--budget", "0.5s"])
    assert ended.code == 2
    assert "give more time" in ended.err
    assert not (tmp_path / "run").exists()
