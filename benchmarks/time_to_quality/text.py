"""The text that all start from, and subwords for the peers, which expect them ready."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import sentencepiece

SRC, TGT = "en", "de"
FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}  # as Multi30k calls them


def write_text(data: Path, folder: Path) -> None:
    """Unpacks Multi30k to `train.en` and so on."""
    folder.mkdir(parents=True)
    for split, name in FILES.items():
        for language in (SRC, TGT):
            with (
                gzip.open(data / f"{name}.{language}.gz") as packed,
                open(folder / f"{split}.{language}", "wb") as file,
            ):
                shutil.copyfileobj(packed, file)


def learn_subwords(folder: Path, vocab_size: int) -> sentencepiece.SentencePieceProcessor:
    """Joint BPE of both sides of the training text; `subwords.model` is left in the folder."""
    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / f"train.{language}") for language in (SRC, TGT)],
        model_prefix=str(folder / "subwords"),
        model_type="bpe",
        vocab_size=vocab_size,
        character_coverage=1.0,
        num_threads=2,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "subwords.model"))
