"""Our own engine in fewer bits: its layout is exact, its rounding little, and company changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dragoman.engines.engine import batches
from dragoman.engines.products import Bfloat16Linear, Int8Linear, has_int8
from dragoman.engines.quick_engine import QuickEngine
from dragoman.engines.quick_model import QuickTransformer, State
from dragoman.engines.torch_engine import TorchEngine
from dragoman.errors import ConfigError
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.search.beam import beam_search
from dragoman.search.step import Constraints, Hypothesis, SearchConfig
from dragoman.tokens.shortlist import Shortlist
from dragoman.translator import Translator, load

needs_int8 = pytest.mark.skipif(not has_int8(), reason="this processor has no products of bytes")


class ExactLinear(nn.Module):
    """Rounds nothing, so that only the layout of the search is left; in float64, where sums of any order are alike."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        super().__init__()
        self.weight_OI, self.bias_O = weight_OI, bias_O

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight_OI, self.bias_O)


def model(seed: int, **settings: object) -> Transformer:
    torch.manual_seed(seed)
    shape = {"vocab_size": 40, "d_model": 32, "d_ff": 48, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2}
    built = Transformer(ModelConfig(**(shape | settings)))  # type: ignore[arg-type]
    for parameter in built.parameters():  # surer of itself than an untrained model is
        parameter.data.mul_(1.5)
    return built.double().eval()


def source(n: int, seed: int) -> Tensor:
    draw = np.random.default_rng(seed)
    src_BS = torch.zeros(n, 9, dtype=torch.long)
    for row_S in src_BS:
        length = draw.integers(1, 9)
        row_S[:length] = torch.from_numpy(draw.integers(4, 40, length))
        row_S[length] = 3
    return src_BS


VARIANTS: list[dict[str, object]] = [
    {},
    {"norm": "pre", "activation": "swiglu"},
    {"activation": "gelu", "tie_embeddings": False, "attention_bias": True},
    {"d_k": 6, "d_v": 10, "positions": "learned"},
    {"positions": "none", "attention_scale": False},
]


@torch.inference_mode()
@pytest.mark.parametrize("beam", [1, 3, 5])
@pytest.mark.parametrize("settings", VARIANTS)
def test_the_layout_finds_what_the_plain_model_finds(settings: dict[str, object], beam: int) -> None:
    src_BS = source(12, seed=beam)
    limits = {"max_lens": [4 + 3 * row for row in range(12)], "bos_id": 2, "eos_id": 3, "length_penalty": 0.6}
    plain = model(beam, **settings)
    expected = beam_search(plain.step, plain.start(src_BS), beam=beam, nbest=beam, **limits)
    quick = QuickTransformer(model(beam, **settings), ExactLinear, torch.float64)  # type: ignore[arg-type]
    found = beam_search(quick.step, quick.start(src_BS, quick.choice(None)), beam=beam, nbest=beam, **limits)
    lengths = {len(one.ids) for hypotheses in expected for one in hypotheses}
    assert len(lengths) > 4  # so that sentences leave
    assert max(lengths) > 12  # and columns are put in order
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-9)


@torch.inference_mode()
def test_a_sentence_chooses_among_its_own_shortlist() -> None:
    src_BS, own = source(4, seed=0), [np.array(sorted({2, 3, *range(5 + 8 * row, 13 + 8 * row)})) for row in range(4)]
    quick = QuickTransformer(model(0), ExactLinear, torch.float64)  # type: ignore[arg-type]
    full, _ = quick.step(torch.full((4,), 2), quick.start(src_BS, quick.choice(None)))
    state = quick.start(src_BS, quick.choice(own).of(own))
    bos, _ = state.choice.places([2, 3])
    log_probs_BV, state = quick.step(torch.full((4,), bos), state)
    for row, ids in enumerate(own):
        expected_V = full[row, ids].log_softmax(dim=0)
        places = state.choice.places(ids.tolist())
        torch.testing.assert_close(log_probs_BV[row, places], expected_V)
        assert log_probs_BV[row].exp().sum() == pytest.approx(1)
        assert (log_probs_BV[row] > -torch.inf).sum() == len(ids)


def source_ids(n: int, seed: int) -> list[list[int]]:
    return [row_S[: int((row_S > 3).sum())].tolist() for row_S in source(n, seed)]


