"""Lines of text, packed or not, and their score."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from sacrebleu.metrics import BLEU


def read_lines(path: Path) -> list[str]:
    """The lines of a text, which may be packed. Only a newline ends one: not every peer knows Unicode's others."""
    packed = path.suffix == ".gz"
    text = (gzip.decompress(path.read_bytes()) if packed else path.read_bytes()).decode()
    return text.removesuffix("\n").split("\n")


def bleu(translations: list[str], references: list[str]) -> float:
    """Cased, tokenized by 13a: sacreBLEU's defaults."""
    if len(translations) != len(references):
        sys.exit(f"{len(translations)} translations of {len(references)} sentences")
    return BLEU().corpus_score(translations, [references]).score
