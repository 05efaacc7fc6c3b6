"""What all workers are given for a model: the text, the settings of the search, and log-probabilities to check."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import dragoman
from benchmarks.translate_speed.workers.protocol import Task

_N_KNOWN = 24
_N_SINGLES = 200


def make_task(run: Path, sentences: list[str]) -> Task:
    """For the model's own beam. Makes what CTranslate2 reads, ct2/int8 and ct2/float32 in the run folder."""
    for precision in ("int8", "float32"):
        dragoman.load(run, engine="ct2", precision=precision, shortlist=False)
    translator = dragoman.load(run, engine="torch", precision="float32", device="cpu")
    encode = translator.subwords.encode
    known = spread(sentences, _N_KNOWN)
    src_ids = [encode(text) for text in known]
    tgt_ids = [encode(one.text) for one in translator.translate(known, beam=1)]
    log_probs = translator.engine.token_log_probs(src_ids, tgt_ids, batch_tokens=1024)
    search = translator.config.search
    return Task(
        run=str(run.resolve()),
        model=asdict(translator.config.model),
        sentences=sentences,
        singles=spread(sentences, _N_SINGLES),
        beam=search.beam,
        length_penalty=search.length_penalty,
        max_extra_tokens=search.max_extra_tokens,
        known=list(zip(src_ids, tgt_ids, map(list, log_probs), strict=True)),
    )


def write_task(task: Task, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(task)))


def spread(sentences: list[str], n: int) -> list[str]:
    """So many of them, evenly from all, or all if there are fewer."""
    n = min(n, len(sentences))
    return [sentences[i * len(sentences) // n] for i in range(n)]
