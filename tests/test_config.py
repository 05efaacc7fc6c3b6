"""All settings together: layers, names, types, TOML in and out."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import (
    PRESETS,
    Config,
    Settings,
    changed_settings,
    load_config,
    make_config,
    parse_setting,
    read_settings,
    to_toml,
)
from dragoman.errors import ConfigError, ModelError
from dragoman.model.config import ModelConfig


def refused(*layers: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        make_config(*layers)
    return caught.value


def test_the_defaults_are_the_papers_base_model() -> None:
    assert make_config() == Config() == make_config(PRESETS["base"])
    config = make_config()
    assert (config.tokens.vocab_size, config.batches.tokens) == (37_000, 25_000)
    assert (config.search.beam, config.search.length_penalty, config.search.max_extra_tokens) == (4, 0.6, 50)


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name: str) -> None:
    config = make_config(PRESETS[name])
    assert config.model == getattr(ModelConfig, name)()
    assert config.train.average <= config.train.keep


def test_the_fast_preset_is_small_with_its_layers_moved_to_the_encoder() -> None:
    fast, small = (make_config(PRESETS[name]) for name in ("fast", "small"))
    assert changed_settings(small, fast) == ["model.n_encoder_layers", "model.n_decoder_layers"]
    assert (fast.model.n_encoder_layers, fast.model.n_decoder_layers) == (6, 1)


def test_the_big_preset_is_the_papers() -> None:
    config = make_config(PRESETS["big"])
    assert (config.train.steps, config.train.average, config.model.dropout) == (300_000, 20, 0.3)


def test_later_layers_win_key_by_key() -> None:
    config = make_config(
        PRESETS["tiny"],
        {"model": {"d_ff": 99, "dropout": 0.2}, "train": {"seed": 5}},
        {"model": {"d_ff": 77}},
    )
    assert (config.model.d_ff, config.model.dropout, config.model.d_model) == (77, 0.2, 128)
    assert config.train.seed == 5
    assert config.tokens.vocab_size == 8000


def test_layers_are_not_changed_by_merging() -> None:
    before = {name: {section: dict(keys) for section, keys in preset.items()} for name, preset in PRESETS.items()}
    make_config(PRESETS["tiny"], {"model": {"d_ff": 1}, "train": {"steps": 3}})
    assert before == PRESETS


@pytest.mark.parametrize(
    ("layer", "message", "hint"),
    [
        ({"model": {"d_modle": 8}}, "there is no setting model.d_modle", "did you mean model.d_model?"),
        ({"train": {"warmup": 8}}, "there is no setting train.warmup", "did you mean train.warmup_steps?"),
        ({"search": {"xyzzy": 8}}, "there is no setting search.xyzzy", "beam, length_penalty"),
        ({"modle": {"d_model": 8}}, "there is no section modle", "did you mean model?"),
        ({"zzz": {}}, "there is no section zzz", "text, tokens, batches, model, train, search"),
        ({"model": 3}, "model is a section, not a setting", "[model]"),
    ],
)
def test_unknown_names_get_the_nearest(layer: Any, message: str, hint: str) -> None:
    error = refused(layer)
    assert message in str(error)
    assert hint in (error.hint or "")


@pytest.mark.parametrize(
    ("section", "key", "value", "wanted"),
    [
        ("model", "d_model", 8.0, "a whole number"),
        ("model", "d_model", "8", "a whole number"),
        ("model", "d_model", True, "a whole number"),
        ("model", "d_model", None, "a whole number"),
        ("model", "d_k", 1.5, "a whole number"),
        ("model", "dropout", "high", "a number"),
        ("model", "dropout", False, "a number"),
        ("model", "tie_embeddings", 1, "true or false"),
        ("model", "norm", 3, "a text"),
        ("train", "lr", "fast", "a number"),
        ("train", "device", 0, "a text"),
        ("text", "src", 5, "a text"),
        ("text", "src", ["a", "b"], "a text"),
        ("search", "beam", [4], "a whole number"),
    ],
)
def test_wrong_types(section: str, key: str, value: Any, wanted: str) -> None:
    error = refused({section: {key: value}})
    assert f"{section}.{key}={value!r} is not {wanted}" in str(error)
    assert f"--set {section}.{key}=" in (error.hint or "")


def test_a_whole_number_serves_as_a_number() -> None:
    config = make_config({"model": {"dropout": 0}, "train": {"lr": 1}})
    assert (config.model.dropout, config.train.lr) == (0.0, 1.0)
    assert type(config.model.dropout) is type(config.train.lr) is float


def test_a_refusal_of_the_stage_itself_comes_through() -> None:
    assert 'model.norm="mid" is not a choice' in str(refused({"model": {"norm": "mid"}}))
    assert "does not split" in str(refused(PRESETS["base"], {"model": {"n_heads": 7}}))


@pytest.mark.parametrize(
    ("layers", "steps", "epochs"),
    [
        ([{"train": {"steps": 5}}], 5, None),
        ([{"train": {"epochs": 5}}], None, 5),
        ([{"train": {"steps": 5}}, {"train": {"epochs": 2}}], None, 2),
        ([{"train": {"epochs": 2}}, {"train": {"steps": 5}}], 5, None),
        ([PRESETS["big"], {"train": {"epochs": 2}}], None, 2),
        ([{"train": {"steps": 5}}, {"train": {"seed": 1}}], 5, None),
        ([{"train": {"steps": 5}}, {"train": {"epochs": 2}}, {"train": {"steps": 7}}], 7, None),
    ],
)
def test_of_steps_and_epochs_the_later_layer_decides(
    layers: list[Settings], steps: int | None, epochs: int | None
) -> None:
    config = make_config(*layers)
    assert (config.train.steps, config.train.epochs) == (steps, epochs)


def test_steps_and_epochs_in_one_layer_are_a_contradiction() -> None:
    assert "both given" in str(refused({"train": {"steps": 5, "epochs": 2}}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.d_ff=1024", {"model": {"d_ff": 1024}}),
        (" model.d_ff = 1_024 ", {"model": {"d_ff": 1024}}),
        ("model.dropout=0.3", {"model": {"dropout": 0.3}}),
        ("train.lr=1e-3", {"train": {"lr": 1e-3}}),
        ("model.tie_embeddings=false", {"model": {"tie_embeddings": False}}),
        ("model.norm=pre", {"model": {"norm": "pre"}}),
        ('model.norm="pre"', {"model": {"norm": "pre"}}),
        ("text.src=data/a=b.de", {"text": {"src": "data/a=b.de"}}),
        ("text.src=", {"text": {"src": ""}}),
    ],
)
def test_settings_from_the_command_line(text: str, expected: Settings) -> None:
    assert parse_setting(text) == expected


@pytest.mark.parametrize("text", ["", "model", "model.d_ff", "d_ff=3", "model.=3", ".d_ff=3", "=3"])
def test_settings_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not section\.key=value") as caught:
        parse_setting(text)
    assert "--set model.d_ff=1024" in (caught.value.hint or "")


@pytest.mark.parametrize("name", PRESETS)
def test_toml_round_trip(name: str, tmp_path: Path) -> None:
    config = make_config(PRESETS[name], {"train": {"lr": 0.1, "init": "runs/ä 'b'"}, "text": {"pairs": 'a"b.tsv'}})
    (tmp_path / "config.toml").write_text(to_toml(config), encoding="utf-8")
    assert make_config(read_settings(tmp_path / "config.toml")) == config
    assert load_config(tmp_path) == config


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "d_k": st.integers(1, 99),
            "dropout": st.floats(0, 0.99),
            "norm": st.sampled_from(["pre", "post"]),
            "tie_embeddings": st.booleans(),
        },
    ),
    st.one_of(st.none(), st.floats(1e-12, 10)),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
def test_any_config_survives_toml(model: dict[str, Any], lr: float | None, path: str) -> None:
    train = {} if lr is None else {"lr": lr}
    config = make_config({"model": model, "train": train, "text": {"pairs": path}})
    toml = to_toml(config)
    assert make_config(parse_toml(toml)) == config
    assert "None" not in toml or "None" in path


def parse_toml(text: str) -> Settings:
    from dragoman.config import tomllib

    return tomllib.loads(text)


def test_every_setting_is_in_the_file_but_those_not_given() -> None:
    found = parse_toml(to_toml(make_config()))
    assert list(found) == ["text", "tokens", "batches", "model", "train", "search"]
    for section, values in asdict(Config()).items():
        assert found[section] == {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"[model\n", "is not TOML"), (b"a = '\xff'", "is not TOML")],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "run.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_settings(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_run_folder_without_or_with_bad_settings_is_a_bad_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"is not a run folder: it has no config\.toml"):
        load_config(tmp_path)
    (tmp_path / "config.toml").write_text(tomli_w.dumps({"model": {"d_modle": 3}}))
    with pytest.raises(ModelError, match=r"cannot be used: there is no setting model\.d_modle") as caught:
        load_config(tmp_path)
    assert caught.value.hint == "did you mean model.d_model?"
    (tmp_path / "config.toml").write_text("model = 3")
    with pytest.raises(ModelError, match="is a section"):
        load_config(tmp_path)
    (tmp_path / "config.toml").write_text("train = 3")
    with pytest.raises(ModelError, match="is a section"):
        load_config(tmp_path)


def test_changed_settings() -> None:
    old = make_config(PRESETS["tiny"])
    assert changed_settings(old, old) == []
    new = replace(old, model=replace(old.model, d_ff=7, dropout=0.0), search=replace(old.search, beam=9))
    assert changed_settings(old, new) == ["model.d_ff", "model.dropout", "search.beam"]
    assert changed_settings(new, old) == changed_settings(old, new)


def test_a_list_of_texts_stays_hashable() -> None:
    """Plans are remembered by config: a list in it once could not be."""
    config = make_config({"text": {"src": "a", "teachers": ["one", "two"]}})
    assert config.text.teachers == ("one", "two")
    assert hash(config) == hash(make_config(parse_setting("text.src=a"), parse_setting('text.teachers=["one", "two"]')))
    assert make_config(parse_toml(to_toml(config))) == config
    assert "text.teachers='one' is not a list" in str(refused({"text": {"teachers": "one"}}))
    assert "text.teachers=2 is not a text" in str(refused({"text": {"teachers": ["one", 2]}}))
