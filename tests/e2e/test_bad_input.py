"""Bad input gets one clear sentence, an exit code that is not 0, and leaves nothing half-written behind."""

from __future__ import annotations

import gzip
import io
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from small_run import DRAGOMAN, ENVIRONMENT, SHARED_STEPS, Corpus, Forks, small

from dragoman.cli.main import run as run_command
from dragoman.tokens.subwords import Subwords

Change = Callable[[Path], object]


@dataclass(frozen=True)
class Bad:
    """A mistake: the command, the files it needs, and what the answer must say."""

    args: str  # {f} is the folder with the files, {model} a copy of a good run
    code: int
    says: tuple[str, ...]  # in the error line
    hint: tuple[str, ...] = ()
    files: tuple[tuple[str, str | bytes], ...] = ()
    model: Change | None = None  # does something bad to the copy


TWO = "train --src {f}/a --tgt {f}/b --out {f}/out"
GOOD = (("a", "eins\nzwei\n"), ("b", "one\ntwo\n"))
TRAIN = TWO + " --threads 1 "
CONFIG = TRAIN + "--config {f}/run.toml"
PAIRS = "train --pairs {f}/pairs{end} --out {f}/out"
DISTILL = "distill --teacher {model} --out {f}/out --threads 1 "
TRANSLATE = "translate --model {model} --threads 1 --output {f}/out "
EVALUATE = "evaluate --model {model} --threads 1 --src {f}/a --ref {f}/b"
PICKLE = pickle.dumps({"weights": [1.0]})


def _zip() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("archive/data.pkl", PICKLE)
    return packed.getvalue()


def _config(text: str) -> tuple[tuple[str, str], ...]:
    return (*GOOD, ("run.toml", text))


def _write(name: str, content: bytes) -> Change:
    return lambda model: (model / name).write_bytes(content)


def _remove(name: str) -> Change:
    return lambda model: (model / name).unlink()


def _truncate(name: str) -> Change:
    return lambda model: (model / name).write_bytes((model / name).read_bytes()[:-100])


def _resave(changed: Callable[[dict[str, np.ndarray]], object], version: str | None = "1") -> Change:
    """Weights changed in some way, in a sound file."""

    def change(model: Path) -> None:
        weights = load_file(model / "model.safetensors")
        changed(weights)
        save_file(weights, model / "model.safetensors", {} if version is None else {"version": version})

    return change


def _other_subwords(model: Path) -> None:
    Subwords.train(["abc abc abd", "bcd bca"], 268).save(model / "subwords.model")


def _in_config(old: str, new: str) -> Change:
    def change(model: Path) -> None:
        text = (model / "config.toml").read_text(encoding="utf-8")
        assert old in text
        (model / "config.toml").write_text(text.replace(old, new), encoding="utf-8")

    return change


