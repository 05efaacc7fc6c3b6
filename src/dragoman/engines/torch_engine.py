"""Our model and our search, in torch: the reference for every other engine, and the one that can be looked into."""

# Letters: B batch, S source length, T target length.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.batches.batch import pad_sequences
from dragoman.checkpoint.folder import WEIGHTS
from dragoman.checkpoint.format import load_weights
from dragoman.engines.engine import Ids, Weights, batches
from dragoman.errors import ConfigError
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.search.beam import beam_search
from dragoman.search.constrain import Path as SearchPath
from dragoman.search.constrain import constrained
from dragoman.search.ensemble import States, averaged, mean_log_prob
from dragoman.search.greedy import greedy_search, greedy_tokens
from dragoman.search.sample import sample_search
from dragoman.search.step import Constraints, Hypothesis, Sampling, SearchConfig, Step
from dragoman.tokens.subwords import BOS_ID, EOS_ID, PAD_ID


class TorchEngine:
    """A Transformer, or several whose probabilities are averaged, and the searches."""

    can_look_inside = True
    n_at_once = 1

    def __init__(self, model: Transformer, *others: Transformer) -> None:
        """All models have one vocabulary and are on one device."""
        self.model, self._others = model, others

    @torch.inference_mode()
    def search(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, *,
        nbest: int, batch_tokens: int, token_log_probs: bool = False,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """By beam search, or greedily with a beam of 1."""

        def find(rows: list[int], begun: Begun) -> list[list[Hypothesis]]:
            return begun.search(search.beam, nbest)

        return self._in_batches(src_ids, search, constraints, find, batch_tokens)

    @torch.inference_mode()
    def sample(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, sampling: Sampling, *,
        n_samples: int, numbers: Sequence[int], batch_tokens: int,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """Hypotheses drawn at random; `numbers` are those of the sentences in the whole input."""

        def find(rows: list[int], begun: Begun) -> list[list[Hypothesis]]:
            return sample_search(
                begun.step,
                begun.state,
                **begun.limits,
                indices=[numbers[row] for row in rows],
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                n_samples=n_samples,
            )

        return self._in_batches(src_ids, search, constraints, find, batch_tokens)

    def tokens(self, src_ids: Ids, search: SearchConfig, constraints: Constraints) -> Iterator[int]:
        """Greedily."""
        with _evaluating(self.model, *self._others):
            with torch.inference_mode():
                step, state = self._start(self._padded([[*src_ids, EOS_ID]]))
            yield from Begun.of(step, state, [len(src_ids)], search, constraints).tokens()

    @torch.inference_mode()
    def token_log_probs(
        self, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids], *, batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """By one pass over the whole target."""
        found: list[tuple[float, ...]] = [()] * len(src_ids)
        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in zip(src_ids, tgt_ids, strict=True)]
        with _evaluating(self.model, *self._others):
            for rows in batches(lengths, batch_tokens):
                tgt_out_BT = self._padded([[*tgt_ids[row], EOS_ID] for row in rows])
                bos_B1 = torch.full_like(tgt_out_BT[:, :1], BOS_ID)
                src_BS = self._padded([[*src_ids[row], EOS_ID] for row in rows])
                tgt_in_BT = torch.cat([bos_B1, tgt_out_BT[:, :-1]], dim=1)
                log_probs_BT = mean_log_prob(
                    [
                        model(src_BS, tgt_in_BT).log_softmax(dim=-1).gather(2, tgt_out_BT[:, :, None])[:, :, 0]
                        for model in (self.model, *self._others)
                    ]
                )
                for row, numbers in zip(rows, log_probs_BT.tolist(), strict=True):
                    found[row] = tuple(numbers[: len(tgt_ids[row]) + 1])
        return found

    @torch.inference_mode()
    def explain(self, src_ids: Ids, tgt_ids: Ids) -> Weights:
        """The attention that produces the target and its end, by the readable equation; the first model's."""
        with _evaluating(self.model, *self._others):
            _, weights = self.model.explain(self._padded([[*src_ids, EOS_ID]]), self._padded([[BOS_ID, *tgt_ids]]))
        return Weights(*(np.stack([layer_BHTS[0].numpy(force=True) for layer_BHTS in layers]) for layers in weights))

    def _in_batches(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, find: Any, batch_tokens: int
    ) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in src_ids]
        with _evaluating(self.model, *self._others):
            for rows in batches([len(ids) for ids in src_ids], batch_tokens):
                step, state = self._start(self._padded([[*src_ids[row], EOS_ID] for row in rows]))
                begun = Begun.of(step, state, [len(src_ids[row]) for row in rows], search, constraints.of(rows))
                for row, hypotheses in zip(rows, find(rows, begun), strict=True):
                    found[row] = hypotheses
        return found

    def _start(self, src_BS: torch.Tensor) -> tuple[Step[Any], Any]:
        """The step of a search, and the state it begins with."""
        if not self._others:
            return self.model.step, self.model.start(src_BS)
        models = (self.model, *self._others)
        return averaged([model.step for model in models]), States(tuple(model.start(src_BS) for model in models))

    def _padded(self, ids: Sequence[Ids]) -> torch.Tensor:
        return padded(ids).to(self.model.embedding.weight.device)


