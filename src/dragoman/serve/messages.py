"""What the server and the processes of its translators say to each other, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dragoman import errors
from dragoman.errors import DragomanError
from dragoman.search.step import Sampling
from dragoman.text.glossary import Glossary, Term
from dragoman.translator import Translation


def question(sentences: Sequence[str], options: Mapping[str, Any]) -> bytes:
    """Sentences, and the options of `Translator.translate`."""
    told = dict(options)
    if told.get("sampling") is not None:
        told["sampling"] = asdict(told["sampling"])
    if told.get("glossary") is not None:
        told["glossary"] = [(term.src, term.forms) for term in told["glossary"].terms]
    return json.dumps([sentences, told]).encode()


def read_question(message: bytes) -> tuple[list[str], dict[str, Any]]:
    """The reverse."""
    sentences, options = json.loads(message)
    if options.get("sampling") is not None:
        options["sampling"] = Sampling(**options["sampling"])
    if options.get("glossary") is not None:
        options["glossary"] = Glossary(Term(src, tuple(forms)) for src, forms in options["glossary"])
    return sentences, options


def answer(translations: Sequence[Translation]) -> bytes:
    """Translations."""
    return json.dumps([_values(one) for one in translations]).encode()


def read_answer(message: bytes) -> list[Translation]:
    """The reverse."""
    return [_translation(values) for values in json.loads(message)]


def refusal(error: DragomanError) -> bytes:
    """An error that a user can cause."""
    return json.dumps([type(error).__name__, error.message, error.hint]).encode()


def read_refusal(message: bytes) -> DragomanError:
    """The reverse."""
    name, text, hint = json.loads(message)
    kind: type[DragomanError] = getattr(errors, name, DragomanError)
    return kind(text, hint=hint)


def _values(one: Translation) -> list[Any]:
    """In the order of `_translation`; `dataclasses.asdict` would take as long as all the rest of an answer."""
    others = [_values(other) for other in one.alternatives]
    return [
        one.text, one.score, one.log_prob, one.tokens, one.token_log_probs, one.alignment, others, one.terms, one.is_cut
    ]  # fmt: skip


def _translation(values: list[Any]) -> Translation:
    text, score, log_prob, tokens, token_log_probs, alignment, others, terms, is_cut = values
    return Translation(
        text=text,
        score=score,
        log_prob=log_prob,
        tokens=tuple(tokens),
        token_log_probs=None if token_log_probs is None else tuple(token_log_probs),
        alignment=None if alignment is None else tuple((src, tgt) for src, tgt in alignment),
        alternatives=tuple(_translation(other) for other in others),
        terms=tuple((src, form, is_met) for src, form, is_met in terms),
        is_cut=is_cut,
    )
