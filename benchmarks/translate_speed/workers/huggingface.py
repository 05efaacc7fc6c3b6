"""Hugging Face's `generate` with its fused attention, on batches of sentences of about one length."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn

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
    seconds_of_singles,
    work,
)  # fmt: skip
from benchmarks.translate_speed.workers.to_huggingface import to_huggingface

_BATCHES = (8, 16, 32, 64)  # sentences; larger ones were slower
_EVERY = 2  # of the sentences by which others are tuned: enough to tell, and it takes long
_FIRST_BATCH = 64  # with which the kinds of weights are compared
_SPECIALS = {PAD_ID, UNK_ID, BOS_ID, EOS_ID}


def build(task: Task, threads: int, settings: Settings) -> System:
    """With the settings that `tune` has found: `batch`, and `kind` and `kind_for_one` of the weights."""
    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    subwords = sentencepiece.SentencePieceProcessor(model_file=str(Path(task.run) / "subwords.model"))
    models: dict[str, nn.Module] = {}

    def model_of(kind: str) -> nn.Module:
        if kind not in models:
            models[kind] = _model(task, kind)
        return models[kind]

    @torch.inference_mode()
    def translate(sentences: Sequence[str], kind: str = settings["kind"]) -> list[Output]:
        encoded = subwords.encode(sentences)
        found = [Output("", 0)] * len(encoded)
        order = by_length(encoded)
        for start in range(0, len(order), settings["batch"]):
            rows = order[start : start + settings["batch"]]
            src = _padded([[*encoded[row], EOS_ID] for row in rows])
            search = {"num_beams": task.beam, "length_penalty": task.exponent, "early_stopping": True}
            generated = model_of(kind).generate(
                input_ids=src,
                attention_mask=(src != PAD_ID).long(),
                max_new_tokens=len(encoded[rows[0]]) + task.max_extra_tokens,
                do_sample=False,
                **(search if task.beam > 1 else {}),
            )
            for row, ids in zip(rows, generated.tolist(), strict=True):
                kept = [i for i in ids if i not in _SPECIALS]
                found[row] = Output(subwords.decode(kept), len(kept))
        return found

    model_of(settings["kind"])
    words = f"{settings['kind']}, {settings['batch']} sentences"
    return System(
        transformers.__version__, translate, lambda sentence: translate([sentence], settings["kind_for_one"])[0], words
    )


def _model(task: Task, kind: str) -> nn.Module:
    """The weights as `kind`: float32, bfloat16, or int8 with activations quantized on the way."""
    model = to_huggingface(task.model, load_file(Path(task.run) / "model.safetensors"))
    check(_log_probs(model, task), task)
    if kind == "bfloat16":
        return model.bfloat16()
    if kind == "int8":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.ao is on its way out
            return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    return model


@torch.inference_mode()
def _log_probs(model: nn.Module, task: Task) -> Iterator[list[float]]:
    """Of the known targets."""
    for src, tgt, _ in task.known:
        src_ids, tgt_in = torch.tensor([[*src, EOS_ID]]), torch.tensor([[BOS_ID, *tgt]])
        logits = model(input_ids=src_ids, decoder_input_ids=tgt_in, use_cache=False).logits[0]
        yield logits.log_softmax(-1)[range(len(tgt) + 1), [*tgt, EOS_ID]].tolist()


def _padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD_ID)


def tune(task: Task, threads: int, settings: Settings) -> tuple[Settings, dict[str, float]]:
    """The fastest of the `kinds` allowed, then the fastest size of batch with it."""
    tried: dict[str, float] = {}
    of_one: dict[str, float] = {}
    kinds = settings["kinds"]

    def attempt(kind: str, batch: int) -> System:
        system = build(task, threads, {"kind": kind, "kind_for_one": kind, "batch": batch})
        if system.settings not in tried:
            tried[system.settings] = seconds(lambda: system.translate(task.sentences[::_EVERY]))
        return system

    by_kind, by_batch = {}, {}
    for kind in kinds:
        system = attempt(kind, _FIRST_BATCH)
        by_kind[kind], of_one[kind] = tried[system.settings], seconds_of_singles(system, task)
    for batch in _BATCHES:
        by_batch[batch] = tried[attempt(fastest(by_kind), batch).settings]
    best = {"kind": fastest(by_kind), "kind_for_one": fastest(of_one), "batch": fastest(by_batch)}
    return best, {**tried, **{f"one sentence, {kind}": time for kind, time in of_one.items()}}


if __name__ == "__main__":
    work(build, tune)
