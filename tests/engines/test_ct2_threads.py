"""Threads between batches or inside one: what is faster is found once and remembered."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

import dragoman
from dragoman.engines.ct2_threads import MEMORY, Split, best_split, fastest, splits


class FakeTranslator:
    """Remembers what it was given."""

    asked: ClassVar[list[tuple[Split, int]]] = []

    def __init__(self, split: Split) -> None:
        self.split = split

    def translate_batch(self, texts: list[list[str]], **options: Any) -> None:
        self.asked.append((self.split, len(texts)))


def test_all_the_ways_to_share_out_threads() -> None:
    assert splits(1) == [(1, 1)]
    assert splits(6) == [(6, 1), (3, 2), (2, 3), (1, 6)]


@pytest.mark.parametrize(
    ("seconds", "expected"), [((1.0, 0.95), (2, 1)), ((1.0, 0.5), (1, 2)), ((1.0, 3.0), (2, 1)), ((1.0, 1.0), (2, 1))]
)
def test_side_by_side_unless_another_is_clearly_faster(seconds: tuple[float, float], expected: Split) -> None:
    times = dict(zip([(2, 1), (1, 2)], seconds, strict=True))
    assert fastest([(2, 1), (1, 2)], times.__getitem__) == expected


def test_it_is_measured_once_for_a_processor_and_a_number_of_threads(tmp_path: Path) -> None:
    FakeTranslator.asked.clear()
    first = best_split(tmp_path, 2, FakeTranslator, ["a", "b", "c"])
    assert {split for split, _ in FakeTranslator.asked} == {(2, 1), (1, 2)}
    n_asked = len(FakeTranslator.asked)
    assert best_split(tmp_path, 2, FakeTranslator, ["a", "b", "c"]) == first
    assert len(FakeTranslator.asked) == n_asked
    best_split(tmp_path, 4, FakeTranslator, ["a", "b", "c"])
    assert len(FakeTranslator.asked) > n_asked
    assert len(json.loads((tmp_path / MEMORY).read_text())) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"x": 1}', '{"KEY": [3, 1]}', '{"KEY": "no"}'])
def test_a_memory_that_makes_no_sense_is_made_anew(text: str, tmp_path: Path) -> None:
    best_split(tmp_path, 2, FakeTranslator, ["a"])
    (key,) = json.loads((tmp_path / MEMORY).read_text())
    (tmp_path / MEMORY).write_text(text.replace("KEY", key))
    FakeTranslator.asked.clear()
    assert best_split(tmp_path, 2, FakeTranslator, ["a"]) in splits(2)
    assert FakeTranslator.asked
    assert json.loads((tmp_path / MEMORY).read_text())[key] in [[2, 1], [1, 2]]


def test_one_thread_is_not_measured(tmp_path: Path) -> None:
    FakeTranslator.asked.clear()
    assert best_split(tmp_path, 1, FakeTranslator, ["a"]) == (1, 1)
    assert not FakeTranslator.asked
    assert not (tmp_path / MEMORY).exists()


def test_a_model_is_opened_with_what_is_remembered(folder: Path, sentences: list[str], tmp_path: Path) -> None:
    run = shutil.copytree(folder, tmp_path / "run")
    expected = dragoman.load(run, engine="ct2", precision="float32", threads=2).translate(sentences[:8])
    memory = run / "ct2" / "float32" / MEMORY
    (key,) = json.loads(memory.read_text())
    for split in splits(2):
        memory.write_text(json.dumps({key: split}))
        translator = dragoman.load(run, engine="ct2", precision="float32", threads=2)
        assert translator.engine._whole().num_translators == split[0]  # type: ignore[attr-defined]
        assert [one.text for one in translator.translate(sentences[:8])] == [one.text for one in expected]
