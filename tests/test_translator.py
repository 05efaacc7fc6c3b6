"""The translator, around a model that knows nothing: what must hold whatever the weights are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.checkpoint.format import save_tensors
from dragoman.config import make_config, to_toml
from dragoman.engines.torch_engine import TorchEngine, pick_device
from dragoman.errors import ConfigError, ModelError
from dragoman.model.transformer import Transformer
from dragoman.search.step import Sampling
from dragoman.tokens.subwords import Subwords
from dragoman.translator import Translation, Translator, load

TEXT = """
the old miller walks down to the river every morning
a miller is walking along the river with his old dog
the dog sees a cat on the other side of the water
every cat in the village knows the dog of the miller
she walks to the mill and sees the water in the morning
the river is wide and the water is cold in the winter
in the village there is a mill beside the wide river
his sister sings an old song while the bread is baking
an old song is a good song said the sister of the miller
bread and water and a song are enough for the morning
"""
LINES = TEXT.strip().split("\n")
SENTENCES = [*LINES[:4], "the dog", "", "a cat sings a song and walks", "water", "Öl: 3 ▁ x", *LINES[7:]]


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(LINES, 340)


def make_translator(subwords: Subwords, dtype: torch.dtype = torch.float64, seed: int = 0) -> Translator:
    config = make_config(
        {
            "model": {
                "vocab_size": subwords.vocab_size, "d_model": 16, "d_ff": 32, "n_heads": 2, "n_encoder_layers": 2,
                "n_decoder_layers": 2,
            },
            "search": {"max_extra_tokens": 4},
        }
    )  # fmt: skip
    torch.manual_seed(seed)
    model = Transformer(config.model).to(dtype)
    with torch.no_grad():
        model.embedding.weight[Subwords.eos_id] *= 3  # some sentences end by themselves, before the limit
    return Translator(TorchEngine(model), subwords, config)


@pytest.fixture(scope="module")
def translator(subwords: Subwords) -> Translator:
    return make_translator(subwords)


def assert_same(found: list[Translation], expected: list[Translation], atol: float = 1e-10) -> None:
    assert [one.text for one in found] == [one.text for one in expected]
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, two in zip(found, expected, strict=True):
        assert one.score == pytest.approx(two.score, abs=atol)
        assert one.token_log_probs == pytest.approx(two.token_log_probs, abs=atol)
        assert one.alignment == two.alignment
        assert_same(list(one.alternatives), list(two.alternatives), atol)


def forced_log_probs(translator: Translator, text: str, tokens: tuple[str, ...]) -> list[float]:
    """What the model's forward pass says of these tokens and the end, one sentence alone."""
    subwords = translator.subwords
    ids_of = {piece: i for i, piece in enumerate(subwords.pieces(range(subwords.vocab_size)))}
    ids = [ids_of[token] for token in tokens]
    src = torch.tensor([[*subwords.encode(text), subwords.eos_id]])
    translator.engine.model.eval()
    with torch.inference_mode():
        log_probs = translator.engine.model(src, torch.tensor([[subwords.bos_id, *ids]]))[0].log_softmax(-1)
    return log_probs[range(len(ids) + 1), [*ids, subwords.eos_id]].tolist()


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("batch_tokens", [1, 20, 10_000])
def test_neither_batch_size_nor_order_nor_neighbours_matter(
    translator: Translator, beam: int, batch_tokens: int
) -> None:
    together = translator.translate(SENTENCES, beam=beam, nbest=beam, alignments=True, token_log_probs=True)
    apart = [
        translator.translate([text], beam=beam, nbest=beam, alignments=True, token_log_probs=True)[0]
        for text in SENTENCES
    ]
    assert_same(together, apart)
    backwards = translator.translate(
        SENTENCES[::-1], beam=beam, nbest=beam, alignments=True, token_log_probs=True, batch_tokens=batch_tokens
    )
    assert_same(backwards[::-1], apart)
    assert len({one.text for one in together}) > len(SENTENCES) // 2  # the sentences do differ
    assert len({len(one.tokens) for one in together}) > 2