def exact_engine(seed: int, shortlist: Shortlist | None, n_threads: int, **settings: object) -> QuickEngine:
    quick = QuickTransformer(model(seed, **settings), ExactLinear, torch.float64)  # type: ignore[arg-type]
    return QuickEngine(quick, shortlist, n_threads)


def assert_alike(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(),
        Constraints(no_repeat_ngram=2),
        Constraints(prefixes=[[5 + row % 7] * (row % 4) for row in range(60)], no_repeat_ngram=3),
    ],
)
@pytest.mark.parametrize("settings", VARIANTS)
def test_many_batches_find_what_each_sentence_finds_alone(
    settings: dict[str, object], constraints: Constraints, beam: int, n_threads: int
) -> None:
    src_ids, search = source_ids(60, seed=beam), SearchConfig(beam=beam, max_extra_tokens=20)
    plain = TorchEngine(model(beam, **settings))
    expected = [
        plain.search([ids], search, constraints.of([row]), nbest=beam, batch_tokens=100)[0]
        for row, ids in enumerate(src_ids)
    ]
    quick = exact_engine(beam, None, n_threads, **settings)
    assert_alike(quick.search(src_ids, search, constraints, nbest=beam, batch_tokens=80), expected)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_many_batches_keep_to_the_shortlist_of_each_sentence(n_threads: int) -> None:
    draw = np.random.default_rng(0)
    likely = np.sort(np.stack([draw.permutation(np.arange(4, 40))[:3] for _ in range(40)]))
    shortlist = Shortlist(np.arange(8), 3 * np.arange(41), likely.flatten(), np.arange(40))
    src_ids, search = source_ids(60, seed=1), SearchConfig(max_extra_tokens=20)
    quick = exact_engine(0, shortlist, n_threads)
    expected = [quick.search([ids], search, Constraints(), nbest=4, batch_tokens=100)[0] for ids in src_ids]
    assert_alike(quick.search(src_ids, search, Constraints(), nbest=4, batch_tokens=80), expected)
    for ids, hypotheses in zip(src_ids, expected, strict=True):
        assert all({*one.ids} <= {*shortlist.ids(ids)} for one in hypotheses)


def test_the_last_sentences_of_batches_go_together() -> None:
    """As many rows in fewer steps than one batch after the other takes."""
    quick, n_rows = exact_engine(0, None, 1), []

    def step(last_N: Tensor, state: State) -> tuple[Tensor, State]:
        n_rows.append(len(last_N))
        return plain_step(last_N, state)

    plain_step, quick._model.step = quick._model.step, step  # type: ignore[method-assign]
    src_ids, search = source_ids(200, seed=0), SearchConfig(max_extra_tokens=20)
    quick.search(src_ids, search, Constraints(), nbest=1, batch_tokens=300)
    together = len(n_rows), sum(n_rows)
    n_rows.clear()
    for rows in batches([len(ids) for ids in src_ids], 300):
        quick.search([src_ids[row] for row in rows], search, Constraints(), nbest=1, batch_tokens=10**6)
    assert together[1] == sum(n_rows)
    assert together[0] < 0.9 * len(n_rows)


@needs_int8
def test_a_row_of_bytes_depends_on_no_other() -> None:
    torch.manual_seed(0)
    linear, x_NI = (
        Int8Linear(torch.randn(24, 64), torch.randn(24)),
        torch.randn(33, 64) * torch.logspace(-3, 3, 33)[:, None],
    )
    together = linear(x_NI)
    for row in range(33):
        assert torch.equal(linear(x_NI[row : row + 1])[0], together[row])


