"""What the explorer is told is what the model does: its weights, its search, and what it is without a head."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.config import make_config
from dragoman.engines.engine import Weights
from dragoman.engines.torch_engine import TorchEngine
from dragoman.errors import ConfigError, DataError
from dragoman.explain.api import MAX_TOKENS, explain_json
from dragoman.explain.flow import rollout
from dragoman.explain.habits import Sides, habits, is_delimiter
from dragoman.explain.heads import Head, Kind, heads_of, parse_heads, without_heads
from dragoman.explain.importance import importance
from dragoman.explain.steps import searched
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer
from dragoman.search.step import SearchConfig, length_penalty
from dragoman.tokens.subwords import BOS_ID, EOS_ID, Subwords
from dragoman.translator import Translator

LINES = """
the old miller walks down to the river every morning
a miller is walking along the river with his old dog
the dog sees a cat on the other side of the water
his sister sings an old song while the bread is baking
""".strip().split("\n")
TEXT = "the dog sees the miller, and Öl"
SHAPES = [
    {},
    {"norm": "pre", "d_k": 5, "d_v": 3, "n_encoder_layers": 1, "n_decoder_layers": 3},
    {"attention_bias": True, "positions": "learned", "n_heads": 4},
]


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(LINES, 330)


def make_translator(subwords: Subwords, dtype: torch.dtype = torch.float32, **shape: Any) -> Translator:
    sizes = {"d_model": 16, "d_ff": 32, "n_heads": 2, "n_encoder_layers": 2, "n_decoder_layers": 2, **shape}
    config = make_config({"model": {"vocab_size": subwords.vocab_size, **sizes}, "search": {"max_extra_tokens": 4}})
    torch.manual_seed(3)
    model = Transformer(config.model).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)  # biases too
        model.embedding.weight[Subwords.eos_id] *= 3  # some hypotheses end by themselves, before the limit
    return Translator(TorchEngine(model.eval()), subwords, config)


@pytest.fixture(scope="module")
def translator(subwords: Subwords) -> Translator:
    return make_translator(subwords)


def ids_of(translator: Translator, tokens: list[str]) -> list[int]:
    """The ids of a translation's tokens, without the end."""
    return [translator.subwords._processor.piece_to_id(token) for token in tokens[:-1]]


