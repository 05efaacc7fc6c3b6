"""Files and folders that appear whole or not at all, and files that are not ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from dragoman.checkpoint.folder import (
    FORMAT_VERSION,
    checkpoint_folder,
    checkpoints,
    load_state,
    new_folder,
    open_weights,
    read_sizes,
    remove_folder,
    remove_leftovers,
    write_atomically,
    write_text,
)
from dragoman.checkpoint.format import save_tensors
from dragoman.errors import ModelError


class PowerCutError(Exception):
    pass


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_text_is_written_and_replaced(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "grün\n")
    write_text(tmp_path / "a.txt", "blau\n")
    assert (tmp_path / "a.txt").read_bytes() == b"blau\n"
    assert names(tmp_path) == ["a.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")

    def write(part: Path) -> None:
        part.write_text("half of the n")
        assert (tmp_path / "a.txt").read_text() == "old"
        raise PowerCutError

    with pytest.raises(PowerCutError):
        write_atomically(tmp_path / "a.txt", write)
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_a_folder_takes_its_name_when_all_is_done(tmp_path: Path) -> None:
    with new_folder(tmp_path / "runs" / "one") as part:
        (part / "x").write_text("x")
        assert not (tmp_path / "runs" / "one").exists()
    assert names(tmp_path / "runs") == ["one", "one/x"]


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fill(part: Path) -> None:
        (part / "x").write_text("x")
        raise PowerCutError

    with pytest.raises(PowerCutError), new_folder(tmp_path / "one") as part:
        fill(part)
    assert names(tmp_path) == []


def test_what_a_kill_left_is_overwritten_or_removed(tmp_path: Path) -> None:
    """A kill runs no `finally`: the temporary names stay, and must neither harm nor live for ever."""
    folder = checkpoint_folder(tmp_path, 7)
    leftover = folder.with_name(f".{folder.name}.part")
    leftover.mkdir(parents=True)
    (leftover / "stale").write_text("stale")
    with new_folder(folder) as part:
        assert names(part) == []
        (part / "x").write_text("x")
    assert names(folder) == ["x"]

    leftover.mkdir()
    (leftover / "stale").write_text("stale")
    (tmp_path / ".model.safetensors.part").write_text("half")
    (tmp_path / "notes.part").write_text("the user's own")
    assert list(checkpoints(tmp_path)) == [7]
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["checkpoints", "checkpoints/step-00000007", "checkpoints/step-00000007/x", "notes.part"]


def test_a_folder_is_removed_and_never_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed on the way, what is left has a temporary name: no checkpoint with half of its files."""
    folder = checkpoint_folder(tmp_path, 7)
    for _ in range(2):
        folder.mkdir(parents=True)
        (folder / "x").write_text("x")
        remove_folder(folder)
        assert names(tmp_path) == ["checkpoints"]

    folder.mkdir()
    (folder / "x").write_text("x")
    rmtree = shutil.rmtree

    def killed(path: Path, **options: bool) -> None:
        if not options:
            raise PowerCutError
        rmtree(path, **options)

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(PowerCutError):
        remove_folder(folder)
    monkeypatch.undo()
    assert checkpoints(tmp_path) == {}
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["checkpoints"]


def test_checkpoints_by_step_oldest_first(tmp_path: Path) -> None:
    assert checkpoints(tmp_path) == {}
    for step in (100, 9, 123_456_789, 20, 99_999_999):
        checkpoint_folder(tmp_path, step).mkdir(parents=True)
    assert list(checkpoints(tmp_path)) == [9, 20, 100, 99_999_999, 123_456_789]
    assert checkpoints(tmp_path)[20] == checkpoint_folder(tmp_path, 20)


def test_a_folder_the_user_put_beside_them_is_no_checkpoint(tmp_path: Path) -> None:
    checkpoint_folder(tmp_path, 5).mkdir(parents=True)
    (tmp_path / "checkpoints" / "step-00000005.bak").mkdir()
    (tmp_path / "checkpoints" / "step-best").mkdir()
    assert list(checkpoints(tmp_path)) == [5]


def test_state(tmp_path: Path) -> None:
    write_text(tmp_path / "state.json", json.dumps({"version": FORMAT_VERSION, "step": 3}))
    assert load_state(tmp_path)["step"] == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "has no state.json"),
        ("{", "cannot be read"),
        ("", "cannot be read"),
        ("[1]", "was not written by Dragoman"),
        ("{}", "was not written by Dragoman"),
        ('{"version": "one"}', "was not written by Dragoman"),
        ('{"version": 2}', "has format 2, and this Dragoman reads up to 1"),
    ],
)
def test_a_state_that_cannot_be_used(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "state.json").write_text(content)
    with pytest.raises(ModelError, match=message) as caught:
        load_state(tmp_path)
    assert caught.value.hint


def test_sizes_are_read_without_the_values(tmp_path: Path) -> None:
    save_tensors(tmp_path / "model.safetensors", {"a": torch.zeros(3, 4), "b": torch.zeros(5), "c": torch.tensor(1.0)})
    assert read_sizes(tmp_path / "model.safetensors") == {"a": 12, "b": 5, "c": 1}


def spoil(path: Path, how: str) -> None:
    """Makes a file that cannot be used, in one of the ways they come."""
    if how == "missing":
        return
    save_tensors(path, {"a": torch.arange(1000.0)})
    content = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "cut short":
        path.write_bytes(content[:-100])
    elif how == "cut in the header":
        path.write_bytes(content[:20])
    elif how == "noise":
        path.write_bytes(b"\xff\x00garbage" * 50)
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    elif how == "of someone else":
        save_file({"a": torch.arange(3.0)}, path)
    elif how == "of someone else, with notes":
        save_file({"a": torch.arange(3.0)}, path, {"format": "pt"})
    elif how == "of the future":
        save_file({"a": torch.arange(3.0)}, path, {"format": "dragoman", "version": str(FORMAT_VERSION + 1)})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", "has no model.safetensors"),
        ("empty", "cannot be read"),
        ("cut short", "cannot be read"),
        ("cut in the header", "cannot be read"),
        ("noise", "cannot be read"),
        ("a folder", "cannot be read"),
        ("of someone else", "was not written by Dragoman"),
        ("of someone else, with notes", "was not written by Dragoman"),
        ("of the future", "has format 2, and this Dragoman reads up to 1"),
    ],
)
@pytest.mark.parametrize("framework", ["numpy", "pt"])
def test_weights_that_cannot_be_used(tmp_path: Path, how: str, message: str, framework: str) -> None:
    path = tmp_path / "model.safetensors"
    spoil(path, how)
    with pytest.raises(ModelError, match=message) as caught, open_weights(path, framework) as file:
        file.keys()
    assert caught.value.hint
    assert caught.value.exit_code == 1


def test_the_update_is_named_for_a_newer_format(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    spoil(path, "of the future")
    with pytest.raises(ModelError) as caught:
        read_sizes(path)
    assert "pip install --upgrade dragoman" in (caught.value.hint or "")