@needs_int8
@pytest.mark.parametrize("four", [[1, 1, 1, 1], [1, -1, 1, -1], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
def test_sums_of_bytes_are_exact_where_they_are_largest(four: list[int]) -> None:
    """Without VNNI they would overflow in 16 bits, if neighbours of the same sign had all the bits of a byte."""
    weight_OI = torch.tensor(four * 16, dtype=torch.float32).repeat(8, 1)
    for x_NI in (torch.ones(3, 64), -torch.ones(3, 64), weight_OI, -weight_OI):
        for sign in (1, -1):
            expected = sign * x_NI @ weight_OI.T
            assert torch.allclose(Int8Linear(sign * weight_OI)(x_NI), expected, atol=0, rtol=0.01)


@pytest.mark.parametrize(
    ("product", "most"), [pytest.param(Int8Linear, 0.02, marks=needs_int8), (Bfloat16Linear, 0.01)]
)
def test_a_product_is_off_by_little(product: type[Int8Linear], most: float) -> None:
    torch.manual_seed(0)
    weight_OI, bias_O, x_NI = torch.randn(128, 256), torch.randn(128), torch.randn(4, 8, 256)
    expected = nn.functional.linear(x_NI, weight_OI, bias_O)
    error = (product(weight_OI, bias_O)(x_NI) - expected).norm() / expected.norm()
    assert 0 < error < most
    assert torch.equal(product(weight_OI)(torch.zeros(2, 256)), torch.zeros(2, 128))


@pytest.fixture(scope="module", params=[pytest.param("int8", marks=needs_int8), "bfloat16"])
def quick(folder: Path, request: pytest.FixtureRequest) -> Translator:
    return load(folder, engine="torch", precision=request.param, threads=2, shortlist=False)


@pytest.mark.parametrize("beam", [1, 4])
def test_nearly_all_is_translated_as_in_float32(
    quick: Translator, ours: Translator, sentences: list[str], beam: int
) -> None:
    known = sentences[:60]
    found, expected = (one.translate(known, beam=beam, token_log_probs=True) for one in (quick, ours))
    same = [(one, two) for one, two in zip(found, expected, strict=True) if one.tokens == two.tokens]
    assert len(same) >= 50
    assert np.mean([abs(one.log_prob - two.log_prob) for one, two in same]) < 0.1
    for one, _ in same:
        assert one.token_log_probs is not None
        assert sum(one.token_log_probs) == pytest.approx(one.log_prob, abs=0.1)


def test_company_and_batches_change_nothing(quick: Translator, sentences: list[str]) -> None:
    expected = [(one.text, one.score) for one in quick.translate(sentences)]
    backwards = [(one.text, one.score) for one in quick.translate(sentences[::-1], batch_tokens=60)][::-1]
    alone = [(one.text, one.score) for one in (quick.translate([text])[0] for text in sentences)]
    assert [text for text, _ in backwards] == [text for text, _ in alone] == [text for text, _ in expected]
    assert [score for _, score in alone] == pytest.approx([score for _, score in expected], abs=0.02)


def test_prefixes_and_bans_are_kept(quick: Translator, sentences: list[str]) -> None:
    found = quick.translate(sentences[:20], prefix="Das", no_repeat_ngram=2)
    for one in found:
        assert one.text.startswith("Das")
        pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
        assert len(pairs) == len(set(pairs))


def test_a_shortlist_in_the_folder_is_used_unless_refused(folder: Path, ours: Translator, sentences: list[str]) -> None:
    engine = load(folder, engine="torch", precision="bfloat16").engine
    assert isinstance(engine, QuickEngine)
    size = ours.subwords.vocab_size
    likely = ours.translate(sentences[:20])
    common = sorted({0, 1, 2, 3} | {i for one in likely[:10] for i in ours.subwords.encode(one.text)})
    none = np.array([], dtype=np.int64)
    narrow = Shortlist(np.array(common), np.zeros(size + 1, dtype=np.int64), none, none)
    engine._shortlist = narrow
    ids = [ours.subwords.encode(text) for text in sentences[:20]]
    found = engine.search(ids, ours.config.search, Constraints(), nbest=1, batch_tokens=400)
    for src, (best, *_) in zip(ids, found, strict=True):
        assert set(best.ids) <= {*common, *src}
    assert load(folder, engine="torch", precision="bfloat16", shortlist=False).engine._shortlist is None


@needs_int8
def test_which_engine_is_taken(folder: Path) -> None:
    def engine(**choice: Any) -> str:
        return type(load(folder, device="cpu", **choice).engine).__name__

    assert engine() == engine(precision="int8") == engine(precision="float32") == engine(engine="ct2") == "Ct2Engine"
    assert engine(precision="bfloat16") == engine(engine="torch", precision="int8") == "QuickEngine"
    assert engine(engine="torch") == "TorchEngine"


def test_what_cannot_be_had_is_said(folder: Path) -> None:
    with pytest.raises(ConfigError, match="bfloat16 on a processor"):
        load(folder, engine="ct2", precision="bfloat16")
    with pytest.raises(ConfigError, match="averaged by the torch engine"):
        load([folder, folder], precision="bfloat16")
