"""The same seed gives the same run, and a run stopped at any instant goes on as if it had not been."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_run import DRAGOMAN, ENVIRONMENT, Corpus, Ended, Forks, small

import dragoman

STEPS = 21  # neither logging (4), saving (6) nor validation (12) falls on the end
ORDINARY = small(STEPS, "train.lr=0.01")
# An update takes two batches, and what dropout draws depends on the step and on which of the two it is.
ACCUMULATED = small(
    STEPS, "train.lr=0.01", "train.accumulate=2", "model.dropout=0.3", "train.schedule='linear'",
    "train.optimizer='muon'", "tokens.dropout=0.2", "train.tune_search=true", "train.embeddings='text'",
    "train.warmup_steps=4", "train.both_ways=0.5",
)  # fmt: skip
TIMES = {"elapsed_s", "tokens_per_s"}


def command(corpus: Corpus, out: Path, flags: list[str] = ORDINARY) -> list[str]:
    return ["train", *corpus.flags(), "--out", str(out), *flags]


def resume(forks: Forks, out: Path, *flags: str) -> Ended:
    return forks.run(["train", "--resume", "--out", str(out), *flags])


def trained(forks: Forks, corpus: Corpus, out: Path, flags: list[str] = ORDINARY) -> Path:
    ended = forks.run(command(corpus, out, flags))
    assert ended.code == 0, ended.err
    return out


@pytest.fixture(scope="module")
def whole(forks: Forks, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that was never stopped."""
    return trained(forks, corpus, tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="module")
def whole_accumulated(forks: Forks, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(forks, corpus, tmp_path_factory.mktemp("whole") / "run", ACCUMULATED)


def records(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]


def state(checkpoint: Path) -> dict[str, Any]:
    values = json.loads((checkpoint / "state.json").read_text(encoding="utf-8"))
    return {key: value for key, value in values.items() if key not in TIMES}


def saved_steps(run: Path) -> list[int]:
    return [int(folder.name.removeprefix("step-")) for folder in sorted((run / "checkpoints").iterdir())]


def files(run: Path) -> set[str]:
    names = {str(path.relative_to(run)) for path in run.rglob("*")}
    return {name for name in names if not name.startswith("tensorboard")}


def tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (str(t.dtype), t.shape, t.tobytes()) for name, t in load_file(path).items()}


