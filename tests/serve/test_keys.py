"""Who may ask, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.serve.keys import ApiKeys, Rate


def test_keys_have_names_and_strangers_have_none(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# comment\n\nabc the first # and why\ndef\n", encoding="utf-8")
    keys = ApiKeys(tmp_path / "keys")
    assert [keys.name_of(key) for key in ("abc", "def", "ab", "abcd", "", "#", "\udc00")] == [
        "the first", "line 4", None, None, None, None, None,
    ]  # fmt: skip


def test_every_key_is_compared_whichever_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time must not tell how far down the list a key is, nor how much of it was right."""
    import hmac

    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    (tmp_path / "keys").write_text("a\nbb\nccc\n", encoding="utf-8")
    keys = ApiKeys(tmp_path / "keys")
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert keys.name_of("a") == "line 1"
    assert compared == [(32, 32)] * 3


def test_a_file_without_keys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has no keys"):
        ApiKeys(tmp_path / "keys")


def test_so_many_a_minute_and_no_more() -> None:
    now = 0.0
    rate = Rate(6, clock=lambda: now)
    assert [rate.wait_s("a") for _ in range(7)] == [0] * 6 + [10]
    assert rate.wait_s("b") == 0
    now = 9.0
    assert rate.wait_s("a") == 1
    now = 10.0
    assert [rate.wait_s("a"), rate.wait_s("a")] == [0, 10]
    now = 1000.0
    assert [rate.wait_s("a") for _ in range(7)][-2:] == [0, 10]  # what was not used is not saved up


def test_strangers_without_end_take_no_memory_without_end() -> None:
    rate = Rate(6)
    for i in range(10_500):
        rate.wait_s(str(i))
    assert len(rate._left) == 10_000
