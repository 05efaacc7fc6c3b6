"""Several models as one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from prefix_model import BOS, EOS, PrefixModel

from dragoman.search.beam import beam_search
from dragoman.search.ensemble import States, averaged

LIMITS = {"bos_id": BOS, "eos_id": EOS, "length_penalty": 0.6}


def test_probabilities_are_averaged_along_the_whole_search() -> None:
    models = [PrefixModel(seed, 7, eos_bias=-1.0) for seed in (1, 2, 3)]
    state = States(tuple(model.start(0, 1) for model in models))
    found = beam_search(averaged(models), state, max_lens=[5, 5], **LIMITS, beam=3)
    for sentence, (best,) in enumerate(found):
        mean = np.mean([np.exp(model.forced(sentence, best.ids)) for model in models], axis=0)
        assert best.token_log_probs == pytest.approx(np.log(mean))


def test_of_one_model_it_is_that_model() -> None:
    model = PrefixModel(4, 6)
    alone = beam_search(model, model.start(0), max_lens=[6], **LIMITS, beam=4)
    as_one = beam_search(averaged([model]), States((model.start(0),)), max_lens=[6], **LIMITS, beam=4)
    assert as_one[0][0].ids == alone[0][0].ids
    assert as_one[0][0].score == pytest.approx(alone[0][0].score)


def test_what_one_model_rules_out_another_may_allow() -> None:
    ruled_out = torch.tensor([[-torch.inf, 0.0]])
    even = torch.tensor([[0.5, 0.5]]).log()
    step = averaged([lambda ids, state: (ruled_out, state), lambda ids, state: (even, state)])
    log_probs, _ = step(torch.tensor([BOS]), States((None, None)))
    torch.testing.assert_close(log_probs.exp(), torch.tensor([[0.25, 0.75]]))
