"""What beam search looked at, step by step: a step that keeps a record, for any search over any model."""

# Letters: N rows (live hypotheses), V vocabulary, K candidates of a row.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dragoman.search.step import Constraints, Hypothesis, SearchConfig
from dragoman.tokens.subwords import BOS_ID, EOS_ID

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.model.transformer import Transformer
    from dragoman.search.step import S, Step

Fate = Literal["kept", "ended", "dropped"]
N_SHOWN = 5  # candidates of a given target's token, as many as a beam of 4 looks at


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hypothesis with one token more."""

    id: int
    token_log_prob: float
    log_prob: float  # of the hypothesis with this token
    fate: Fate  # kept for the next step, ended here as a finished translation, or dropped


@dataclass(frozen=True, slots=True)
class Row:
    """A live hypothesis at one step, and how it could go on, the likeliest token first."""

    ids: tuple[int, ...]
    log_prob: float
    candidates: tuple[Candidate, ...]


def searched(
    model: Transformer, src_ids: Sequence[int], config: SearchConfig
) -> tuple[list[Hypothesis], list[list[Row]]]:
    """What beam search finds for one sentence, best first, and the live hypotheses of each of its steps."""
    import torch

    from dragoman.search.beam import beam_search
    from dragoman.search.constrain import Path

    (max_len,) = Constraints().limits([len(src_ids)], config.max_extra_tokens)
    seen: list[list[_Seen]] = []
    with torch.inference_mode():
        state = model.start(torch.tensor([[*src_ids, EOS_ID]], device=model.embedding.weight.device))
        (found,) = beam_search(
            _recorded(model.step, config.beam + 1, seen),
            Path.start(state, [0]),
            max_lens=[max_len],
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            beam=config.beam,
            length_penalty=config.length_penalty,
            nbest=config.beam,
        )
    return found, _told(seen, config.beam, max_len)


def forced(model: Transformer, src_ids: Sequence[int], tgt_ids: Sequence[int]) -> tuple[list[float], list[list[Row]]]:
    """The log-probabilities of a given target and its end, and at each step what the model would rather write."""
    import torch

    from dragoman.search.top import top

    tgt_out = [*tgt_ids, EOS_ID]
    with torch.inference_mode():
        device = model.embedding.weight.device
        src, tgt_in = (torch.tensor([ids], device=device) for ids in ([*src_ids, EOS_ID], [BOS_ID, *tgt_ids]))
        log_probs_TV = model(src, tgt_in)[0].log_softmax(dim=-1)
        values_TK, ids_TK = (found.tolist() for found in top(log_probs_TV, min(N_SHOWN, log_probs_TV.shape[1])))
        numbers: list[float] = log_probs_TV.gather(1, torch.tensor(tgt_out, device=device)[:, None])[:, 0].tolist()
    steps, total = [], 0.0
    for t, (id, number) in enumerate(zip(tgt_out, numbers, strict=True)):
        offered = dict(zip(ids_TK[t], values_TK[t], strict=True)) | {id: number}
        fate: Fate = "ended" if id == EOS_ID else "kept"
        candidates = [Candidate(i, x, total + x, fate if i == id else "dropped") for i, x in offered.items()]
        steps.append([Row(tuple(tgt_ids[:t]), total, tuple(candidates))])
        total += number
    return numbers, steps


@dataclass(frozen=True, slots=True)
class _Seen:
    """A row of the step as it was answered."""

    ids: tuple[int, ...]
    candidates: tuple[tuple[int, float], ...]
    end_log_prob: float


def _recorded(step: Step[S], k: int, seen: list[list[_Seen]]) -> Step[Any]:
    """The step, over paths of its states, which adds to `seen` what it was asked and the `k` likeliest answers."""
    import torch

    from dragoman.search.constrain import Path
    from dragoman.search.top import top

    def recorded_step(last_ids_N: Tensor, path: Path[S], /) -> tuple[Tensor, Path[S]]:
        log_probs_NV, state = step(last_ids_N, path.state)
        ids_NT = torch.cat([path.ids_NT.to(last_ids_N.device), last_ids_N[:, None]], dim=1)
        values_NK, ids_NK = top(log_probs_NV, k)
        rows = zip(ids_NT.tolist(), ids_NK.tolist(), values_NK.tolist(), log_probs_NV[:, EOS_ID].tolist(), strict=True)
        seen.append(
            [_Seen(tuple(ids[1:]), tuple(zip(each, numbers, strict=True)), end) for ids, each, numbers, end in rows]
        )
        return log_probs_NV, Path(state, path.sentence_N, ids_NT)

    return recorded_step


def _told(seen: list[list[_Seen]], beam: int, max_len: int) -> list[list[Row]]:
    """The record with sums, and with what became of each candidate by the rules of the search."""
    log_probs: dict[tuple[int, ...], float] = {(): 0.0}
    steps = []
    for t, rows in enumerate(seen):
        live = {row.ids for row in seen[t + 1]} if t + 1 < len(seen) else set()
        offered = [
            (row.ids, id, number, log_probs[row.ids] + number)
            for row in rows
            for id, number in (row.candidates if t < max_len else [(EOS_ID, row.end_log_prob)])
        ]
        first = sorted(range(len(offered)), key=lambda i: -offered[i][3])[:beam]
        told: dict[tuple[int, ...], list[Candidate]] = {row.ids: [] for row in rows}
        for i, (ids, id, number, total) in enumerate(offered):
            longer = (*ids, id)
            fate: Fate = "kept" if longer in live else "ended" if id == EOS_ID and i in first else "dropped"
            told[ids].append(Candidate(id, number, total, fate))
            log_probs[longer] = total
        steps.append([Row(ids, log_probs[ids], tuple(candidates)) for ids, candidates in told.items()])
    return steps