def test_so_it_is_in_single_precision(subwords: Subwords) -> None:
    translator = make_translator(subwords, torch.float32)
    together = translator.translate(SENTENCES)
    # 2^-24 per rounding, over sums of some dozen log-probabilities of size ten.
    assert_same([translator.translate([text])[0] for text in SENTENCES], together, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_score_is_that_of_forced_decoding(translator: Translator, beam: int) -> None:
    alpha = translator.config.search.length_penalty
    assert alpha == 0.6
    for text, best in zip(
        SENTENCES, translator.translate(SENTENCES, beam=beam, nbest=beam, token_log_probs=True), strict=True
    ):
        for one in (best, *best.alternatives) if text else ():
            expected = forced_log_probs(translator, text, one.tokens)
            assert one.token_log_probs == pytest.approx(expected, abs=1e-10)
            assert one.log_prob == pytest.approx(sum(expected), abs=1e-10)
            assert one.score == pytest.approx(sum(expected) / ((5 + len(expected)) / 6) ** alpha, abs=1e-10)


def test_search_settings_are_the_models_unless_given(translator: Translator) -> None:
    text = [LINES[0]]
    assert_same(translator.translate(text), translator.translate(text, beam=4, length_penalty=0.6))
    unpenalised = translator.translate(text, length_penalty=0.0)[0]
    assert unpenalised.score == unpenalised.log_prob
    other = Translator(
        translator.engine,
        translator.subwords,
        replace(translator.config, search=replace(translator.config.search, beam=1)),
    )
    assert_same(other.translate(text), translator.translate(text, beam=1))


def test_the_output_is_at_most_so_much_longer_than_the_input(translator: Translator) -> None:
    for text, one in zip(
        SENTENCES, translator.translate(SENTENCES, beam=2, length_penalty=5.0, token_log_probs=True), strict=True
    ):
        assert len(one.tokens) <= len(translator.subwords.encode(text)) + 4
        assert len(one.token_log_probs) == len(one.tokens) + 1 or text == ""


def test_nbest(translator: Translator) -> None:
    for one in translator.translate(LINES[:3], beam=4, nbest=4):
        found = [one, *one.alternatives]
        assert len(found) == 4
        assert len({each.tokens for each in found}) == 4
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        assert all(each.alternatives == () for each in one.alternatives)
    best = translator.translate(LINES[:3], beam=4)
    assert all(one.alternatives == () for one in best)


def test_an_empty_sentence_has_an_empty_translation(translator: Translator) -> None:
    empty = Translation(text="", score=0.0, log_prob=0.0, tokens=())
    assert translator.translate([""]) == [empty]
    assert translator.translate(["", LINES[0], ""])[::2] == [empty, empty]
    assert translator.translate([]) == []
    assert translator("") == ""


def test_one_sentence_by_calling_it(translator: Translator) -> None:
    assert translator(LINES[0]) == translator.translate([LINES[0]])[0].text


def test_text_and_tokens_agree(translator: Translator) -> None:
    subwords = translator.subwords
    ids_of = {piece: i for i, piece in enumerate(subwords.pieces(range(subwords.vocab_size)))}
    for one in translator.translate(SENTENCES):
        assert one.text == subwords.decode([ids_of[token] for token in one.tokens])


def test_a_text_for_a_list_is_a_mistake(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list of sentences"):
        translator.translate("a sentence")


@pytest.mark.parametrize("arguments", [{"nbest": 0}, {"batch_tokens": 0}, {"beam": 0}, {"length_penalty": math.nan}])
def test_arguments_out_of_range(translator: Translator, arguments: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        translator.translate(["a"], **arguments)


def test_translating_leaves_the_model_as_it_was(translator: Translator) -> None:
    """In training mode if it was, but translating without dropout."""
    translator.engine.model.train()
    assert_same(translator.translate(LINES[:2]), translator.translate(LINES[:2]))
    assert translator.engine.model.training
    translator.engine.model.eval()
    translator.attention("the dog")
    assert not translator.engine.model.training


def test_attention(translator: Translator) -> None:
    attention = translator.attention("the dog sees", "a cat")
    subwords = translator.subwords
    assert attention.src_tokens == (*subwords.pieces(subwords.encode("the dog sees")), "</s>")
    assert attention.tgt_tokens == (*subwords.pieces(subwords.encode("a cat")), "</s>")
    assert attention.tgt_in_tokens == ("<s>", *attention.tgt_tokens[:-1])
    n_src, n_tgt = len(attention.src_tokens), len(attention.tgt_tokens)
    assert attention.encoder.shape == (2, 2, n_src, n_src)
    assert attention.decoder.shape == (2, 2, n_tgt, n_tgt)
    assert attention.cross.shape == (2, 2, n_tgt, n_src)
    for weights in (attention.encoder, attention.decoder, attention.cross):
        assert isinstance(weights, np.ndarray)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=0, atol=1e-12)
        assert (weights >= 0).all()
    assert not np.triu(attention.decoder, 1).any()


def test_attention_while_translating(translator: Translator) -> None:
    """Without a target it is that of the translation itself."""
    text = LINES[1]
    own, given = translator.attention(text), translator.attention(text, translator(text))
    assert own.tgt_tokens == given.tgt_tokens
    np.testing.assert_array_equal(own.cross, given.cross)


def test_alignments_name_words_that_are_there(translator: Translator) -> None:
    for text, one in zip(LINES, translator.translate(LINES, alignments=True), strict=True):
        assert one.alignment is not None
        src_words, tgt_words = [src for src, _ in one.alignment], [tgt for _, tgt in one.alignment]
        assert all(0 <= word < len(text.split()) for word in src_words)
        assert tgt_words == list(range(len(tgt_words)))
    assert translator.translate([LINES[0]])[0].alignment is None


def test_alignments_by_hand(subwords: Subwords) -> None:
    """Cross-attention averaged over layers and heads, added up over the pieces of a word; the end takes no part."""
    translator = make_translator(subwords)
    with torch.no_grad():
        for layer in translator.engine.model.decoder:
            layer.cross_attention.query.weight *= 8  # each head has its own favourites
    ids_of = {piece: i for i, piece in enumerate(subwords.pieces(range(subwords.vocab_size)))}
    n_checked = 0
    found = translator.translate(LINES, sampling=Sampling(temperature=2.0), nbest=3, alignments=True)
    pairs = [(text, one) for text, best in zip(LINES, found, strict=True) for one in (best, *best.alternatives)]
    for text, one in pairs:
        src_pieces = subwords.pieces(subwords.encode(text))
        if "▁" in (*src_pieces, *one.tokens):
            continue  # a space alone belongs to the word after it: another rule
        src = torch.tensor([[*subwords.encode(text), subwords.eos_id]])
        tgt = torch.tensor([[subwords.bos_id, *(ids_of[token] for token in one.tokens)]])
        with torch.inference_mode():
            mean = torch.stack(translator.engine.model.eval().explain(src, tgt)[1].cross).mean(dim=(0, 1, 2))
        expected = []
        for word, tgt_span in enumerate(word_spans(one.tokens)):
            masses = [mean[tgt_span, src_span].sum().item() for src_span in word_spans(src_pieces)]
            expected.append((masses.index(max(masses)), word))
        assert one.alignment == tuple(expected)
        n_checked += len(expected)
    assert n_checked > 20


def word_spans(pieces: Sequence[str]) -> list[slice]:
    starts = [i for i, piece in enumerate(pieces) if i == 0 or piece.startswith("▁")]
    return [slice(*ends) for ends in zip(starts, [*starts[1:], len(pieces)], strict=True)]


def test_samples_are_reproducible_and_know_no_neighbours(translator: Translator) -> None:
    sampling = Sampling(seed=7, temperature=1.5)
    together = translator.translate(SENTENCES, sampling=sampling)
    assert_same(translator.translate(SENTENCES, sampling=sampling, batch_tokens=1), together)
    for number, text in enumerate(SENTENCES):
        alone = translator.translate([text], sampling=replace(sampling, first_sentence=number))
        assert_same(alone, [together[number]])
    other = translator.translate(SENTENCES, sampling=replace(sampling, seed=8))
    assert [one.text for one in other] != [one.text for one in together]


def test_samples_of_one_sentence_differ_and_carry_the_models_own_probability(translator: Translator) -> None:
    sampling = Sampling(temperature=2.0, top_k=50, top_p=0.95)
    one = translator.translate([LINES[0]], nbest=5, sampling=sampling, token_log_probs=True)[0]
    found = [one, *one.alternatives]
    assert len({each.tokens for each in found}) == 5
    for each in found:
        assert each.token_log_probs == pytest.approx(forced_log_probs(translator, LINES[0], each.tokens), abs=1e-10)


def test_the_only_candidate_is_the_greedy_one(translator: Translator) -> None:
    greedy = translator.translate(SENTENCES, beam=1)
    assert_same(translator.translate(SENTENCES, sampling=Sampling(top_k=1)), greedy)


def test_loss_by_hand(translator: Translator) -> None:
    """Negative log-likelihood of all tokens with their ends, over their number; no mean of means, no smoothing."""
    references = ["a dog", *LINES[4:], ""]
    sources = [*LINES[: len(references) - 1], "the end"]
    total, n_tokens = 0.0, 0
    for src, tgt in zip(sources, references, strict=True):
        tokens = tuple(translator.subwords.pieces(translator.subwords.encode(tgt)))
        log_probs = forced_log_probs(translator, src, tokens)
        total, n_tokens = total - sum(log_probs), n_tokens + len(log_probs)
    assert translator.loss(sources, references) == pytest.approx(total / n_tokens, rel=1e-6)
    assert translator.loss(sources, references, batch_tokens=1) == pytest.approx(total / n_tokens, rel=1e-6)


def save_folder(folder: Path, translator: Translator) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text(to_toml(translator.config), encoding="utf-8")
    translator.subwords.save(folder / "subwords.model")
    save_tensors(folder / "model.safetensors", translator.engine.model.state_dict())


def test_load_gives_the_same_translator(tmp_path: Path, subwords: Subwords) -> None:
    translator = make_translator(subwords, torch.float32)
    save_folder(tmp_path / "run", translator)
    for path in (tmp_path / "run", str(tmp_path / "run")):
        loaded = load(path, engine="torch", device="cpu")
        assert not loaded.engine.model.training
        assert loaded.config == translator.config
        assert loaded.translate(SENTENCES, alignments=True) == translator.translate(SENTENCES, alignments=True)


def test_several_models_are_averaged(tmp_path: Path, subwords: Subwords) -> None:
    for seed in (1, 2):
        save_folder(tmp_path / str(seed), make_translator(subwords, torch.float32, seed))
    one, two = (load(tmp_path / name, engine="torch") for name in "12")
    both = load([tmp_path / "1", tmp_path / "2"], device="cpu")
    for text, found in zip(LINES[:4], both.translate(LINES[:4], token_log_probs=True), strict=True):
        probs = [np.exp(forced_log_probs(each, text, found.tokens)) for each in (one, two)]
        assert found.token_log_probs == pytest.approx(np.log(np.mean(probs, axis=0)), abs=1e-4)
    tokens = [one.subwords.encode(text) for text in LINES[:2]]
    alone = [each.engine.token_log_probs(tokens, tokens, batch_tokens=100) for each in (one, two, both)]
    for first, second, mean in zip(*alone, strict=True):
        assert np.exp(mean) == pytest.approx((np.exp(first) + np.exp(second)) / 2, rel=1e-4)
    with pytest.raises(ConfigError, match="several models"):
        load([tmp_path / "1", tmp_path / "2"], engine="ct2")
    other = Subwords.train([line[::-1] for line in LINES], 340)
    save_folder(tmp_path / "other", make_translator(other, torch.float32))
    with pytest.raises(ModelError, match="other subwords"):
        load([tmp_path / "1", tmp_path / "other"])


def test_folders_that_cannot_be_loaded(tmp_path: Path, subwords: Subwords) -> None:
    translator = make_translator(subwords, torch.float32)
    with pytest.raises(ModelError, match=r"has no config\.toml"):
        load(tmp_path / "nowhere")
    for missing in ("config.toml", "subwords.model", "model.safetensors"):
        save_folder(tmp_path / missing, translator)
        (tmp_path / missing / missing).unlink()
        with pytest.raises(ModelError):
            load(tmp_path / missing)
    save_folder(tmp_path / "mixed", translator)
    Subwords.train(LINES, 300).save(tmp_path / "mixed" / "subwords.model")
    with pytest.raises(ModelError, match="has 300 subwords, but the model has 340"):
        load(tmp_path / "mixed")


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ConfigError, match='device "tpu" is not a choice'):
        pick_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="there is no CUDA device"):
            pick_device("cuda")