CASES: dict[str, Bad] = {
    # The text to train on.
    "src missing": Bad(TWO, 1, ("{f}/a does not exist",), files=GOOD[1:]),
    "src is a folder": Bad("train --src {f} --tgt {f}/b --out {f}/out", 1, ("{f} is a directory",), files=GOOD),
    "files of unequal length": Bad(
        TWO, 1, ("{f}/b has 3 lines but {f}/a has 2",), ("come apart near line",),
        files=(GOOD[0], ("b", "one\nand\ntwo\n")),
    ),
    "validation of unequal length": Bad(
        TRAIN + "--valid-src {f}/a --valid-tgt {f}/c", 1, ("{f}/a has 2 lines but {f}/c has 1",), ("line",),
        files=(*GOOD, ("c", "one\n")),
    ),
    "validation missing": Bad(TRAIN + "--valid-src {f}/c --valid-tgt {f}/b", 1, ("{f}/c does not exist",), files=GOOD),
    "src without tgt": Bad("train --src {f}/a --out {f}/out", 2, ("text.src", "without text.tgt"), files=GOOD),
    "validation src without tgt": Bad(TRAIN + "--valid-src {f}/a", 2, ("text.valid_src", "text.valid_tgt"), files=GOOD),
    "two files and pairs": Bad(TWO + " --pairs {f}/c.tsv", 2, ("text.pairs excludes",), files=GOOD),
    "no text at all": Bad("train --out {f}/out", 2, ("no training text",), ("--src",)),
    "empty files": Bad(TWO, 1, ("no usable pair in {f}/a and {f}/b",), ("empty",), files=(("a", ""), ("b", ""))),
    "nothing but empty pairs": Bad(TWO, 1, ("no usable pair",), ("empty side",), files=(("a", "\n"), ("b", "x\n"))),
    "Latin-1": Bad(
        TWO, 1, ("{f}/a does not look like UTF-8: 2 of 2 lines",), ("iconv",),
        files=(("a", "schön\nmüde\n".encode("latin-1")), GOOD[1]),
    ),
    "UTF-16": Bad(TWO, 1, ("{f}/a is UTF-16",), ("iconv",), files=(("a", "eins\nzwei\n".encode("utf-16")), GOOD[1])),
    "gzip cut short": Bad(
        TWO, 1, ("{f}/a is a damaged gzip file",), ("gzip -t",),
        files=(("a", gzip.compress(b"eins\nzwei\n")[:-9]), GOOD[1]),
    ),
    "TSV with three columns": Bad(
        PAIRS.replace("{end}", ".tsv"), 1, ("line 2 of {f}/pairs.tsv has 3",), ("tab",),
        files=(("pairs.tsv", "a\tb\na\tb\tc\n"),),
    ),
    "JSONL that is not JSON": Bad(
        PAIRS.replace("{end}", ".jsonl"), 1, ("line 2 of {f}/pairs.jsonl is not JSON",), ('{"src"',),
        files=(("pairs.jsonl", '{"src": "a", "tgt": "b"}\n{"src": \n'),),
    ),
    "JSONL without tgt": Bad(
        PAIRS.replace("{end}", ".jsonl"), 1, ('line 1 of {f}/pairs.jsonl does not have "src" and "tgt"',),
        files=(("pairs.jsonl", '{"src": "a"}\n'),),
    ),
    "pairs of no known format": Bad(
        PAIRS.replace("{end}", ".xlsx"), 2, ("{f}/pairs.xlsx is neither .tsv nor .jsonl",), ("name it",),
        files=(("pairs.xlsx", "a"),),
    ),
    "every pair too long": Bad(
        TRAIN + "--vocab-size 270 --set batches.max_len_tokens=2", 1, ("no pair is left",), ("max_len_tokens",),
        files=GOOD,
    ),
    # Flags and settings.
    "unknown command": Bad("trian", 2, ("trian",), ("dragoman --help",)),
    "unknown flag": Bad(TRAIN + "--stepps 3", 2, ("--stepps",), ("dragoman train --help",), files=GOOD),
    "a flag without its value": Bad("train --out", 2, ("--out", "argument"), ("--help",)),
    "no --out": Bad("train --src {f}/a --tgt {f}/b", 2, ("Missing option", "--out"), files=GOOD),
    "unknown preset": Bad(TRAIN + "--preset huge", 2, ("huge", "tiny"), files=GOOD),
    "preset and init": Bad(TRAIN + "--preset tiny --init {model}", 2, ("--preset and --init",), files=GOOD),
    "unknown section": Bad(CONFIG, 2, ("no section modle",), ("did you mean model?",), files=_config("[modle]\n")),
    "unknown key": Bad(
        CONFIG, 2, ("no setting model.d_modle",), ("did you mean model.d_model?",),
        files=_config("[model]\nd_modle=8\n"),
    ),
    "unknown key in --set": Bad(
        TRAIN + "--set train.warmup=4", 2, ("no setting train.warmup",), ("train.warmup_steps",), files=GOOD
    ),
    "a setting above all sections": Bad(
        CONFIG, 2, ("train is a section",), ("[train]",), files=_config("train = 5\n")
    ),
    "a text for a number": Bad(
        CONFIG, 2, ("model.d_model='wide' is not a whole number",), files=_config('[model]\nd_model="wide"\n')
    ),
    "a fraction for a whole number": Bad(TRAIN + "--set train.steps=1.5", 2, ("train.steps=1.5",), files=GOOD),
    "malformed TOML": Bad(CONFIG, 2, ("{f}/run.toml is not TOML", "line 1"), files=_config("[model\n")),
    "TOML that is not UTF-8": Bad(CONFIG, 2, ("{f}/run.toml is not TOML",), files=(*GOOD, ("run.toml", b"\xff\xfe"))),
    "no such config": Bad(CONFIG, 2, ("{f}/run.toml cannot be read",), files=GOOD),
    "--set without =": Bad(TRAIN + "--set train.steps", 2, ('"train.steps" is not section.key=value',), files=GOOD),
    "--set without a section": Bad(TRAIN + "--set steps=3", 2, ('"steps=3" is not section.key=value',), files=GOOD),
    "steps that are no number": Bad(TRAIN + "--steps many", 2, ("many", "--steps"), files=GOOD),
    "compiled on a processor": Bad(
        TRAIN + "--device cpu --set train.compile=true", 2, ("train.compile=true", "GPU"), ("leave it out",), files=GOOD
    ),
    "negative steps": Bad(TRAIN + "--steps -3", 2, ("train.steps=-3",), files=GOOD),
    "no threads": Bad(TWO + " --threads 0", 2, ("train.threads=0",), files=GOOD),
    "a negative seed": Bad(TRAIN + "--seed -1", 2, ("train.seed=-1",), files=GOOD),
    "steps and epochs in one file": Bad(
        CONFIG, 2, ("train.steps and train.epochs",), files=_config("[train]\nsteps=5\nepochs=2\n")
    ),
    "heads that do not divide d_model": Bad(
        TRAIN + "--set model.d_model=30 --set model.n_heads=4", 2, ("model.d_model=30", "n_heads=4"), ("d_model=28",),
        files=GOOD,
    ),
    "a vocabulary too small for bytes": Bad(TRAIN + "--vocab-size 100", 2, ("tokens.vocab_size=100",), files=GOOD),
    "a vocabulary too small for the text": Bad(
        TRAIN + "--vocab-size 262", 2, ("tokens.vocab_size=262 is too small",), ("use more than",), files=GOOD
    ),
    "label smoothing of 1.5": Bad(TRAIN + "--set train.label_smoothing=1.5", 2, ("smoothing=1.5",), files=GOOD),
    "dropout of 1": Bad(TRAIN + "--set model.dropout=1.0", 2, ("model.dropout=1.0",), files=GOOD),
    "an unknown norm": Bad(TRAIN + "--set model.norm=batch", 2, ('model.norm="batch"',), ("post, pre",), files=GOOD),
    "more to average than is kept": Bad(
        TRAIN + "--set train.keep=2", 2, ("train.average=5", "train.keep=2"), ("train.keep=5",), files=GOOD
    ),
    "--out is a file": Bad(
        "train --src {f}/a --tgt {f}/b --out {f}/c", 2, ("{f}/c is a file",), files=(*GOOD, ("c", "precious"))
    ),
    "--out below a file": Bad("train --src {f}/a --tgt {f}/b --out {f}/a/out", 1, ("{f}/a/out",), files=GOOD),
    "--out is not empty": Bad(
        "train --src {f}/a --tgt {f}/b --out {model}", 2, ("{model} is not empty",), ("--resume",), files=GOOD
    ),
    "--resume without a run": Bad("train --resume --out {f}/out", 2, ("no run to resume in {f}/out",)),
    "--init without a model": Bad(TRAIN + "--init {f}/none", 1, ("{f}/none is not a run folder",), files=GOOD),
    "--init with damaged weights": Bad(
        TRAIN + "--init {model}", 1, ("{model}/model.safetensors cannot be read",), files=GOOD,
        model=_truncate("model.safetensors"),
    ),
    # A teacher.
    "no teacher": Bad("distill --src {f}/a --out {f}/out", 2, ("there is no teacher",), ("--teacher",), files=GOOD),
    "nothing to teach": Bad(DISTILL, 2, ("text.teachers translate text.src, which is not given",), ("text.src",)),
    "a teacher that is no model": Bad(
        "distill --teacher {f}/none --src {f}/a --out {f}/out", 1, ("{f}/none is not a run folder",), files=GOOD
    ),
    "teachers with other subwords": Bad(
        DISTILL + "--teacher {good} --src {f}/a", 1, ("{model}/subwords.model has 268 subwords",), files=GOOD,
        model=_other_subwords,
    ),
    "a teacher with damaged weights": Bad(
        DISTILL + "--src {f}/a", 1, ("{model}/model.safetensors cannot be read",), files=GOOD,
        model=_truncate("model.safetensors"),
    ),
    "a teacher's beam of 0": Bad(DISTILL + "--src {f}/a --beam 0", 2, ("beam=0",), files=GOOD),
    "no such text to teach": Bad(DISTILL + "--src {f}/c", 1, ("{f}/c does not exist",), files=GOOD),
    "an empty text to teach": Bad(
        DISTILL + "--src {f}/c", 1, ("no usable line in {f}/c",), ("empty",), files=(("c", "\n \n"),)
    ),
    "a text to teach of another length": Bad(
        DISTILL + "--src {f}/a --tgt {f}/c", 1, ("{f}/a has 2 lines but {f}/c has 1",), files=(*GOOD, ("c", "one\n"))
    ),
    "bad validation text for a student": Bad(
        DISTILL + "--src {f}/a --valid-src {f}/a --valid-tgt {f}/c", 1, ("{f}/c does not exist",), files=GOOD
    ),
    "a student with a budget and steps": Bad(
        DISTILL + "--src {f}/a --budget 1m --steps 3", 2, ("--budget and --steps",), files=GOOD
    ),
    "a student that was not begun": Bad("distill --resume --out {f}/out", 2, ("no run to resume in {f}/out",)),
    "a student that never had a teacher": Bad("distill --resume --out {model}", 2, ("there is no teacher",)),
    "a student where something is": Bad(
        "distill --teacher {good} --src {f}/a --out {model}", 2, ("{model} is not empty",), ("--resume",), files=GOOD
    ),
    # The model.
    "no model": Bad("translate --model {f}/none", 1, ("{f}/none is not a run folder",), ("dragoman train",)),
    "no --model": Bad("translate", 2, ("--model",)),
    "model without config": Bad(TRANSLATE, 1, ("{model} is not a run", "config.toml"), model=_remove("config.toml")),
    "model without weights": Bad(
        TRANSLATE, 1, ("{model} has no model.safetensors",), model=_remove("model.safetensors")
    ),
    "model without subwords": Bad(TRANSLATE, 1, ("{model}/subwords.model",), model=_remove("subwords.model")),
    "model with broken config": Bad(
        TRANSLATE, 1, ("{model}/config.toml cannot be used",), model=_write("config.toml", b"[model]\nd_model = [")
    ),
    "model with a setting of another time": Bad(
        TRANSLATE, 1, ("{model}/config.toml", "model.d_fff"), ("model.d_ff",), model=_in_config("d_ff", "d_fff")
    ),
    "weights cut short": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors cannot be read",), model=_truncate("model.safetensors")
    ),
    "weights of no bytes": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors cannot be read",), model=_write("model.safetensors", b"")
    ),
    "a pickle for weights": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors cannot be read",), ("safetensors",),
        model=_write("model.safetensors", PICKLE),
    ),
    "a PyTorch zip for weights": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors cannot be read",), model=_write("model.safetensors", _zip())
    ),
    "weights of another shape": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors", "[32, 32]", "[64, 64]"), ("config.toml",),
        model=_in_config("d_model = 32", "d_model = 64"),
    ),
    "a weight missing": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors lacks the weight embedding.weight",),
        model=_resave(lambda weights: weights.pop("embedding.weight")),
    ),
    "a weight too many": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors has the weight extra",),
        model=_resave(lambda weights: weights.update(extra=np.zeros(3, dtype=np.float32))),
    ),
    "weights of a later version": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors has format 99",), ("pip install --upgrade",),
        model=_resave(lambda _: None, version="99"),
    ),
    "weights of somebody else": Bad(
        TRANSLATE, 1, ("{model}/model.safetensors was not written by Dragoman",), model=_resave(lambda _: None, None)
    ),
    "garbage for subwords": Bad(
        TRANSLATE, 1, ("{model}/subwords.model", "not a SentencePiece model"), model=_write("subwords.model", b"\xffno")
    ),
    "subwords of another model": Bad(
        TRANSLATE, 1, ("{model}/subwords.model has 268 subwords, but the model has 300",), model=_other_subwords
    ),
    # Translating.
    "no such file to translate": Bad(TRANSLATE + "{f}/none", 1, ("{f}/none does not exist",)),
    "a line that is not UTF-8": Bad(
        TRANSLATE + "{f}/a", 1, ("line 2 of {f}/a is not valid UTF-8",), ("iconv",), files=(("a", b"ok\nsch\xf6n\n"),)
    ),
    "a NUL character": Bad(TRANSLATE + "{f}/a", 1, ("line 2 of {f}/a contains a NUL",), files=(("a", b"ok\na\0b\n"),)),
    "more translations than the beam": Bad(
        TRANSLATE + "{f}/a --nbest 5 --beam 2", 2, ("nbest=5", "beam of 2"), files=GOOD
    ),
    "no translations": Bad(TRANSLATE + "{f}/a --nbest 0", 2, ("nbest=0",), files=GOOD),
    "a beam of 0": Bad(TRANSLATE + "{f}/a --beam 0", 2, ("beam=0",), files=GOOD),
    "a length penalty without bounds": Bad(TRANSLATE + "{f}/a --length-penalty inf", 2, ("=inf",), files=GOOD),
    "batches of nothing": Bad(TRANSLATE + "{f}/a --batch-tokens 0", 2, ("batch_tokens=0",), files=GOOD),
    "threads of nothing": Bad(TRANSLATE + "{f}/a --threads 0", 2, ("threads=0",), files=GOOD),
    "a temperature for a search": Bad(TRANSLATE + "{f}/a --temperature 2", 2, ("--temperature",), ("--sample",)),
    "a beam for what is streamed": Bad(TRANSLATE + "{f}/a --stream --beam 4", 2, ("--stream shows one",)),
    "a beam for a sample": Bad(TRANSLATE + "{f}/a --sample --beam 4", 2, ("--sample and --beam",)),
    "a temperature of 0": Bad(TRANSLATE + "{f}/a --sample --temperature 0", 2, ("temperature=0",), files=GOOD),
    "top-p above 1": Bad(TRANSLATE + "{f}/a --sample --top-p 1.5", 2, ("top_p=1.5",), files=GOOD),
    "a negative top-k": Bad(TRANSLATE + "{f}/a --sample --top-k -1", 2, ("top_k=-1",), files=GOOD),
    "--output into a missing folder": Bad(
        "translate --model {model} --output {f}/no/out {f}/a", 1, ("no folder {f}/no",), files=GOOD
    ),
    "--output is a folder": Bad("translate --model {model} --output {f} {f}/a", 1, ("{f} is a folder",), files=GOOD),
    "an unknown format": Bad(TRANSLATE + "--format xml", 2, ("xml", "text", "json")),
    # Scoring.
    "references of another length": Bad(
        EVALUATE, 1, ("{f}/a has 2 lines but {f}/b has 1",), files=(GOOD[0], ("b", "x\n"))
    ),
    "no references": Bad(EVALUATE, 1, ("{f}/b does not exist",), files=GOOD[:1]),
    "nothing to score": Bad(EVALUATE, 1, ("nothing to score",), files=(("a", ""), ("b", ""))),
    "another system of another length": Bad(
        EVALUATE + " --against {f}/c", 1, ("{f}/c has 1 lines but {f}/b has 2",), files=(*GOOD, ("c", "x\n"))
    ),
    "no other system": Bad(EVALUATE + " --against {f}/c", 1, ("{f}/c does not exist",), files=GOOD),
    # The rest.
    "nothing to average": Bad("average --out {f}/out", 2, ("CHECKPOINTS",)),
    "average of no folder": Bad("average {f}/none --out {f}/out", 1, ("{f}/none has no model.safetensors",)),
    "average of a file": Bad("average {f}/a --out {f}/out", 1, ("{f}/a has no model.safetensors",), files=GOOD),
    "average onto something": Bad("average {model} --out {model}", 2, ("{model} is there already",)),
    "average of two models": Bad(
        "average {good} {model} --out {f}/out", 1, ("{model} holds another model than {good}",),
        model=_resave(lambda weights: weights.pop("embedding.weight")),
    ),
    "inspect of no run": Bad("inspect {f}", 1, ("{f} is not a run folder",)),
    "inspect of half a run": Bad("inspect {model}", 1, ("model.safetensors",), model=_remove("model.safetensors")),
    "inspect of a damaged diary": Bad(
        "inspect {model}", 1, ("line 1 of {model}/metrics.jsonl",), model=_write("metrics.jsonl", b"{\n")
    ),
    "inspect of a diary in another encoding": Bad(
        "inspect {model}", 1, ("line 1 of {model}/metrics.jsonl",), model=_write("metrics.jsonl", b"\xff\n")
    ),
    "inspect of something else's diary": Bad(
        "inspect {model}", 1, ("line 2 of {model}/metrics.jsonl",), model=_write("metrics.jsonl", b'{"step": 1}\n5\n')
    ),
}  # fmt: skip


