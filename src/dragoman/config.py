"""All settings of a run: the stages' own, gathered; TOML in, TOML out."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import tomli_w

from dragoman.batches.sampler import BatchesConfig
from dragoman.checkpoint.folder import CONFIG
from dragoman.errors import ConfigError, ModelError
from dragoman.model.config import ModelConfig
from dragoman.search.step import SearchConfig
from dragoman.text.corpus import TextConfig
from dragoman.tokens.subwords import TokensConfig
from dragoman.train.config import TrainConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Settings = dict[str, dict[str, Any]]  # section, key, value: what a TOML file or a few flags say


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that decides a run, a section per stage, in the order of the data."""

    text: TextConfig = field(default_factory=TextConfig)
    tokens: TokensConfig = field(default_factory=TokensConfig)
    batches: BatchesConfig = field(default_factory=BatchesConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    search: SearchConfig = field(default_factory=SearchConfig)


# The paper's two models with the paper's batches and vocabulary, and three for smaller machines and texts.
PRESETS: dict[str, Settings] = {
    "tiny": {"model": asdict(ModelConfig.tiny()), "tokens": {"vocab_size": 8000}, "batches": {"tokens": 4096}},
    "small": {"model": asdict(ModelConfig.small()), "tokens": {"vocab_size": 8000}, "batches": {"tokens": 4096}},
    "fast": {"model": asdict(ModelConfig.fast()), "tokens": {"vocab_size": 8000}, "batches": {"tokens": 4096}},
    "base": {"model": asdict(ModelConfig.base())},
    "big": {"model": asdict(ModelConfig.big()), "train": {"steps": 300_000, "keep": 20, "average": 20}},
}


def shape_of(preset: str) -> Settings:
    """What a preset says of the model's shape alone: under a time budget the rest is chosen."""
    names = ("d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers")
    return {"model": {name: PRESETS[preset]["model"][name] for name in names}}


def make_config(*layers: Settings) -> Config:
    """The settings of all layers, later ones over earlier ones, over the defaults; checked."""
    sections = get_type_hints(Config)
    merged: Settings = {name: {} for name in sections}
    for layer in layers:
        for section, values in layer.items():
            _check_name(section, sections, "section", prefix="")
            if not isinstance(values, Mapping):
                raise ConfigError(f"{section} is a section, not a setting", hint=f"write [{section}] above its keys")
            hints = get_type_hints(sections[section])
            for key, value in values.items():
                _check_name(key, hints, "setting", prefix=f"{section}.")
                merged[section][key] = _typed(value, hints[key], f"{section}.{key}")
        # Steps, epochs and a budget exclude one another; the later layer decides, and a pace goes with its steps.
        train = layer.get("train", {})
        lengths = {"steps", "epochs", "budget_s", "pace"}
        if chosen := {name for name in lengths if train.get(name) is not None}:
            merged["train"] |= dict.fromkeys(lengths - chosen)
    config = Config(**{name: section(**merged[name]) for name, section in sections.items()})
    if config.model.positions == "learned" and config.model.max_len_tokens < config.batches.max_len_tokens:
        raise ConfigError(
            f"batches.max_len_tokens={config.batches.max_len_tokens} lets in sentences longer than the "
            f"model.max_len_tokens={config.model.max_len_tokens} positions that are learned",
            hint=f"use batches.max_len_tokens={config.model.max_len_tokens}",
        )
    return config


def read_settings(path: Path) -> Settings:
    """What a TOML file says, unchecked."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror})", hint="name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", hint="see the settings page for an example") from None


def load_config(folder: Path) -> Config:
    """The settings in a run folder or checkpoint."""
    if not (folder / CONFIG).is_file():
        raise ModelError(
            f"{folder} is not a run folder: it has no {CONFIG}", hint="name a folder that `dragoman train` made"
        )
    try:
        return make_config(read_settings(folder / CONFIG))
    except ConfigError as error:
        raise ModelError(f"{folder / CONFIG} cannot be used: {error}", hint=error.hint) from None


def parse_setting(text: str) -> Settings:
    """What `section.key=value` says; the value is TOML, or else a string."""
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f'--set "{text}" is not section.key=value', hint="for example --set model.d_ff=1024")
    try:
        return {section: {key: tomllib.loads(f"value = {value}")["value"]}}
    except tomllib.TOMLDecodeError:
        return {section: {key: value.strip()}}


def to_toml(config: Config, only: Collection[str] | None = None) -> str:
    """The settings as a TOML file from which `make_config` makes the same config; or only those named."""
    sections = _without_none(asdict(config))
    if only is not None:
        sections = {
            section: {key: value for key, value in values.items() if f"{section}.{key}" in only}
            for section, values in sections.items()
        }
    return tomli_w.dumps(sections)


def _check_name(name: str, known: Mapping[str, Any], what: str, prefix: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {prefix}{near[0]}?" if near else f"there are: {', '.join(known)}"
    raise ConfigError(f"there is no {what} {prefix}{name}", hint=hint)


def _typed(value: Any, hint: Any, name: str) -> Any:
    """The value if it is of the type hinted at; a whole number also serves as a float."""
    origin = get_origin(hint)
    options = get_args(hint) if origin in (Union, UnionType) else (hint,)
    for option in options:
        kind = str if get_origin(option) is Literal else option
        if type(value) is kind:
            return value
        if get_origin(kind) in (list, tuple) and type(value) in (list, tuple):
            items = [_typed(item, get_args(kind)[0], name) for item in value]
            return tuple(items) if get_origin(kind) is tuple else items
        if kind is float and type(value) is int:
            return float(value)
    names = {int: "a whole number", float: "a number", bool: "true or false", list: "a list", tuple: "a list"}
    wanted = names.get(get_origin(options[0]) or options[0], "a text")
    raise ConfigError(f"{name}={value!r} is not {wanted}", hint=f"for example --set {name}={_example(wanted)}")


def _example(wanted: str) -> str:
    examples = {"a whole number": "8", "a number": "0.1", "true or false": "true", "a list": '["a", "b"]'}
    return examples.get(wanted, "word")


def _without_none(sections: dict[str, dict[str, Any]]) -> Settings:
    return {
        section: {key: value for key, value in values.items() if value is not None}
        for section, values in sections.items()
    }


def changed_settings(old: Config, new: Config) -> list[str]:
    """The names of the settings in which two configs differ."""
    return [
        f"{section.name}.{key.name}"
        for section in fields(Config)
        for key in fields(getattr(old, section.name))
        if getattr(getattr(old, section.name), key.name) != getattr(getattr(new, section.name), key.name)
    ]
