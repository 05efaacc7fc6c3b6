"""What a worker does when it is told to (benchmarks/worker.py says how):

    run K    makes K updates on the next K batches, and says how long that took
    quit     ends

Only the standard library, numpy and torch: every peer's environment has those.
Letters: B batch, S source length, T target length.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.worker import cpu_s, obey, peak_rss_mb, stay_on

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3  # in the batches as they come
DROPOUT = 0.1  # on embeddings and on what each sub-layer adds; none inside attention or after the activation
LABEL_SMOOTHING = 0.1


class Size(NamedTuple):
    d_model: int
    d_ff: int
    n_heads: int
    n_layers: int  # of the encoder, and as many of the decoder


SIZES = {"tiny": Size(128, 256, 4, 4), "small": Size(256, 1024, 8, 3), "base": Size(512, 2048, 8, 6)}


class Batch(NamedTuple):
    """int64, filled up with PAD_ID on the right; tgt_in starts with bos, src and tgt_out end with eos."""

    src_BS: Tensor
    tgt_in_BT: Tensor
    tgt_out_BT: Tensor
    n_src_tokens: int
    n_tgt_tokens: int


@dataclass(frozen=True)
class Peer:
    """A model with the two things a worker does to it."""

    version: str
    model: nn.Module
    convert: Callable[[Batch], Any]  # to what the peer takes; not timed
    update: Callable[[Any], float]  # forward, loss, backward, optimizer step; loss in nats per target token


def adam(model: nn.Module) -> torch.optim.Adam:
    """The optimizer of every peer that uses torch's: the paper's constants, the fastest kernel."""
    return torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)


def renumber(ids: Tensor, new_ids: Sequence[int]) -> Tensor:
    """The ids with the special ones, 0 to 3, replaced by `new_ids`."""
    return torch.where(ids < 4, torch.tensor(new_ids)[ids.clamp(max=3)], ids)


def read_batches(path: str) -> tuple[list[Batch], int]:
    """The batches of the file and the size of their vocabulary."""
    with np.load(path) as arrays:
        batches = []
        while f"src_{len(batches)}" in arrays:
            src, tgt_in, tgt_out = (arrays[f"{name}_{len(batches)}"] for name in ("src", "tgt_in", "tgt_out"))
            n_src, n_tgt = (int((ids != PAD_ID).sum()) for ids in (src, tgt_out))
            batches.append(Batch(*map(torch.from_numpy, (src, tgt_in, tgt_out)), n_src, n_tgt))
        return batches, int(arrays["vocab_size"])


def train(build: Callable[[Size, int], Peer]) -> None:
    """The main program of a worker: builds the peer from (size, vocabulary) and obeys."""
    args = parse_arguments()
    batches, vocab_size = read_batches(args.batches)
    peer = build(SIZES[args.size], vocab_size)
    peer.model.train()
    inputs = [peer.convert(batch) for batch in batches]
    done = 0

    def run(n_updates: int) -> dict[str, float]:
        nonlocal done
        now = [i % len(batches) for i in range(done, done + n_updates)]
        done += n_updates
        wall, cpu = time.perf_counter(), cpu_s()
        for i in now:
            loss = peer.update(inputs[i])
        wall, cpu = time.perf_counter() - wall, cpu_s() - cpu
        return {
            "updates": n_updates,
            "src_tokens": sum(batches[i].n_src_tokens for i in now),
            "tgt_tokens": sum(batches[i].n_tgt_tokens for i in now),
            "wall_s": wall,
            "cpu_s": cpu,
            "loss": loss,
            "peak_rss_mb": peak_rss_mb(),
        }

    parameters = {p for p in peer.model.parameters() if p.requires_grad}
    n_parameters = sum(p.numel() for p in parameters)
    obey({"run": run}, {"version": peer.version, "torch": torch.__version__, "parameters": n_parameters})


def parse_arguments() -> argparse.Namespace:
    """The worker's arguments, of which threads and core are put to use."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=list(SIZES), required=True)
    parser.add_argument("--batches", required=True, help="the .npz that batches.py wrote")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--core", type=int, help="stay on this core")
    args = parser.parse_args()
    if args.core is not None:
        stay_on([args.core])
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    return args
