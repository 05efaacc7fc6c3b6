"""What `--budget` chooses beside fixed presets, on several texts: `python -m benchmarks.budget_choice.run`.

What is finished is kept in `.bench/budget_choice` and not run again; the report is made from what is there.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.budget_choice.report import table
from benchmarks.environments import ENVIRONMENTS
from benchmarks.machine import machine
from benchmarks.training import THREADS, Corpus, measure

CHOICES = {"plan": [], "tiny": ["--preset", "tiny"], "small": ["--preset", "small"]}
_TEXTS = {"tatoeba-en-de": ("en", "de"), "tatoeba-en-fr": ("en", "fr"), "europarl": ("en", "de")}
_N_TEST = 2000  # pairs at the end of Europarl's training text, which has no test text
_SCRATCH = ENVIRONMENTS / "budget_choice"
_HERE = Path(__file__).resolve().parent


def corpus_of(text: str, data: Path, scratch: Path) -> Corpus:
    """The parts of a text in `data`; what has to be cut is written to `scratch`."""
    (src, tgt), folder = _TEXTS[text], data / text
    if text != "europarl":
        return Corpus(src, tgt, train=folder / "train", valid=folder / "valid", test=folder / "test")
    cut = Corpus(src, tgt, train=scratch / "train", valid=folder / "valid", test=scratch / "test")
    scratch.mkdir(parents=True, exist_ok=True)
    for language in (src, tgt):
        with gzip.open(folder / f"train.{src}-{tgt}.{language}.gz") as file:
            lines = file.readlines()
        for part, some in (("train", lines[:-_N_TEST]), ("test", lines[-_N_TEST:])):
            with gzip.open(scratch / f"{part}.{language}.gz", "wb") as file:
                file.writelines(some)
    return cut


def gather(budget: str) -> dict[str, Any]:
    """All results that are there."""
    found: dict[str, dict[str, Any]] = {}
    for text in _TEXTS:
        for choice in CHOICES:
            path = _SCRATCH / budget / f"{text}-{choice}" / "result.json"
            if path.exists():
                found.setdefault(text, {})[choice] = json.loads(path.read_text())
    return {"machine": machine(), "threads": THREADS, "budget": budget, "texts": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help=f"a folder with {', '.join(_TEXTS)}")
    parser.add_argument("--budget", default="10m", help="for each training")
    parser.add_argument("--only", nargs="+", choices=[*_TEXTS, "report"], default=[*_TEXTS], help="report runs nothing")
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=[*CHOICES], help="these trainings")
    parser.add_argument("--out", type=Path, default=_HERE / "results.json", help="and .md beside it")
    args = parser.parse_args()

    for text in args.only:
        if text == "report":
            continue
        corpus = corpus_of(text, args.data.resolve(), _SCRATCH / text)
        for choice in args.choices:
            measure(corpus, _SCRATCH / args.budget / f"{text}-{choice}", ["--budget", args.budget, *CHOICES[choice]])

    results = gather(args.budget)
    args.out.write_text(json.dumps(results, indent=1) + "\n")
    args.out.with_suffix(".md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
