"""Which languages a model translates between, and which one a text is in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.serve.language_names import NAMES

_CODE = r"[a-z]{2,3}(?:-(?:[A-Z][a-z]{3}|[A-Z]{2}))?"  # en, pt-BR, zh-Hant
_MODEL = re.compile(rf"({_CODE})-({_CODE})=(.+)")
_LOOKED_AT = 2000  # characters of a text, when its language is asked for


def parse_model(text: str) -> tuple[str | None, str | None, Path]:
    """The languages and the folder in `en-de=RUN`; no languages in `RUN` alone."""
    match = _MODEL.fullmatch(text)
    return (match[1], match[2], Path(match[3])) if match else (None, None, Path(text))


def languages_of(config: Config, folder: Path) -> tuple[str, str]:
    """The languages of a run, as the names of its training files end: train.en and train.de.gz are "en" and "de"."""
    endings = [Path((name or "").removesuffix(".gz")).suffix[1:] for name in (config.text.src, config.text.tgt)]
    src, tgt = endings
    if src not in NAMES or tgt not in NAMES:
        raise ConfigError(
            f"the languages of {folder} are not known from the names of its training text",
            hint=f"say them with the model, for example --model en-de={folder}",
        )
    return src, tgt


def name_of(code: str) -> str:
    """The English name of a language, or the code itself where none is known."""
    base, _, region = code.partition("-")
    name = NAMES.get(base, base)
    return f"{name} ({region})" if region else name


@cache
def _all_languages() -> Any:
    """The library's model, which takes a second to read."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class Detector:
    """Tells which of the given languages a text is in."""

    def __init__(self, languages: Iterable[str]) -> None:
        """Those that the library does not know are never found."""
        identifier = copy(_all_languages())
        known = {str(label) for label in identifier.labels}
        self._codes: dict[str, str] = {}  # as the library calls them, and as the models do
        for code in languages:
            name = code if code in known else code.partition("-")[0]
            name = {"nb": "no"}.get(name, name)
            if name in known:
                self._codes.setdefault(name, code)
        if self._codes:
            identifier.set_languages(list(self._codes))
        self._identifier = identifier

    def ranked(self, text: str) -> list[tuple[str, float]]:
        """The languages, likeliest first, and how likely each is in percent; empty if none is known."""
        if not self._codes:
            return []
        # Of a text without anything to go by all are equally likely, in no order of their own.
        found = [(self._codes[str(name)], 100 * float(p)) for name, p in self._identifier.rank(text[:_LOOKED_AT])]
        return sorted(found, key=lambda one: -one[1])
