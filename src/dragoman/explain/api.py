"""All there is to see of one sentence in a model, as JSON: what the page shows and `/v1/attention` answers."""

# Letters: L layers, H heads, T rows, S columns.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dragoman._version import __version__
from dragoman.engines.engine import Weights
from dragoman.errors import DataError
from dragoman.explain.flow import rollout
from dragoman.explain.habits import Sides, habits
from dragoman.explain.heads import KINDS, Kind, heads_of, parse_heads, torch_model, without_heads
from dragoman.explain.steps import Row, forced, searched
from dragoman.search.step import Hypothesis
from dragoman.tokens.subwords import EOS_ID
from dragoman.tokens.words import aligned_words, word_numbers
from dragoman.translator import Translator

MAX_TOKENS = 100  # of a text: the matrices grow with the square, and nobody reads larger ones
_DECIMALS = 7  # of weights; rows still sum to one within 1e-5


def explain_json(
    translator: Translator,
    text: str,
    target: str | None = None,
    off_heads: Sequence[str] = (),
    *,
    effects: bool = False,
    progress: Callable[[int, int], None] = lambda n_done, n_all: None,
) -> dict[str, Any]:
    """The attention of every layer and head while `text` is translated, or while `target` is produced from it.

    `off_heads` are names such as "cross.2.3" (kind, layer and head, counted from 1): the model is looked at as if those
    heads found nothing. With `effects`, each head is also switched off alone, and `progress` told how many are done.
    The model is our own in float32, whatever engine the translator has.

    `attention` holds the weights as [kind][layer][head][row][column]: rows look at columns. Those of "encoder" are
    `src_tokens` both ways, of "cross" `tgt_tokens` by `src_tokens`, of "decoder" `tgt_tokens` by `tgt_in_tokens`: a row
    is the step that writes its token. `rollout` has no heads. `…_words` says for each token the number of its word,
    `…_word_texts` what the words are.
    """
    src_ids = _encoded(translator, text)
    off = parse_heads(off_heads, translator.config.model)
    looked_at = without_heads(translator, off)
    found, steps, tgt_ids = _translated(looked_at, src_ids, target)
    subwords, model = translator.subwords, translator.config.model
    weights = looked_at.looked_into().explain(src_ids, tgt_ids)
    src_tokens, tgt_tokens = ([*subwords.pieces(ids), "</s>"] for ids in (src_ids, tgt_ids))
    tgt_in_tokens = ["<s>", *tgt_tokens[:-1]]
    src_words, tgt_words = word_numbers(src_tokens[:-1]), word_numbers(tgt_tokens[:-1])
    src_words, tgt_words = ([*words, max(words, default=-1) + 1] for words in (src_words, tgt_words))
    tgt_in_words = [0, *(word + 1 for word in tgt_words[:-1])]
    src_word_texts, tgt_word_texts = ([*_word_texts(translator, ids), "</s>"] for ids in (src_ids, tgt_ids))
    alignment = aligned_words(weights.cross.mean(axis=(0, 1))[:-1, :-1], src_words[:-1], tgt_words[:-1])
    sides: dict[Kind, Sides] = {
        "encoder": Sides(row_words=src_words, column_words=src_words, columns=src_tokens),
        "decoder": Sides(row_words=tgt_in_words, column_words=tgt_in_words, columns=tgt_in_tokens),
        "cross": Sides(row_words=tgt_words, column_words=src_words, columns=src_tokens, aligned=[*alignment, None]),
    }
    best = found[0]
    result = {
        "dragoman": __version__,
        "model": {
            "n_encoder_layers": model.n_encoder_layers,
            "n_decoder_layers": model.n_decoder_layers,
            "n_heads": model.n_heads,
            "d_model": model.d_model,
            "beam": translator.config.search.beam,
            "length_penalty": translator.config.search.length_penalty,
        },
        "source": text,
        "target": target if target is not None else subwords.decode(best.ids),
        "is_forced": target is not None,
        "off_heads": [str(head) for head in off],
        "score": best.score,
        "log_prob": best.log_prob,
        "token_log_probs": list(best.token_log_probs),
        "alternatives": [
            {"text": subwords.decode(one.ids), "score": one.score, "log_prob": one.log_prob} for one in found[1:]
        ],
        "src_tokens": src_tokens,
        "tgt_tokens": tgt_tokens,
        "tgt_in_tokens": tgt_in_tokens,
        "src_words": src_words,
        "tgt_words": tgt_words,
        "tgt_in_words": tgt_in_words,
        "src_word_texts": src_word_texts,
        "tgt_word_texts": tgt_word_texts,
        "tgt_in_word_texts": ["<s>", *tgt_word_texts[:-1]],
        "alignment": [[src, tgt] for tgt, src in enumerate(alignment)],
        "attention": _rounded(weights),
        "rollout": _rounded(rollout(weights)),
        "heads": {
            kind: [
                [habits(one_TS, kind, sides[kind]).to_dict() for one_TS in layer] for layer in getattr(weights, kind)
            ]
            for kind in KINDS
        },
        "steps": [_step(translator, rows, best.ids) for rows in steps],
    }
    if effects:
        result["effects"] = _effects(translator, src_ids, target, best, progress)
    return result