def check_answer(bad: Bad, places: dict[str, Path], code: int, out: str, err: str) -> None:
    lines = err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    hints = [line for line in lines if line.startswith("hint: ")]
    assert "Traceback" not in err
    assert code == bad.code, err
    assert len(errors) == 1, err
    assert len(hints) <= 1, err
    assert lines[lines.index(errors[0]) :] == errors + hints, "the error comes last, and is one line"
    for words in bad.says:
        assert _filled(words, places) in errors[0]
    for words in bad.hint:
        assert words in hints[0]
    assert out == ""


def _filled(text: str, places: dict[str, Path]) -> str:
    for name, path in places.items():
        text = text.replace(f"{{{name}}}", str(path))
    return text


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = CASES[name]
    places = {"f": tmp_path / "files", "model": tmp_path / "model", "good": run}
    places["f"].mkdir()
    if "{model}" in bad.args:
        shutil.copytree(run, places["model"], ignore=shutil.ignore_patterns("tensorboard", "checkpoints"))
    for file, content in bad.files:
        (places["f"] / file).write_bytes(content.encode() if isinstance(content, str) else content)
    if bad.model is not None:
        bad.model(places["model"])
    before = _contents(tmp_path)
    code = run_command(_filled(bad.args, places).split())
    captured = capsys.readouterr()
    check_answer(bad, places, code, captured.out, captured.err)
    assert _contents(tmp_path) == before, "nothing appears, changes or disappears"


