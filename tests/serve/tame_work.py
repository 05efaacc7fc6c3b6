"""What the process of a model does in the tests: it translates by capital letters, and does as it is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from dragoman.errors import ConfigError
from dragoman.serve.remote import work_for_server
from dragoman.translator import Translation


class ObedientTranslator:
    engine = SimpleNamespace(n_at_once=2)
    subwords = SimpleNamespace(vocab_size=17)

    def translate(self, sentences: Sequence[str], **options: Any) -> list[Translation]:
        if "fail" in sentences:
            raise RuntimeError(f"what users wrote: {sentences}")
        if "refuse" in sentences:
            raise ConfigError("nbest=9 does not fit a beam of 4", hint="use less")
        if "die" in sentences:
            os.kill(os.getpid(), signal.SIGKILL)
        if "slowly" in sentences:
            time.sleep(0.5)
        if "options" in sentences:
            return [_translation(repr(sorted(options.items(), key=lambda item: item[0])))]
        return [_whole(text) for text in sentences]


def _translation(text: str, **more: Any) -> Translation:
    return Translation(text=text, score=-0.1, log_prob=-1 / 3, tokens=("▁" + text,), **more)


def _whole(text: str) -> Translation:
    """With a value in every place."""
    return _translation(
        text.upper(),
        token_log_probs=(-0.25, float("-inf")),
        alignment=((0, 0), (1, 2)),
        alternatives=(_translation(text.title(), is_cut=True),),
        terms=(("dog", "Hund", False), ("cat", None, False)),
    )


def _load(folder: str, **options: Any) -> Any:
    if options.get("engine") == "none":
        raise ConfigError('engine "none" is not a choice', hint="use another")
    if options.get("engine") == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return ObedientTranslator()


def work() -> None:
    work_for_server(_load, lambda translator, text, target, off_heads: {"heads": [text, target, off_heads]})
