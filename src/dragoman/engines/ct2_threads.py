"""How CTranslate2 shares out its threads, between batches or inside one: measured once, remembered beside the model.

Side by side is what most machines prefer, since threads inside a batch wait for one another at every product; but each
batch that is under way reads all the weights, which a machine with many cores and narrow memory may not like.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.checkpoint.folder import write_text
from dragoman.engines.processor import processor_name

Split = tuple[int, int]  # batches side by side, threads inside each
MEMORY = "threads.json"
_CLEARLY = 0.9  # share of the time of the batches side by side that another split must undercut: machines are shared
_N_ROUNDS = 3
_N_SENTENCES, _N_TOKENS = 16, 12  # of a batch; about half a second for a base model on one core


def best_split(path: Path, n_threads: int, opened: Callable[[Split], Any], pieces: Sequence[str]) -> Split:
    """The split remembered in the folder of CTranslate2's files for this processor, or measured now.

    `opened` gives a translator with the files and a split; `pieces` are subwords that it knows.
    """
    if n_threads == 1:
        return 1, 1
    memory, key = path / MEMORY, f"{processor_name()}, {n_threads} threads"
    known = _remembered(memory)
    for split in splits(n_threads):
        if known.get(key) == list(split):
            return split
    if not os.access(path, os.W_OK):  # it could not be remembered, and would be measured every time
        return n_threads, 1
    found = fastest(splits(n_threads), lambda split: _seconds(opened(split), n_threads, pieces))
    with suppress(OSError):  # then it is measured again
        write_text(memory, json.dumps({**known, key: found}) + "\n")
    return found


def _remembered(memory: Path) -> dict[str, Any]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def splits(n_threads: int) -> list[Split]:
    """All there are, side by side first."""
    return [(n_threads // intra, intra) for intra in range(1, n_threads + 1) if n_threads % intra == 0]


def fastest(choices: Sequence[Split], measure: Callable[[Split], float]) -> Split:
    """The first, unless another is clearly faster."""
    times = {split: measure(split) for split in choices}
    best = min(choices, key=lambda split: times[split])
    return best if times[best] < _CLEARLY * times[choices[0]] else choices[0]


def _seconds(translator: Any, n_threads: int, pieces: Sequence[str]) -> float:
    """The least that as many batches as there are threads take, all of one length whatever the model would write."""
    texts = [[pieces[(7 * i + j) % len(pieces)] for j in range(_N_TOKENS)] for i in range(_N_SENTENCES * n_threads)]
    times = []
    for _ in range(_N_ROUNDS):
        began = time.perf_counter()
        translator.translate_batch(
            texts,
            beam_size=4,
            max_batch_size=_N_SENTENCES,
            min_decoding_length=_N_TOKENS,
            max_decoding_length=_N_TOKENS,
        )
        times.append(time.perf_counter() - began)
    return min(times)