def _encoded(translator: Translator, text: str) -> list[int]:
    """The ids of a text of which matrices can be shown."""
    ids = translator.subwords.encode(text)
    if not ids:
        raise DataError("there is no text to look at", hint="give a sentence")
    if len(ids) > MAX_TOKENS:
        raise DataError(
            f"the text has {len(ids)} subwords, and at most {MAX_TOKENS} can be looked at together",
            hint="give one sentence at a time",
        )
    return ids


def _translated(
    translator: Translator, src_ids: list[int], target: str | None
) -> tuple[list[Hypothesis], list[list[Row]], list[int]]:
    """The hypotheses, best first, the steps to them, and the ids of the best."""
    model, search = torch_model(translator), translator.config.search
    if target is None:
        found, steps = searched(model, src_ids, search)
        return found, steps, list(found[0].ids)
    tgt_ids = _encoded(translator, target)
    numbers, steps = forced(model, src_ids, tgt_ids)
    return [Hypothesis.of(tgt_ids, numbers, search.length_penalty)], steps, tgt_ids


def _effects(
    translator: Translator,
    src_ids: list[int],
    target: str | None,
    best: Hypothesis,
    progress: Callable[[int, int], None],
) -> list[dict[str, Any]]:
    """For each head what is written without it, and how probable what was written with it is then."""
    heads = heads_of(translator.config.model)
    effects = []
    for n_done, head in enumerate(heads):
        progress(n_done, len(heads))
        changed = without_heads(translator, [head])
        found, _, _ = _translated(changed, src_ids, None)
        ((*numbers,),) = changed.engine.token_log_probs([src_ids], [best.ids], batch_tokens=1)
        effects.append(
            {
                "head": str(head),
                "text": translator.subwords.decode(found[0].ids),
                "log_prob": found[0].log_prob,
                "log_prob_of_target": math.fsum(numbers),
            }
        )
    progress(len(heads), len(heads))
    return effects


def _word_texts(translator: Translator, ids: list[int]) -> list[str]:
    words = word_numbers(translator.subwords.pieces(ids))
    apart = [
        [id for id, of in zip(ids, words, strict=True) if of == word] for word in range(max(words, default=-1) + 1)
    ]
    return [translator.subwords.decode(word).strip() for word in apart]


def _step(translator: Translator, rows: list[Row], best_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The live hypotheses of a step; `is_best` where the way leads to the translation."""
    pieces, way = translator.subwords.pieces, (*best_ids, EOS_ID)
    return [
        {
            "tokens": pieces(row.ids),
            "log_prob": round(row.log_prob, 5),
            "is_best": row.ids == way[: len(row.ids)],
            "candidates": [
                {
                    "token": pieces([one.id])[0],
                    "probability": float(f"{math.exp(one.token_log_prob):.4g}"),
                    "log_prob": round(one.log_prob, 5),
                    "fate": one.fate,
                    "is_best": (*row.ids, one.id) == way[: len(row.ids) + 1],
                }
                for one in row.candidates
                if one.log_prob > -math.inf
            ],
        }
        for row in rows
        if row.log_prob > -math.inf
    ]


def _rounded(weights: Weights) -> dict[str, Any]:
    return {kind: np.round(getattr(weights, kind).astype(np.float64), _DECIMALS).tolist() for kind in KINDS}