def _contents(folder: Path) -> dict[str, bytes | None]:
    """All files, but for those that CTranslate2's engine keeps in a model folder, whole, for the next time."""
    paths = sorted(path for path in folder.rglob("*") if "ct2" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "command", ["train --src {f}/a --tgt {f}/b --out {f}/out", "translate --model {model} {model}/config.toml"]
)
def test_a_device_that_is_not_there(
    command: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"f": tmp_path, "model": run}
    code = run_command([*_filled(command, places).split(), "--device", "cuda"])
    check_answer(Bad("", 2, ("no CUDA device",), ("--device cpu",)), places, code, *capsys.readouterr())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"fine\nsch\xf6n\n", b"fine\na\0b\n"])
def test_bad_text_on_stdin_names_the_line(forks: Forks, run: Path, tmp_path: Path, content: bytes) -> None:
    stdin = tmp_path / "stdin"
    stdin.write_bytes(content)
    ended = forks.run(["translate", "--model", str(run), "--threads", "1"], stdin=stdin)
    assert ended.out.count("\n") == 1, "the line before it has its answer"
    check_answer(Bad("", 1, ("line 2 of stdin",)), {}, ended.code, "", ended.err)


def test_a_checkpoint_that_lost_a_file_says_which_to_delete(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("tensorboard"))
    last = copy / "checkpoints" / f"step-{SHARED_STEPS:08}"
    (last / "training.safetensors").unlink()
    code = run_command(["train", "--resume", "--out", str(copy), "--steps", str(SHARED_STEPS + 1)])
    check_answer(Bad("", 1, (f"{last} has no training.safetensors",)), {}, code, "", capsys.readouterr().err)


