"""fairseq's `SequenceGenerator`, on batches of sentences of about one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from benchmarks.old_packages import hashable_dataclasses
from benchmarks.translate_speed.workers.protocol import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    Output,
    Settings,
    System,
    Task,
    by_length,
    check,
    fastest,
    seconds,
    work,
)  # fmt: skip
from benchmarks.translate_speed.workers.to_fairseq import Words, to_fairseq

with hashable_dataclasses():
    import fairseq
    from fairseq.sequence_generator import SequenceGenerator

_BATCHES = (8, 16, 32, 64)  # sentences
_EVERY = 2  # of the sentences by which others are tuned: as Hugging Face
_SPECIALS = {PAD_ID, UNK_ID, BOS_ID, EOS_ID}


def build(task: Task, threads: int, settings: Settings) -> System:
    """With the setting that `tune` has found: `batch`."""
    torch.set_num_threads(threads)
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(Path(task.run) / "subwords.model"))
    model = to_fairseq(task.model, load_file(Path(task.run) / "model.safetensors"))
    check(_log_probs(model, task), task)
    generator = SequenceGenerator(
        [model],
        Words(task.model["vocab_size"]),
        beam_size=task.beam,
        len_penalty=task.exponent,
        max_len_a=1,
        max_len_b=task.max_extra_tokens - 1,  # it counts the end of the input, and not that of the output
    )

    @torch.inference_mode()
    def translate(sentences: Sequence[str]) -> list[Output]:
        encoded = subwords.encode(sentences)
        found = [Output("", 0)] * len(encoded)
        order = by_length(encoded)
        for start in range(0, len(order), settings["batch"]):
            rows = order[start : start + settings["batch"]]
            sample = {"net_input": _net_input([encoded[row] for row in rows])}
            generated = generator.generate([model], sample, bos_token=BOS_ID)  # its own start is the end
            for row, best_first in zip(rows, generated, strict=True):
                kept = [i for i in best_first[0]["tokens"].tolist() if i not in _SPECIALS]
                found[row] = Output(subwords.decode(kept), len(kept))
        return found

    words = f"float32, {settings['batch']} sentences"
    return System(fairseq.__version__, translate, lambda sentence: translate([sentence])[0], words)


@torch.inference_mode()
def _log_probs(model: nn.Module, task: Task) -> Iterator[list[float]]:
    """Of the known targets."""
    for src, tgt, _ in task.known:
        tgt_in = torch.tensor([[BOS_ID, *tgt]])
        logits, _ = model(**_net_input([src]), prev_output_tokens=tgt_in, return_all_hiddens=False)
        yield logits[0].log_softmax(-1)[range(len(tgt) + 1), [*tgt, EOS_ID]].tolist()


def _net_input(encoded: list[list[int]]) -> dict[str, Tensor]:
    """Padded on the right, where its fused layers can leave padding out."""
    rows = [torch.tensor([*ids, EOS_ID]) for ids in encoded]
    src = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD_ID)
    return {"src_tokens": src, "src_lengths": (src != PAD_ID).sum(dim=1)}


def tune(task: Task, threads: int, settings: Settings) -> tuple[Settings, dict[str, float]]:
    """The fastest size of batch."""
    tried: dict[str, float] = {}
    by_batch: dict[int, float] = {}
    for batch in _BATCHES:
        system = build(task, threads, {**settings, "batch": batch})
        by_batch[batch] = tried[system.settings] = seconds(lambda: system.translate(task.sentences[::_EVERY]))  # noqa: B023
    return {**settings, "batch": fastest(by_batch)}, tried


if __name__ == "__main__":
    work(build, tune)
