"""Our model and our search in int8 or bfloat16: on a processor, the most translations an hour of a wide model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from dragoman.checkpoint.folder import SHORTLIST
from dragoman.engines.engine import Ids, batches
from dragoman.engines.processor import has_bfloat16
from dragoman.engines.products import Bfloat16Linear, Int8Linear, has_int8
from dragoman.engines.quick_choice import Choice
from dragoman.engines.quick_model import QuickTransformer, State
from dragoman.engines.torch_engine import Begun, load_model, padded
from dragoman.errors import ConfigError
from dragoman.model.config import ModelConfig
from dragoman.search.beam import batched_beam_search
from dragoman.search.constrain import Path as SearchPath
from dragoman.search.constrain import constrained
from dragoman.search.step import Constraints, Hypothesis, SearchConfig, Step
from dragoman.tokens.shortlist import Shortlist
from dragoman.tokens.subwords import BOS_ID, EOS_ID


class QuickEngine:
    """A Transformer in fewer bits and the searches, several batches side by side."""

    can_look_inside = False
    n_at_once = 2

    def __init__(self, model: QuickTransformer, shortlist: Shortlist | None, n_threads: int) -> None:
        """Without a shortlist, every subword is looked at for every token."""
        self._model, self._shortlist, self._n_threads = model, shortlist, n_threads
        self._pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))

    def search(
        self, src_ids: Sequence[Ids], search: SearchConfig, constraints: Constraints, *,
        nbest: int, batch_tokens: int, token_log_probs: bool = False,
    ) -> list[list[Hypothesis]]:  # fmt: skip
        """By beam search, or greedily with a beam of 1."""
        lists = self._lists(src_ids, constraints)
        with torch.inference_mode():
            choice = self._model.choice(lists)

        def started(rows: list[int]) -> State:
            return self._started([src_ids[row] for row in rows], choice, lists and [lists[row] for row in rows])

        lengths = [len(ids) for ids in src_ids]
        if search.beam > 1:
            found = self._search_together(lengths, choice, started, search, constraints, nbest, batch_tokens)
        else:

            def find(rows: list[int]) -> list[list[Hypothesis]]:
                with torch.inference_mode():
                    lens = [lengths[row] for row in rows]
                    return _begun(self._model, started(rows), lens, search, constraints.of(rows)).search(1, nbest)

            found = self._in_batches(lengths, find, batch_tokens)
        return [choice.named(hypotheses) for hypotheses in found]

    def _search_together(
        self,
        lengths: Sequence[int],
        choice: Choice,
        started: Callable[[list[int]], State],
        search: SearchConfig,
        constraints: Constraints,
        nbest: int,
        batch_tokens: int,
    ) -> list[list[Hypothesis]]:
        """By one beam search in each thread, all of which take batches from one queue."""
        limits = constraints.limits(lengths, search.max_extra_tokens)
        step: Step[Any] = constrained(self._model.step, constraints) if constraints else self._model.step
        waiting = deque(self._batches(lengths, batch_tokens))
        bos_id, eos_id = choice.places([BOS_ID, EOS_ID])

        def find(_: int) -> list[tuple[int, list[Hypothesis]]]:
            order: list[int] = []

            def begun() -> Iterator[tuple[Any, list[int]]]:
                while waiting:
                    try:
                        rows = waiting.popleft()
                    except IndexError:  # another thread was faster
                        return
                    order.extend(rows)
                    state = started(rows)
                    yield SearchPath.start(state, rows) if constraints else state, [limits[row] for row in rows]

            with torch.inference_mode():
                found = batched_beam_search(
                    step, begun(), bos_id=bos_id, eos_id=eos_id, beam=search.beam,
                    length_penalty=search.length_penalty, nbest=nbest,
                )  # fmt: skip
            return list(zip(order, found, strict=True))

        found = dict(chain.from_iterable(self._pool.map(find, range(self._n_threads))))
        return [found[row] for row in range(len(lengths))]

    def tokens(self, src_ids: Ids, search: SearchConfig, constraints: Constraints) -> Iterator[int]:
        """Greedily."""
        with torch.inference_mode():
            lists = self._lists([src_ids], constraints)
            choice = self._model.choice(lists)
            begun = _begun(self._model, self._started([src_ids], choice, lists), [len(src_ids)], search, constraints)
        for place in begun.tokens():
            yield choice.id_at(place)

    def token_log_probs(
        self, src_ids: Sequence[Ids], tgt_ids: Sequence[Ids], *, batch_tokens: int
    ) -> list[tuple[float, ...]]:
        """Token by token, as the search goes."""

        def find(rows: list[int]) -> list[tuple[float, ...]]:
            with torch.inference_mode():
                state = self._model.start(padded([[*src_ids[row], EOS_ID] for row in rows]), self._model.choice(None))
                tgt_BT = padded([[BOS_ID, *tgt_ids[row], EOS_ID] for row in rows])
                numbers = []
                for last_B, next_B in zip(tgt_BT.T[:-1], tgt_BT.T[1:], strict=True):
                    log_probs_BV, state = self._model.step(last_B, state)
                    numbers.append(log_probs_BV.gather(1, next_B[:, None])[:, 0])
                rows_BT = torch.stack(numbers, dim=1).tolist()
                return [tuple(row_T[: len(tgt_ids[row]) + 1]) for row, row_T in zip(rows, rows_BT, strict=True)]

        lengths = [max(len(src), len(tgt)) + 1 for src, tgt in zip(src_ids, tgt_ids, strict=True)]
        return self._in_batches(lengths, find, batch_tokens)

    def _lists(self, src_ids: Sequence[Ids], constraints: Constraints) -> list[np.ndarray] | None:
        """What each sentence may write, unless it is everything: a prefix may need what no shortlist has."""
        if self._shortlist is None or constraints or not src_ids:
            return None
        return [self._shortlist.ids(ids) for ids in src_ids]

    def _started(self, src_ids: Sequence[Ids], choice: Choice, lists: list[np.ndarray] | None) -> State:
        src_BS = padded([[*ids, EOS_ID] for ids in src_ids])
        return self._model.start(src_BS, choice if lists is None else choice.of(lists))

    def _in_batches(
        self, lengths: Sequence[int], find: Callable[[list[int]], list[Any]], batch_tokens: int
    ) -> list[Any]:
        """What `find` gives for each row, several batches side by side if there are several threads."""
        parts = list(self._batches(lengths, batch_tokens))
        found: list[Any] = [None] * len(lengths)
        for rows, answers in zip(parts, self._pool.map(find, parts), strict=True):
            for row, answer in zip(rows, answers, strict=True):
                found[row] = answer
        return found

    def _batches(self, lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
        """As many batches for each thread, so that none is left without work at the end."""
        n_tokens = sum(lengths)
        n_batches = self._n_threads * -(-n_tokens // (self._n_threads * batch_tokens))
        return batches(lengths, max(-(-n_tokens // max(n_batches, 1)), 1))


def _begun(
    model: QuickTransformer, state: State, src_lens: Sequence[int], search: SearchConfig, constraints: Constraints
) -> Begun:
    """A search of a batch, in places of its choice instead of ids."""
    bos_id, eos_id = state.choice.places([BOS_ID, EOS_ID])
    return Begun.of(model.step, state, src_lens, search, constraints, bos_id=bos_id, eos_id=eos_id)


def load_quick_engine(
    folder: Path, config: ModelConfig, precision: Literal["int8", "bfloat16"], *, shortlist: bool, n_threads: int
) -> QuickEngine:
    """The engine with the weights of a run folder, and its shortlist if there is one and it is wanted."""
    if precision == "int8" and not has_int8():
        raise ConfigError("torch has no int8 on this processor", hint="use --engine ct2, or --precision float32")
    path = folder / SHORTLIST
    found = Shortlist.load(path, config.vocab_size) if shortlist and path.exists() else None
    product = Int8Linear if precision == "int8" else Bfloat16Linear
    keeps = torch.bfloat16 if has_bfloat16() else torch.float32
    return QuickEngine(QuickTransformer(load_model(folder, config), product, keeps), found, n_threads)
