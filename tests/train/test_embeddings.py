"""Embeddings to begin with, from the text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.batches.store import EncodedPairs, write_store
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.train.embeddings import begin_from_text, embeddings_from_text

EOS = 3
WORDS = range(4, 24)
N_IDS = 60  # a word w and its translation w + 20; from 44 on none occurs


@pytest.fixture
def pairs(tmp_path: Path) -> EncodedPairs:
    rng = np.random.default_rng(5)
    sentences = [rng.choice(WORDS, size=4, replace=False) for _ in range(400)]
    return write_store(tmp_path / "pairs", (([*s, EOS], [*rng.permutation(s + 20), EOS]) for s in sentences), N_IDS)


def test_words_that_translate_each_other_are_nearest(pairs: EncodedPairs) -> None:
    torch.manual_seed(1)
    found = embeddings_from_text(pairs, N_IDS, 32)
    alike = found @ found.T
    alike.fill_diagonal_(-1)
    for word in WORDS:
        assert alike[word].argmax() == word + 20
        assert alike[word + 20].argmax() == word


def test_length_one_where_known_and_zero_elsewhere(pairs: EncodedPairs) -> None:
    length = embeddings_from_text(pairs, N_IDS, 32).norm(dim=1)
    torch.testing.assert_close(length[4:44], torch.ones(40))
    assert not length[:4].any()
    assert not length[44:].any()


def test_more_dimensions_than_subwords(pairs: EncodedPairs) -> None:
    found = embeddings_from_text(pairs, N_IDS, 128)
    assert found.shape == (N_IDS, 128)
    torch.testing.assert_close(found[4:44].norm(dim=1), torch.ones(40))


@pytest.mark.parametrize("tie", [True, False])
def test_a_model_begins_with_them_and_keeps_its_own_for_the_rest(pairs: EncodedPairs, tie: bool) -> None:
    config = ModelConfig(
        vocab_size=N_IDS, d_model=32, d_ff=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, tie_embeddings=tie
    )
    torch.manual_seed(2)
    before = Transformer(config)
    model = Transformer(config)
    model.load_state_dict(before.state_dict())
    begin_from_text(model, pairs)
    changed = {name for name, value in model.state_dict().items() if not value.equal(before.state_dict()[name])}
    assert changed == {"embedding.weight"} | (set() if tie else {"tgt_embedding.weight", "projection.weight"})
    was, now = before.embedding.weight, model.embedding.weight
    assert now[44:].equal(was[44:])
    assert not torch.isclose(now[4:44], was[4:44]).all(dim=1).any()


def test_the_number_of_threads_changes_nothing(pairs: EncodedPairs) -> None:
    config = ModelConfig(vocab_size=N_IDS, d_model=32, d_ff=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1)
    found = []
    before = torch.get_num_threads()
    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        torch.manual_seed(3)
        model = Transformer(config)
        begin_from_text(model, pairs)
        assert torch.get_num_threads() == n_threads
        found.append(model.embedding.weight)
    torch.set_num_threads(before)
    assert found[0].equal(found[1])