@dataclass(frozen=True, slots=True)
class Begun:
    """A search of a batch, ready to go."""

    step: Step[Any]
    state: Any
    limits: dict[str, Any]  # what every kind of search is told

    @classmethod
    def of(
        cls, step: Step[Any], state: Any, src_lens: Sequence[int], search: SearchConfig, constraints: Constraints, *,
        bos_id: int = BOS_ID, eos_id: int = EOS_ID,
    ) -> Begun:  # fmt: skip
        """Of sentences of these lengths, held to the constraints."""
        limits = {
            "max_lens": constraints.limits(src_lens, search.max_extra_tokens),
            "bos_id": bos_id,
            "eos_id": eos_id,
            "length_penalty": search.length_penalty,
        }
        if constraints:
            step, state = constrained(step, constraints), SearchPath.start(state, range(len(src_lens)))
        return cls(step, state, limits)

    def search(self, beam: int, nbest: int) -> list[list[Hypothesis]]:
        """The best hypotheses of each sentence."""
        if beam == nbest == 1:
            return [[hypothesis] for hypothesis in greedy_search(self.step, self.state, **self.limits)]
        return beam_search(self.step, self.state, **self.limits, beam=beam, nbest=nbest)

    def tokens(self) -> Iterator[int]:
        """What `search` finds with a beam of 1 for a batch of one, token by token."""
        limits = self.limits
        return greedy_tokens(
            self.step, self.state, max_len=limits["max_lens"][0], bos_id=limits["bos_id"], eos_id=limits["eos_id"]
        )


def padded(ids: Sequence[Ids]) -> torch.Tensor:
    """The sentences below one another."""
    return pad_sequences([list(one) for one in ids], PAD_ID)


def load_torch_engine(models: Sequence[tuple[Path, ModelConfig]], device: str) -> TorchEngine:
    """The engine with the weights of one or several run folders."""
    return TorchEngine(*(load_model(folder, config).to(pick_device(device)) for folder, config in models))


def load_model(folder: Path, config: ModelConfig) -> Transformer:
    """The model of a run folder, to be used and not trained."""
    model = Transformer(config)
    load_weights(model, folder / WEIGHTS)
    return model.eval()


def pick_device(name: str) -> torch.device:
    """The device named; "auto" is the first CUDA device if there is one, else the processor."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device", hint="use --device cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f'device "{name}" is not a choice', hint="use one of auto, cpu, cuda")
    return torch.device(name)


@contextmanager
def _evaluating(*models: Transformer) -> Iterator[None]:
    """Without dropout inside, as before outside."""
    were_training = [model.training for model in models]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for model, was_training in zip(models, were_training, strict=True):
            model.train(was_training)
