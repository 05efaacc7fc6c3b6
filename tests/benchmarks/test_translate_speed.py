"""What is pure in benchmarks/translate_speed: numbers, tables, the account of arithmetic, the weights for others."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from benchmarks.driver import in_turn
from benchmarks.translate_speed.grow import grown
from benchmarks.translate_speed.macs import translation_macs
from benchmarks.translate_speed.report import percentile, summarize, table
from benchmarks.translate_speed.run import keep
from benchmarks.translate_speed.task import spread
from benchmarks.translate_speed.workers.fairseq_names import fairseq_weight
from benchmarks.translate_speed.workers.protocol import RefusedError, Task, check
from benchmarks.translate_speed.workers.to_huggingface import to_huggingface
from torch.utils.flop_counter import FlopCounterMode

from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

BOS, PAD = 2, 0


def small_model(**changes: Any) -> Transformer:
    """With no weight left at a special value, in float32."""
    torch.manual_seed(1)
    shape: dict[str, Any] = {"vocab_size": 17, "d_model": 8, "d_ff": 12, "n_heads": 2, "max_len_tokens": 32}
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 3, "dropout": 0.0}
    model = Transformer(ModelConfig(**{**shape, **layers, **changes}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def test_percentiles() -> None:
    values = [float(i) for i in range(200, 0, -1)]
    assert percentile(values, 50) == 100
    assert percentile(values, 99) == 198
    assert percentile([7.0], 99) == percentile([7.0], 1) == 7


def test_the_order_of_the_rounds_moves_on_by_one() -> None:
    assert [in_turn([1, 2, 3], number) for number in range(4)] == [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]


def test_sentences_are_spread_over_the_text() -> None:
    assert spread(["a", "b", "c", "d", "e", "f"], 3) == ["a", "c", "e"]
    assert spread(["a", "b"], 5) == ["a", "b"]


def run_of_two_rounds() -> dict[str, Any]:
    """In the second, everything takes twice as long, but for the yardstick, which takes four times as long."""

    def report(wall_s: float, n_tokens: int) -> dict[str, float]:
        return {"wall_s": wall_s, "cpu_s": wall_s * wall_s, "tgt_tokens": n_tokens, "peak_rss_mb": 100 * wall_s}

    about = {
        name: {"version": "1", "settings": "64 sentences", "bleu": score, "macs": {"encoder": 3e9, "decoder": 1e9}}
        for name, score in (("ours", 30.0), ("ours-torch", 30.5), ("ctranslate2-int8", 29.9))
    }
    rounds = [
        {
            "peaks": {"float32": 2e9, "int8": 8e9},
            "systems": {"ours": report(k, 200), "ours-torch": report(4 * k, 210), "ctranslate2-int8": report(w, 205)},
        }
        for k, w in ((1.0, 1.0), (2.0, 4.0))
    ]
    return {
        "model": "small", "beam": 4, "threads": 1, "sentences": 10, "shape": asdict(ModelConfig.small()),
        "refused": {"ours-torch-int8": "there is none"}, "about": about, "rounds": rounds,
        "latencies": {name: [0.01 * (i + 1) for i in range(100)] for name in about},
    }  # fmt: skip


def test_ratios_are_taken_within_rounds_and_bleu_is_held_against_our_float32() -> None:
    summary = summarize(run_of_two_rounds(), 10)
    ours = summary["ours"]
    assert ours["ratios"]["ctranslate2-int8"] == 1.5  # 1 and 2
    assert ours["cpu_ratios"]["ctranslate2-int8"] == 2.5  # 1 and 4
    assert ours["ratios"]["ours-torch"] == 4
    assert ours["sentences_per_s"] == 7.5
    assert (ours["sentences_per_s_min"], ours["sentences_per_s_max"]) == (5, 10)
    assert ours["tokens_per_s"] == 150
    assert ours["int8_share"] == pytest.approx((0.5 + 0.25) / 2)
    assert (ours["p50_ms"], ours["p99_ms"]) == (pytest.approx(500), pytest.approx(990))
    assert ours["peak_rss_mb"] == 200
    assert ours["bleu_difference"] == -0.5
    assert summary["ours-torch"]["bleu_difference"] == 0


def test_the_table_has_a_row_for_each_system_and_the_reason_why_one_is_missing() -> None:
    run = run_of_two_rounds()
    text = table({**run, "summary": summarize(run, 10)})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert all(row.count("|") == rows[0].count("|") for row in rows)
    assert "| **Dragoman** 1 | 7.5 (5.0 to 10.0) | 150 | 1.50 | 2.50 |" in rows[2]
    assert "Dragoman, torch int8 was left out: there is none." in text
    assert "Dragoman: 1.50 times CTranslate2 int8" in text


def test_a_measurement_takes_the_place_of_an_earlier_one_of_the_same() -> None:
    measured: list[dict[str, Any]] = []
    for beam, speed in ((4, 1), (1, 2), (4, 3)):
        keep(measured, {"model": "base", "beam": beam, "threads": 1, "speed": speed})
    assert [(one["beam"], one["speed"]) for one in measured] == [(1, 2), (4, 3)]


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_the_arithmetic_is_what_the_model_does(activation: str) -> None:
    """Greedily, the decoder sees each position once, so that one pass over the whole target multiplies as much."""
    model = small_model(activation=activation)
    n_src, n_tgt = 6, 4  # and an end each
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.explain(torch.randint(4, 17, (1, n_src + 1)), torch.randint(4, 17, (1, n_tgt + 1)))
    macs = translation_macs(asdict(model.config), [n_src], [n_tgt], beam=1)
    unseen = 3 * 2 * 8 * (n_tgt + 1) * n_tgt / 2  # future tokens, which a pass over the whole target multiplies too
    assert 2 * (sum(macs.values()) + unseen) == counter.get_total_flops()
    wide = translation_macs(asdict(model.config), [n_src], [n_tgt], beam=4)
    assert (macs["projection"], wide["projection"]) == (5 * 8 * 17, (1 + 4 * 4) * 8 * 17)  # the first step has one row
    assert (wide["encoder"], wide["memory"]) == (macs["encoder"], macs["memory"])


@pytest.mark.parametrize("attention_bias", [False, True])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_hugging_face_gets_the_same_model(norm: str, positions: str, attention_bias: bool) -> None:
    ours = small_model(norm=norm, positions=positions, attention_bias=attention_bias, activation="gelu")
    theirs = to_huggingface(asdict(ours.config), ours.state_dict())
    src, tgt = torch.randint(4, 17, (3, 7)), torch.randint(4, 17, (3, 6))
    src[1, 4:], tgt[:, 0] = PAD, BOS
    with torch.inference_mode():
        found = theirs(input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt, use_cache=False)
        torch.testing.assert_close(found.logits, ours(src, tgt), rtol=0, atol=1e-4)


def test_hugging_face_refuses_what_it_cannot_do() -> None:
    for changes in ({"activation": "swiglu"}, {"tie_embeddings": False}, {"d_k": 3, "d_v": 3}):
        with pytest.raises(RefusedError):
            to_huggingface(asdict(small_model(**changes).config), {})


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_fairseq_gets_our_weights_under_its_names(positions: str) -> None:
    """fairseq itself is in another environment; there, the benchmark holds the log-probabilities against ours."""
    ours = small_model(norm="pre", positions=positions)
    weights, now = ours.state_dict(), torch.full((8,), 7.0)

    def weight(name: str) -> torch.Tensor:
        return fairseq_weight(name, now, asdict(ours.config), weights)

    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        assert weight(f"{name}.weight") is weights["embedding.weight"]
    assert weight("encoder.layer_norm.bias") is weights["encoder_norm.bias"]
    assert weight("decoder.layers.2.encoder_attn.k_proj.weight") is weights["decoder.2.cross_attention.key.weight"]
    assert not weight("decoder.layers.2.encoder_attn.k_proj.bias").any()  # ours has none
    for name in ("encoder.version", "encoder.layers.0.in_proj_weight", "encoder.layers.0.fc1_bias"):
        assert weight(name) is now
    with pytest.raises(KeyError):
        weight("encoder.layers.0.self_attn.r_proj.weight")

    table = weight("decoder.embed_positions.weight")
    assert not table[PAD].any()
    torch.testing.assert_close(table[PAD + 1 :], ours.tgt_positions(torch.zeros(1, 32, 8))[0])


def test_another_model_is_found_out() -> None:
    known = [([5], [6], [-0.5, -0.1])]
    task = Task("", {}, [], [], beam=1, length_penalty=0.6, max_extra_tokens=50, known=known)
    check([[-0.50001, -0.1]], task)
    with pytest.raises(SystemExit, match="not the same model"):
        check([[-0.5, -0.11]], task)
    with pytest.raises(SystemExit, match="not the same model"):
        check([[float("nan"), -0.1]], task)


def test_a_grown_model_computes_what_the_narrow_one_does() -> None:
    narrow = small_model(norm="pre", positions="learned")
    shape = {"d_model": 32, "d_ff": 48, "n_encoder_layers": 4, "n_decoder_layers": 6}
    wide = Transformer(replace(narrow.config, **shape)).eval()
    ids = torch.randint(3, 17, (2, 5, 9))
    expected = narrow(*ids).log_softmax(dim=-1)

    def farthest(noise: float) -> float:
        torch.manual_seed(2)
        wide.load_state_dict(grown(narrow.state_dict(), narrow.config, wide.config, noise))
        return (wide(*ids).log_softmax(dim=-1) - expected).abs().max().item()

    assert farthest(0.0) < 0.05  # untrained layers add a thousandth of what they would
    assert farthest(0.0) < farthest(0.02) < 1
    matrices = [weight for weight in wide.parameters() if weight.dim() > 1]
    assert len({tuple(weight.flatten().tolist()) for weight in matrices}) == len(matrices)


def test_only_a_model_that_can_grow_is_grown() -> None:
    narrow = small_model(norm="pre")
    with pytest.raises(SystemExit, match="learned positions"):
        grown(narrow.state_dict(), narrow.config, replace(narrow.config, d_model=32, d_ff=48))