def test_a_loss_that_is_not_finite_stops_before_the_update(forks: Forks, corpus: Corpus, tmp_path: Path) -> None:
    args = ["train", *corpus.flags(), "--out", str(tmp_path / "out"), *small(20, "train.lr=1e30")]
    ended = forks.run(args)
    bad = Bad("", 1, ("the loss is nan at step 2", "the model was not updated"), ("train.lr",))
    check_answer(bad, {}, ended.code, ended.out, ended.err)


def test_bad_settings_in_a_real_process(corpus: Corpus, tmp_path: Path) -> None:
    """Nothing of this depends on how the tests call the command."""
    args = ["train", *corpus.flags(), "--out", str(tmp_path / "out"), *small(1), "--set", "model.n_heads=5"]
    ended = subprocess.run([*DRAGOMAN, *args], capture_output=True, env=ENVIRONMENT, text=True)
    check_answer(Bad("", 2, ("n_heads=5",)), {}, ended.returncode, ended.stdout, ended.stderr)
    assert not list(tmp_path.iterdir())


def test_a_part_of_training_that_is_not_installed(corpus: Corpus, tmp_path: Path) -> None:
    """As after an update of the package alone: Numba came later than torch."""
    code = "import sys; sys.modules['numba'] = None; from dragoman.cli.main import main; main()"
    args = ["train", *corpus.flags(), "--out", str(tmp_path / "out"), *small(1)]
    ended = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, env=ENVIRONMENT, text=True)
    check_answer(Bad("", 1, ("needs numba",), ("dragoman[train]",)), {}, ended.returncode, ended.stdout, ended.stderr)
    assert not list(tmp_path.iterdir())