def cached_weights(model: Transformer, src_ids: list[int], tgt_ids: list[int]) -> tuple[Weights, list[float]]:
    """Weights and log-probabilities of decoding token by token with the cache, as a search does."""
    with torch.inference_mode():
        src_BS = torch.tensor([[*src_ids, EOS_ID]])
        memory_BSD, encoder = model._encode(src_BS, "readable")
        cache, rows, numbers = model._cache(src_BS, memory_BSD), [], []
        for last, following in zip([BOS_ID, *tgt_ids], [*tgt_ids, EOS_ID], strict=True):
            hidden, cache, weights = model._decode(torch.tensor([[last]]), cache, "readable")
            numbers.append(float(model._project(hidden)[0, -1].log_softmax(dim=-1)[following]))
            rows.append(weights)
    n_steps = len(rows)

    def stacked(which: int, n_columns: int) -> np.ndarray:
        layers = [[row[which][layer][0, :, 0] for row in rows] for layer in range(len(rows[0][which]))]
        padded = [
            torch.stack([torch.nn.functional.pad(row, (0, n_columns - row.shape[1])) for row in each], dim=1)
            for each in layers
        ]
        return torch.stack(padded).numpy()

    found = Weights(
        torch.stack([layer[0] for layer in encoder]).numpy(), stacked(0, n_steps), stacked(1, len(src_ids) + 1)
    )
    return found, numbers


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_are_those_of_the_search_with_its_cache(subwords: Subwords, shape: dict[str, Any]) -> None:
    translator = make_translator(subwords, **shape)
    told = explain_json(translator, TEXT)
    src_ids, engine = subwords.encode(TEXT), translator.engine
    assert isinstance(engine, TorchEngine)
    (best,) = translator.translate([TEXT])
    assert told["target"] == best.text
    assert told["score"] == pytest.approx(best.score, abs=1e-6)
    ids = ids_of(translator, told["tgt_tokens"])
    assert tuple(told["tgt_tokens"][:-1]) == best.tokens
    expected, numbers = cached_weights(engine.model, src_ids, ids)
    assert np.allclose(told["token_log_probs"], numbers, atol=1e-5)
    for kind in ("encoder", "decoder", "cross"):
        weights = np.array(told["attention"][kind])
        assert weights.shape == getattr(expected, kind).shape
        assert np.abs(weights - getattr(expected, kind)).max() < 1e-6
        assert np.allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def silenced(attention: MultiHeadAttention, head: int) -> Callable[[], None]:
    """Zeroes what a head hands to W^O, in the model itself; returns how to undo it."""

    def zero(module: torch.nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        heads_BTHU = inputs[0].clone().unflatten(2, (attention.n_heads, -1))
        heads_BTHU[:, :, head - 1] = 0
        return (heads_BTHU.flatten(2),)

    return attention.output.register_forward_pre_hook(zero).remove


@pytest.mark.parametrize("shape", SHAPES)
def test_a_head_switched_off_is_the_head_zeroed_in_the_model(subwords: Subwords, shape: dict[str, Any]) -> None:
    translator = make_translator(subwords, **shape)
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    before = {name: tensor.clone() for name, tensor in engine.model.state_dict().items()}
    whole = explain_json(translator, TEXT)
    n_different = 0
    for head in heads_of(translator.config.model):
        off = explain_json(translator, TEXT, off_heads=[str(head)])
        layer: Any = (engine.model.encoder if head.kind == "encoder" else engine.model.decoder)[head.layer - 1]
        undo = silenced(layer.cross_attention if head.kind == "cross" else layer.self_attention, head.head)
        zeroed = explain_json(translator, TEXT)
        undo()
        assert off.pop("off_heads") == [str(head)]
        assert zeroed.pop("off_heads") == []
        assert off == zeroed  # to the last digit: translation, weights, steps, scores
        n_different += off["token_log_probs"] != whole["token_log_probs"]
    assert n_different == len(heads_of(translator.config.model))
    assert explain_json(translator, TEXT) == whole
    assert all(torch.equal(tensor, before[name]) for name, tensor in engine.model.state_dict().items())


def test_all_heads_off_leave_no_trace_of_the_source(translator: Translator) -> None:
    off = [str(head) for head in heads_of(translator.config.model) if head.kind == "cross"]
    one, other = (explain_json(translator, text, "the dog", off)["token_log_probs"] for text in (TEXT, "his sister"))
    assert one == other


def test_what_is_switched_off_shares_the_other_weights(translator: Translator) -> None:
    changed = without_heads(translator, [Head("cross", 1, 2)])
    ours, theirs = translator.looked_into(), changed.looked_into()
    assert isinstance(ours, TorchEngine)
    assert isinstance(theirs, TorchEngine)
    own = dict(ours.model.named_parameters())
    apart = [name for name, p in theirs.model.named_parameters() if p.data_ptr() != own[name].data_ptr()]
    assert apart == ["decoder.0.cross_attention.output.weight"]


@pytest.mark.parametrize("beam", [1, 2, 4, 7])
def test_the_steps_are_those_of_the_search(translator: Translator, beam: int) -> None:
    """Followed by its own account of what was kept and what ended, the search finds what it found."""
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    for text in (TEXT, LINES[0], "a"):
        config = SearchConfig(beam=beam, max_extra_tokens=4)
        (plain,) = translator.translate([text], beam=beam, nbest=beam, length_penalty=0.6)
        found, steps = searched(engine.model, translator.subwords.encode(text), config)
        assert [translator.subwords.decode(one.ids) for one in found] == [
            one.text for one in (plain, *plain.alternatives)
        ]
        ended = {}
        for t, rows in enumerate(steps):
            assert all(len(row.ids) == t for row in rows)
            kept = {(*row.ids, one.id): one.log_prob for row in rows for one in row.candidates if one.fate == "kept"}
            if t + 1 < len(steps):
                assert {row.ids: row.log_prob for row in steps[t + 1]} == kept
            for row in rows:
                assert [one.log_prob for one in row.candidates] == sorted(
                    (one.log_prob for one in row.candidates), reverse=True
                )
                for one in row.candidates:
                    if one.fate == "ended":
                        assert one.id == EOS_ID
                        ended[row.ids] = one.log_prob
        ranked = sorted(ended, key=lambda ids: -ended[ids] / length_penalty(len(ids) + 1, 0.6))
        assert ranked[: len(found)] == [one.ids for one in found]
        assert [ended[one.ids] for one in found] == [pytest.approx(one.log_prob, abs=1e-9) for one in found]


def test_steps_as_data_mark_the_way_to_the_translation(translator: Translator) -> None:
    told = explain_json(translator, TEXT)
    for t, token in enumerate(told["tgt_tokens"]):
        (row,) = [row for row in told["steps"][t] if row["is_best"]]
        assert row["tokens"] == told["tgt_tokens"][:t]
        (one,) = [one for one in row["candidates"] if one["is_best"]]
        assert one["token"] == token
        assert one["fate"] == ("ended" if t + 1 == len(told["tgt_tokens"]) else "kept")
        assert math.log(one["probability"]) == pytest.approx(told["token_log_probs"][t], abs=1e-3)


def test_a_given_translation(translator: Translator) -> None:
    told = explain_json(translator, TEXT, "his song is old")
    assert told["is_forced"]
    assert told["target"] == "his song is old"
    ids = translator.subwords.encode("his song is old")
    (numbers,) = translator.engine.token_log_probs([translator.subwords.encode(TEXT)], [ids], batch_tokens=99)
    assert told["token_log_probs"] == pytest.approx(numbers, abs=1e-6)
    attention = translator.attention(TEXT, "his song is old")
    assert np.abs(np.array(told["attention"]["cross"]) - attention.cross).max() < 1e-6
    for step, token in zip(told["steps"], told["tgt_tokens"], strict=True):
        (row,) = step
        assert [one["token"] for one in row["candidates"] if one["fate"] != "dropped"] == [token]
        assert len(row["candidates"]) >= 5


def test_words_and_alignment_are_those_of_translate(translator: Translator) -> None:
    told = explain_json(translator, TEXT)
    (best,) = translator.translate([TEXT], alignments=True)
    assert tuple((src, tgt) for src, tgt in told["alignment"]) == best.alignment
    assert told["src_word_texts"] == [*TEXT.split(), "</s>"]
    assert len(told["src_words"]) == len(told["src_tokens"])
    assert told["src_words"][-1] == len(told["src_word_texts"]) - 1
    assert len(told["tgt_in_words"]) == len(told["tgt_in_tokens"]) == len(told["tgt_tokens"])
    assert max(told["tgt_in_words"]) < len(told["tgt_in_word_texts"])


def test_effects_are_those_of_each_head_alone(translator: Translator) -> None:
    calls: list[tuple[int, int]] = []
    told = explain_json(translator, TEXT, effects=True, progress=lambda *n: calls.append(n))
    heads = [str(head) for head in heads_of(translator.config.model)]
    assert [effect["head"] for effect in told["effects"]] == heads
    assert calls[-1] == (len(heads), len(heads))
    for effect in told["effects"][::3]:
        alone = explain_json(translator, TEXT, off_heads=[effect["head"]])
        assert effect["text"] == alone["target"]
        assert effect["log_prob"] == pytest.approx(alone["log_prob"], abs=1e-6)
        changed = without_heads(translator, parse_heads([effect["head"]], translator.config.model))
        src_ids, ids = translator.subwords.encode(TEXT), ids_of(translator, told["tgt_tokens"])
        (numbers,) = changed.engine.token_log_probs([src_ids], [ids], batch_tokens=99)
        assert effect["log_prob_of_target"] == pytest.approx(sum(numbers), abs=1e-6)


def test_a_model_in_training_is_looked_at_without_dropout_and_stays_in_training(translator: Translator) -> None:
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    told = explain_json(translator, TEXT)
    engine.model.train()
    assert explain_json(translator, TEXT) == told
    assert engine.model.training
    engine.model.eval()


def test_importance_is_the_change_of_loss_without_a_head(translator: Translator) -> None:
    sources, references = LINES[:3], LINES[1:4]
    whole, *found = importance(translator, sources, references, with_bleu=True)
    assert whole.head is None
    assert whole.loss == pytest.approx(translator.loss(sources, references))
    assert [one.head for one in found] == heads_of(translator.config.model)
    one = found[5]
    assert one.head is not None
    assert one.loss == without_heads(translator, [one.head]).loss(sources, references) != whole.loss
    assert one.bleu is not None


def test_what_cannot_be_looked_at(translator: Translator) -> None:
    for names in (["cross.3.1"], ["cross.0.1"], ["cross.1"], ["middle.1.1"], ["encoder.1.3"], [""]):
        with pytest.raises(ConfigError, match="no head") as caught:
            explain_json(translator, TEXT, off_heads=names)
        assert "cross.2.2" in str(caught.value.hint)
    assert parse_heads(["cross.1.2", "encoder.2.1", "cross.1.2"], translator.config.model) == [
        Head("encoder", 2, 1),
        Head("cross", 1, 2),
    ]
    with pytest.raises(DataError, match="no text"):
        explain_json(translator, "")
    with pytest.raises(DataError, match="no text"):
        explain_json(translator, TEXT, "")
    with pytest.raises(DataError, match=f"at most {MAX_TOKENS}"):
        explain_json(translator, "dog " * (MAX_TOKENS + 1))


def test_rollout_of_one_layer_is_half_of_what_it_looks_at() -> None:
    """Worked out by hand; rows sum to one for any weights, and nothing comes from the future."""
    first = np.array([[[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]])
    cross = np.array([[[[0.2, 0.8], [1.0, 0.0]], [[0.4, 0.6], [0.0, 1.0]]]])
    found = rollout(Weights(encoder=first, decoder=first, cross=cross))
    assert found.encoder[0].tolist() == [[1.0, 0.0], [0.125, 0.875]]
    assert found.cross[0] == pytest.approx(np.array([[0.3, 0.7], [0.5, 0.5]]) @ found.encoder[0])

    rng = np.random.default_rng(0)
    weights = Weights(*(rng.dirichlet(np.ones(n), size=(3, 2, m)) for m, n in ((5, 5), (4, 4), (4, 5))))
    weights = weights._replace(decoder=np.tril(weights.decoder) / np.tril(weights.decoder).sum(axis=-1, keepdims=True))
    for kind, each in rollout(weights)._asdict().items():
        assert np.allclose(each.sum(axis=-1), 1), kind
        assert each.shape[0] == 3
    assert np.triu(rollout(weights).decoder[-1], 1).max() == 0


def shift(n: int, by: int) -> np.ndarray:
    """Everyone looks at the token that stands `by` after it, those at the edge at themselves."""
    return np.array([[float(column == min(n - 1, max(0, row + by))) for column in range(n)] for row in range(n)])


@pytest.mark.parametrize(
    ("kind", "weights", "tendency", "distance"),
    [
        ("encoder", shift(6, -1), "previous token", 5 / 6),
        ("encoder", shift(6, 1), "next token", 5 / 6),
        ("encoder", shift(6, 0), "same word", 0),
        ("encoder", np.full((6, 6), 1 / 6), "everywhere", 35 / 18),
        ("encoder", shift(6, 9), "delimiter", 2.5),
        ("decoder", shift(6, -1), "previous token", 5 / 6),
        ("cross", shift(6, 0)[::-1], "aligned word", 3.0),
        ("encoder", shift(6, 0)[[3, 4, 5, 0, 1, 2]], "mixed", 3.0),
    ],
)
def test_habits_have_names(kind: Kind, weights: np.ndarray, tendency: str, distance: float) -> None:
    words = list(range(6))
    pieces = ["▁a", "▁b", "▁c", "▁d", "▁e", "</s>"]
    sides = Sides(row_words=words, column_words=words, columns=pieces, aligned=words[::-1])
    found = habits(weights, kind, sides)
    assert found.tendency == tendency
    assert found.distance == pytest.approx(distance)
    assert found.entropy == pytest.approx(math.log2(6) if tendency == "everywhere" else 0)


def test_the_pieces_of_a_word_look_at_one_another() -> None:
    words = [0, 0, 0, 1, 1, 2]
    weights = np.array([[float(a == b) for b in words] for a in words])
    weights /= weights.sum(axis=1, keepdims=True)
    sides = Sides(row_words=words, column_words=words, columns=["▁a", "b", "c", "▁d", "e", "</s>"])
    found = habits(weights, "encoder", sides)
    assert found.shares["same word"] == pytest.approx(1)
    assert found.tendency == "same word"


@pytest.mark.parametrize(
    ("piece", "expected"), [("▁.", True), ("</s>", True), ("?!", True), ("▁", False), ("a.", False)]
)
def test_delimiters(piece: str, expected: bool) -> None:
    assert is_delimiter(piece) is expected