def check_same_end(run: Path, whole: Path) -> None:
    """Every tensor to the last bit, every record and every file; only the times may differ."""
    assert files(run) == files(whole)
    for name in sorted(name for name in files(whole) if name.endswith(".safetensors")):
        assert tensors(run / name) == tensors(whole / name), name
    for folder in sorted((whole / "checkpoints").iterdir()):
        assert state(run / "checkpoints" / folder.name) == state(folder)
    assert records(run) == records(whole)
    for name in ("config.toml", "subwords.model", "shortlist.safetensors"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()


def test_the_same_seed_gives_the_same_run(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    check_same_end(trained(forks, corpus, tmp_path / "run"), whole)


def test_another_seed_gives_another_run(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    other = trained(forks, corpus, tmp_path / "run", [*ORDINARY, "--seed", "2"])
    assert tensors(other / "model.safetensors") != tensors(whole / "model.safetensors")


# The power fails just before the n-th change to the run folder. A run of this size makes about a hundred: these are
# some from each of its parts.
@pytest.mark.parametrize("kill_at", [1, 3, 9, 13, 24, 37, 50, 63, 74, 82, 86, 90, 92, 94])
def test_a_kill_between_any_two_changes_to_the_disk(
    forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path, kill_at: int
) -> None:
    run = tmp_path / "run"
    killed = forks.run(command(corpus, run), kill_at=kill_at, folder=run)
    assert killed.code == -signal.SIGKILL
    if not (run / "config.toml").exists():
        assert kill_at <= 3, "after its first moment a run can be resumed, until then it can be begun again"
        trained(forks, corpus, run)
    else:
        ended = resume(forks, run)
        assert ended.code == 0, ended.err
    check_same_end(run, whole)


@pytest.mark.parametrize(
    ("place", "nth"),
    [
        ("dragoman.prepare._encoded", 1),
        ("dragoman.checkpoint.format.save_file", 2),  # the optimizer's half of the first checkpoint
        ("dragoman.checkpoint.format.save_file", 5),
        ("dragoman.session.updates", 1),
        ("dragoman.checkpoint.folder.remove_folder", 1),
        ("dragoman.session:Session._validate", 1),
        ("dragoman.ending.average_weights", 1),
        ("dragoman.checkpoint.card.draw_curve", 1),
        ("dragoman.checkpoint.card.write_text", 1),
    ],
)
def test_a_kill_in_any_part_of_a_run_with_dropout_and_accumulation(
    forks: Forks, corpus: Corpus, whole_accumulated: Path, tmp_path: Path, place: str, nth: int
) -> None:
    run = tmp_path / "run"
    killed = forks.run(command(corpus, run, ACCUMULATED), signal_in=(place, nth, signal.SIGKILL))
    assert killed.code == -signal.SIGKILL
    ended = resume(forks, run)
    assert ended.code == 0, ended.err
    check_same_end(run, whole_accumulated)


@pytest.mark.parametrize(("step", "number"), [(1, signal.SIGTERM), (6, signal.SIGINT), (19, signal.SIGTERM)])
def test_a_request_to_stop_is_heeded_after_the_update(
    forks: Forks, corpus: Corpus, whole_accumulated: Path, tmp_path: Path, step: int, number: int
) -> None:
    run = tmp_path / "a run"  # the space must survive the advice on how to go on
    stopped = forks.run(command(corpus, run, ACCUMULATED), signal_in=("dragoman.train.loop._clip", step, number))
    assert stopped.code == 128 + number
    assert stopped.err.splitlines()[-1].startswith(f"saved at step {step}; go on with: dragoman train --resume")
    assert "Traceback" not in stopped.err
    assert step in saved_steps(run)
    check_resumes_as_advised(forks, stopped, run, whole_accumulated)


def check_resumes_as_advised(forks: Forks, stopped: Ended, run: Path, whole: Path) -> None:
    """The command that the last line names, taken verbatim, ends the run as if it had not been stopped."""
    advice = re.search(r"go on with: dragoman (.*)$", stopped.err)
    assert advice is not None, stopped.err
    ended = forks.run(shlex.split(advice[1]))
    assert ended.code == 0, ended.err
    check_same_end(run, whole)


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("dragoman.prepare.read_valid", signal.SIGTERM),
        ("dragoman.prepare._encoded", signal.SIGINT),
        ("dragoman.ending.average_weights", signal.SIGTERM),
        ("dragoman.checkpoint.card.draw_curve", signal.SIGINT),
    ],
)
def test_a_request_to_stop_outside_the_updates_is_heeded_at_once(
    forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path, place: str, number: int
) -> None:
    run = tmp_path / "a run"
    stopped = forks.run(command(corpus, run), signal_in=(place, 1, number))
    assert stopped.code == 128 + number
    assert stopped.err.splitlines()[-1].startswith("stopped; go on with: ")
    assert "Traceback" not in stopped.err
    check_resumes_as_advised(forks, stopped, run, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_shared_by_two_processes_is_that_of_one(
    forks: Forks, corpus: Corpus, whole_accumulated: Path, tmp_path: Path, number: int
) -> None:
    """Stopped, and gone on with, on two threads: every checkpoint and the final model as by one that was not."""
    run = tmp_path / "run"
    flags = [*ACCUMULATED, "--threads", "2"]
    stopped = forks.run(command(corpus, run, flags), signal_in=("dragoman.train.loop._clip", 9, number))
    assert stopped.code == (-number if number == signal.SIGKILL else 128 + number)
    ended = resume(forks, run)
    assert ended.code == 0, ended.err
    assert "Traceback" not in stopped.err + ended.err
    assert "threads = 2" in (run / "config.toml").read_text(encoding="utf-8")
    assert files(run) == files(whole_accumulated)
    for name in sorted(name for name in files(run) if name.endswith(".safetensors")):
        assert tensors(run / name) == tensors(whole_accumulated / name), name


def test_a_checkpoint_of_an_earlier_version_goes_on(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    """The first ones held the states of random generators, which nobody needs any more."""
    run = tmp_path / "run"
    stopped = forks.run(command(corpus, run, ACCUMULATED), signal_in=("dragoman.train.loop._clip", 9, signal.SIGINT))
    assert stopped.code == 130
    path = run / "checkpoints" / "step-00000009" / "training.safetensors"
    old = {**load_file(path), "random.cpu": np.zeros(5056, dtype=np.uint8), "random.cuda": np.zeros(16, dtype=np.uint8)}
    save_file(old, path, {"format": "dragoman", "version": "1"})
    path = path.with_name("state.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({k: v for k, v in values.items() if k not in ("pace", "curve")}), encoding="utf-8")
    ended = resume(forks, run)
    assert ended.code == 0, ended.err
    last = run / "checkpoints" / f"step-{STEPS:08d}" / "training.safetensors"
    assert {name.split(".")[0] for name in load_file(last)} == {"exp_avg", "exp_avg_sq", "momentum"}


def test_stopping_again_and_again(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = forks.run(command(corpus, run), signal_in=("dragoman.train.loop._clip", 3, signal.SIGINT))
    for after in (5, 2, 1):
        assert ended.code == 130, ended.err
        resumed = ["train", "--resume", "--out", str(run)]
        ended = forks.run(resumed, signal_in=("dragoman.train.loop._clip", after, signal.SIGINT))
    assert resume(forks, run).code == 0
    check_same_end(run, whole)


def test_a_signal_from_outside(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    """As a user does it: the real command, a real Ctrl-C, at a step that nobody can foretell."""
    run, flags = tmp_path / "run", [*ORDINARY, "--set", "train.log_every=1"]
    args = [*DRAGOMAN, *command(corpus, run, flags), "--steps", "100000"]
    seen = []
    with subprocess.Popen(args, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            seen.append(line)
            if line.startswith("step 2/"):
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    saved = re.match(r"saved at step (\d+); go on with: dragoman train --resume --out ", seen[-1])
    assert saved is not None, seen[-1]
    steps = int(saved[1]) + 2
    assert resume(forks, run, "--steps", str(steps)).code == 0
    whole = trained(forks, corpus, tmp_path / "whole", [*flags, "--steps", str(steps)])
    for name in ("model.safetensors", "training.safetensors"):
        path = Path("checkpoints", f"step-{steps:08d}", name)
        assert tensors(run / path) == tensors(whole / path)


def test_a_log_line_cut_short_by_a_kill_is_written_again(
    forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    forks.run(command(corpus, run), signal_in=("dragoman.train.loop._clip", 9, signal.SIGKILL))
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 8, "lo')
    assert resume(forks, run).code == 0
    check_same_end(run, whole)


def test_only_scheduled_checkpoints_are_averaged(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    """A checkpoint made because someone pressed Ctrl-C must not change the model: it is deleted, not averaged."""
    run = tmp_path / "run"
    forks.run(command(corpus, run), signal_in=("dragoman.train.loop._clip", 20, signal.SIGINT))
    assert 20 in saved_steps(run)
    assert resume(forks, run).code == 0
    assert 20 not in saved_steps(run)
    assert "average of 2 checkpoints, steps 18 to 21" in records(run)[-1]["final"]
    check_same_end(run, whole)


def test_the_last_and_the_best_checkpoints_are_kept(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    """A rate that ruins the model after the first validation makes that validation the best."""
    ruin = ["train.lr=0.01", "train.warmup_steps=1", "train.valid_every=3", "train.save_every=4", "train.keep=2"]
    run = trained(forks, corpus, tmp_path / "run", small(20, *ruin))
    validations = [record for record in records(run) if "valid_loss" in record]
    best = max(validations, key=lambda record: (record["valid_bleu"], -record["valid_loss"]))["step"]
    assert saved_steps(run) == sorted({best, 16, 20})


def test_where_the_rate_has_fallen_to_zero_the_last_weights_are_taken(
    forks: Forks, corpus: Corpus, tmp_path: Path
) -> None:
    """BLEU on a few sentences is noise: once it preferred a checkpoint from before the rate had come down.

    Here the validation text wants no translation: the more the model learns, the worse it does there.
    """
    out = tmp_path / "run"
    untranslated = ["--valid-tgt", str(corpus.valid_src)]
    falling = ["train.lr=0.02", "train.warmup_steps=1", "train.schedule='linear'", "train.average=1"]
    ended = forks.run([*command(corpus, out, small(60, *falling)), *untranslated])
    assert ended.code == 0, ended.err
    validations = [record for record in records(out) if "valid_loss" in record]
    best = max(validations, key=lambda record: (record["valid_bleu"], -record["valid_loss"]))["step"]
    assert best != 60
    assert records(out)[-1]["final"] == "checkpoint of step 60"


def test_training_stops_when_patience_runs_out(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    flags = small(400, "train.valid_every=2", "train.patience=2", "train.lr=1.0", "train.warmup_steps=1")
    out = tmp_path / "run"
    ended = forks.run(command(corpus, out, flags))
    assert ended.code == 0, ended.err
    last = saved_steps(out)[-1]
    assert last < 400
    validated = [(r["valid_bleu"], -r["valid_loss"]) for r in records(out) if "valid_loss" in r]
    assert validated.index(max(validated)) == len(validated) - 3, "two validations without improvement, no more"
    assert records(out)[-1]["step"] == last
    assert "no better" in ended.err


def test_more_steps_go_on_with_a_finished_run(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    """The updates are those of a run that was longer from the start."""
    long = trained(forks, corpus, tmp_path / "long", [*ORDINARY, "--steps", "30"])
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    ended = resume(forks, run, "--steps", "30")
    assert ended.code == 0, ended.err
    assert f"going on from step {STEPS}" in ended.err
    last = "checkpoints/step-00000030"
    for name in ("model.safetensors", "training.safetensors"):
        assert tensors(run / last / name) == tensors(long / last / name)
    assert [r["step"] for r in records(run) if "final" in r] == [30]


def test_a_finished_run_says_that_it_is_finished(forks: Forks, whole: Path) -> None:
    before = {name: (whole / name).read_bytes() for name in files(whole) if (whole / name).is_file()}
    ended = resume(forks, whole)
    assert ended.code == 0
    assert f"{whole} is finished: {STEPS} steps; give more --steps to go on" in ended.err
    assert {name: (whole / name).read_bytes() for name in files(whole) if (whole / name).is_file()} == before


def test_the_first_command_with_resume_added_goes_on(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    """Repeating what one typed, preset and all, is the natural way to go on."""
    run = tmp_path / "run"
    typed = [*command(corpus, run, small(3)), "--preset", "tiny"]
    stopped = forks.run(typed, signal_in=("dragoman.train.loop._clip", 2, signal.SIGINT))
    assert stopped.code == 130
    ended = forks.run([*typed, "--resume"])
    assert ended.code == 0, ended.err
    assert "going on from step 2" in ended.err


@pytest.mark.parametrize(
    ("name", "value"),
    [("model.d_model", 64), ("model.dropout", 0.2), ("train.seed", 5), ("batches.tokens", 99), ("text.src", "other")],
)
def test_what_would_make_it_another_run_cannot_change(forks: Forks, whole: Path, name: str, value: object) -> None:
    before = files(whole)
    ended = resume(forks, whole, "--set", f"{name}={value}")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {name} cannot change in a run that goes on\nhint: ")
    assert files(whole) == before


def test_a_run_can_start_from_a_trained_model(forks: Forks, corpus: Corpus, whole: Path, tmp_path: Path) -> None:
    """Shape, vocabulary and weights come from the model, the rest from the flags."""
    out = tmp_path / "run"
    flags = [
        "--init", str(whole), "--steps", "1", "--threads", "1", "--device", "cpu",
        "--set", "batches.tokens=300", "--set", "train.warmup_steps=1000000", "--set", "search.max_extra_tokens=6",
    ]  # fmt: skip
    trained(forks, corpus, out, flags)
    assert (out / "subwords.model").read_bytes() == (whole / "subwords.model").read_bytes()
    begun, given = load_file(out / "model.safetensors"), load_file(whole / "model.safetensors")
    assert begun.keys() == given.keys()
    for name, tensor in given.items():
        assert abs(begun[name] - tensor).max() < 1e-5, "one update at a rate of nearly nothing"


@pytest.mark.parametrize(("share", "learns"), [(0.0, False), (1.0, True)])
def test_reading_the_text_both_ways_teaches_both(forks: Forks, tmp_path: Path, share: float, learns: bool) -> None:
    """Two languages without a letter in common: who never wrote the first cannot say what comes next in it."""
    srcs = [" ".join("abcde"[(i // 5**k) % 5] * 3 for k in range(3)) for i in range(125)]
    tgts = [src.translate(str.maketrans("abcde", "vwxyz")) for src in srcs]
    paths = Corpus(*(tmp_path / name for name in ("src", "tgt", "valid.src", "valid.tgt")))
    for path, lines in zip((paths.src, paths.tgt, paths.valid_src, paths.valid_tgt), (srcs, tgts) * 2, strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = trained(forks, paths, tmp_path / "run", small(120, "train.lr=0.01", f"train.both_ways={share}"))
    translator = dragoman.load(run, engine="torch")
    there, back = translator.loss(srcs, tgts), translator.loss(tgts, srcs)
    assert there < 1
    assert (back < 1) == learns, back


def test_a_shortlist_that_lacks_what_the_model_writes_is_not_kept(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    """Here one with nothing but the source itself takes its place, and the model writes no digits."""
    run, digits = tmp_path / "run", tmp_path / "digits"
    digits.write_text("1 2 3\n" * 8, encoding="utf-8")
    falling = ["train.lr=0.02", "train.warmup_steps=1", "train.schedule='linear'", "train.average=1"]
    flags = [*command(corpus, run, small(60, *falling)), "--valid-src", str(digits)]
    stopped = forks.run(flags, signal_in=("dragoman.train.loop._clip", 9, signal.SIGINT))
    assert stopped.code == 130
    made = load_file(run / "shortlist.safetensors")
    few, none = made["common"][:4], made["common"][:0]
    empty = {"common": few, "starts": np.zeros_like(made["starts"]), "candidates": none, "usual": few}
    save_file(empty, run / "shortlist.safetensors", {"version": "2"})
    ended = resume(forks, run)
    assert ended.code == 0, ended.err
    assert re.search(r"no shortlist is kept: it holds [\d.]+ % of the subwords of these translations", ended.err)
    assert not (run / "shortlist.safetensors").exists()
