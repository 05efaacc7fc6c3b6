"""Weights to disk and back, exactly; a checkpoint whole or not at all; and never a pickle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import dragoman
from dragoman.checkpoint import format as format_module
from dragoman.checkpoint.folder import checkpoint_folder, load_state
from dragoman.checkpoint.format import (
    load_tensors,
    load_weights,
    save_checkpoint,
    save_model,
    save_tensors,
)
from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer


def make_model(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    shape = {"vocab_size": 11, "d_model": 8, "d_ff": 12, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return Transformer(ModelConfig(**{**shape, **changes}))


def test_tensors_come_back_to_the_last_bit(tmp_path: Path) -> None:
    tensors = {
        "float": torch.tensor([0.1, -0.0, float("inf"), 1e-45]),
        "double": torch.randn(2, 3, dtype=torch.float64),
        "half": torch.randn(4).bfloat16(),
        "bytes": torch.arange(256, dtype=torch.uint8),
        "transposed": torch.randn(3, 2).T,
        "with gradient": torch.randn(2, requires_grad=True),
        "none": torch.zeros(0, 3),
    }
    save_tensors(tmp_path / "x.safetensors", tensors)
    found = load_tensors(tmp_path / "x.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
    assert torch.equal(found["float"].signbit(), tensors["float"].signbit())


def test_the_format_is_written_into_the_file(tmp_path: Path) -> None:
    save_tensors(tmp_path / "x.safetensors", {"a": torch.zeros(1)})
    with safe_open(tmp_path / "x.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "dragoman", "version": "1"}


def test_a_model_comes_back(tmp_path: Path) -> None:
    for changes in ({}, {"tie_embeddings": False, "norm": "pre", "positions": "learned", "attention_bias": True}):
        one, two = make_model(1, **changes), make_model(2, **changes)
        save_tensors(tmp_path / "m.safetensors", one.state_dict())
        load_weights(two, tmp_path / "m.safetensors")
        src, tgt = torch.tensor([[4, 5, 6]]), torch.tensor([[2, 4]])
        assert torch.equal(one.eval()(src, tgt), two.eval()(src, tgt))


def test_what_is_stored_is_the_papers_weights_and_no_table_of_sinusoids(tmp_path: Path) -> None:
    save_tensors(tmp_path / "m.safetensors", make_model().state_dict())
    assert load_tensors(tmp_path / "m.safetensors").keys() == dict(make_model().named_parameters()).keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_decoder_layers": 2}, "lacks the weight decoder.1."),
        ({"tie_embeddings": False}, "lacks the weight projection.weight"),
        ({"d_ff": 16}, r"has decoder.0.feed_forward.inner.bias of shape \[12\], not \[16\]"),
        ({"vocab_size": 12}, r"has embedding.weight of shape \[11, 8\], not \[12, 8\]"),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path: Path, changes: dict[str, int], message: str) -> None:
    path = tmp_path / "m.safetensors"
    save_tensors(path, make_model().state_dict())
    model = make_model(5, **changes)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ModelError, match=message):
        load_weights(model, path)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_weight_too_many_is_refused(tmp_path: Path) -> None:
    save_tensors(tmp_path / "m.safetensors", make_model(n_encoder_layers=2).state_dict())
    with pytest.raises(ModelError, match=r"has the weight encoder\.1\..*, which the model has not"):
        load_weights(make_model(), tmp_path / "m.safetensors")


def save_one(folder: Path, subwords: Path, value: float = 1.0) -> None:
    save_checkpoint(
        folder,
        weights={"w": torch.full((3,), value)},
        training={"exp_avg.w": torch.ones(3)},
        state={"step": 5, "best_bleu": -1.0},
        config="[model]\nd_model = 8\n",
        subwords=subwords,
    )


@pytest.fixture
def subwords(tmp_path: Path) -> Path:
    (tmp_path / "subwords.model").write_bytes(b"pieces")
    return tmp_path / "subwords.model"


def test_a_checkpoint_is_a_model_folder_and_more(tmp_path: Path, subwords: Path) -> None:
    folder = checkpoint_folder(tmp_path, 5)
    save_one(folder, subwords)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.toml", "model.safetensors", "state.json", "subwords.model", "training.safetensors"
    ]  # fmt: skip
    assert load_state(folder) == {"version": 1, "step": 5, "best_bleu": -1.0}
    assert torch.equal(load_tensors(folder / "model.safetensors")["w"], torch.ones(3))
    assert torch.equal(load_tensors(folder / "training.safetensors")["exp_avg.w"], torch.ones(3))
    assert (folder / "config.toml").read_text() == "[model]\nd_model = 8\n"
    assert (folder / "subwords.model").read_bytes() == b"pieces"


def test_a_checkpoint_that_is_there_stays(tmp_path: Path, subwords: Path) -> None:
    folder = checkpoint_folder(tmp_path, 5)
    save_one(folder, subwords, value=1.0)
    save_one(folder, subwords, value=2.0)
    assert torch.equal(load_tensors(folder / "model.safetensors")["w"], torch.ones(3))


@pytest.mark.parametrize("fails", ["save_tensors", "write_text", "copyfile"])
def test_a_checkpoint_that_fails_half_way_leaves_nothing(
    tmp_path: Path, subwords: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    owner = format_module.shutil if fails == "copyfile" else format_module
    monkeypatch.setattr(owner, fails, full)
    folder = checkpoint_folder(tmp_path, 5)
    with pytest.raises(OSError, match="No space left"):
        save_one(folder, subwords)
    assert list(folder.parent.iterdir()) == []


def test_weights_that_fail_half_way_leave_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"w": torch.ones(3)})

    def half(_: object, part: Path, __: object) -> None:
        Path(part).write_bytes(b"half a file")
        raise OSError("No space left on device")

    monkeypatch.setattr(format_module, "save_file", half)
    with pytest.raises(OSError, match="No space left"):
        save_tensors(path, {"w": torch.zeros(3)})
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    assert torch.equal(load_tensors(path)["w"], torch.ones(3))


def test_a_model_folder_from_weights_and_a_pattern(tmp_path: Path, subwords: Path) -> None:
    save_one(tmp_path / "like", subwords)
    save_model(tmp_path / "out", {"w": torch.zeros(2)}, tmp_path / "like")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "config.toml", "model.safetensors", "subwords.model"
    ]  # fmt: skip
    assert torch.equal(load_tensors(tmp_path / "out" / "model.safetensors")["w"], torch.zeros(2))
    (tmp_path / "like" / "subwords.model").unlink()
    with pytest.raises(ModelError, match=r"like has no subwords\.model"):
        save_model(tmp_path / "out2", {"w": torch.zeros(2)}, tmp_path / "like")
    assert not (tmp_path / "out2").exists()


def test_there_is_no_pickle_in_the_package() -> None:
    """Nothing a user is given can run code: no module imports, calls or allows what could unpickle it."""
    modules = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
    calls = {"torch.load", "torch.save", "torch.jit.load", "np.load", "np.save", "numpy.load", "eval", "exec"}
    sources = sorted(Path(dragoman.__file__).parent.rglob("*.py"))
    assert len(sources) > 30
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names: set[str] = set()
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names} & modules
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or "").split(".")[0]} & modules
            elif isinstance(node, ast.Call):
                names = {ast.unparse(node.func)} & calls
            elif isinstance(node, ast.keyword):
                names = {node.arg or ""} & {"allow_pickle", "weights_only"}
            assert not names, f"{source.name}, line {getattr(node, 'lineno', 0)}: {names}"
