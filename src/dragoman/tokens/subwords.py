"""Text to subword ids and back, without loss: SentencePiece BPE with bytes for what it has not seen.

Paper section 5.1: byte-pair encoding with one vocabulary for both languages.
"""

from __future__ import annotations

import io
import logging
import os
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import sentencepiece as spm

from dragoman.errors import ConfigError, DataError, ModelError

PAD_ID = 0
UNK_ID = 1
BOS_ID = 2
EOS_ID = 3
_N_SPECIALS = 4
_N_BYTES = 256  # ids 4 to 259 are the bytes 0x00 to 0xFF

_MAX_TRAINING_LINES = 2_000_000  # more lines hardly change the merges; this bounds memory
_MAX_TRAINING_LINE_BYTES = 100_000  # SentencePiece leaves longer lines out of its count

# SentencePiece writes a space as this character, so a text that holds it must spell it in bytes.
_SPACE_MARK = "▁"
_SPACE_MARK_IDS = [_N_SPECIALS + byte for byte in _SPACE_MARK.encode()]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensConfig:
    """The default is the paper's English-German vocabulary (section 5.1)."""

    vocab_size: int = 37_000  # subwords of both languages together, 256 bytes and 4 special symbols among them
    dropout: float = 0.0  # how often a subword of the training text falls apart into the two it was merged from

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"tokens.dropout={self.dropout} is not a probability below 1", hint="0.1 is usual")
        if self.vocab_size <= _N_SPECIALS + _N_BYTES:
            raise ConfigError(
                f"tokens.vocab_size={self.vocab_size} leaves no room for subwords",
                hint=f"use more than {_N_SPECIALS + _N_BYTES}, the special symbols and bytes; 8000 suits small texts",
            )


class Subwords:
    """A trained vocabulary: `decode(encode(text)) == text` for any text, and no id is ever unknown."""

    pad_id = PAD_ID
    unk_id = UNK_ID
    bos_id = BOS_ID
    eos_id = EOS_ID
    n_reserved = _N_SPECIALS + _N_BYTES  # ids from here on are subwords

    def __init__(self, model: bytes) -> None:
        """From the bytes of a SentencePiece model as `train` makes it; ModelError if they are not that."""
        self._model = model
        self._processor = _processor(model)
        # Goes on inside a text: unlike the first, it puts no space in front.
        self._continued = _processor(model)
        self._continued.override_normalizer_spec(add_dummy_prefix=False)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Subwords:
        """The vocabulary of these texts; smaller than asked for, with a warning, if they support no more."""
        sample = _sample(text for text in texts if text and not text.isspace())
        if not sample:
            raise DataError("there is no text to learn subwords from", hint="is the training text empty?")
        try:
            return cls(_train(sample, vocab_size))
        except RuntimeError as error:
            too_high = re.search(r"Vocabulary size too high.*<= (\d+)", str(error))
            if too_high is None:
                raise _training_error(error, vocab_size) from None
            possible = int(too_high[1])
        _log.warning(
            "the text supports a vocabulary of %d subwords, not the %d asked for; %d are used",
            possible, vocab_size, possible,
        )  # fmt: skip
        return cls(_train(sample, possible))

    @classmethod
    def load(cls, path: str | Path) -> Subwords:
        """The vocabulary saved in this file."""
        try:
            model = Path(path).read_bytes()
        except OSError as error:
            raise ModelError(
                f"the subword model {path} cannot be read: {error.strerror}",
                hint="is the run folder complete?",
            ) from None
        try:
            return cls(model)
        except ModelError as error:
            raise ModelError(f"{path}: {error.message}", hint=error.hint) from None

    def save(self, path: str | Path) -> None:
        """Writes a file that SentencePiece itself can read; a file that exists is replaced in one instant."""
        part = Path(f"{path}.part")
        part.write_bytes(self._model)
        os.replace(part, path)

    @property
    def vocab_size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without bos and eos."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(
                "the text contains half a surrogate pair, which is not a character",
                hint="remove the code points U+D800 to U+DFFF",
            ) from None
        first, *others = text.split(_SPACE_MARK)
        ids: list[int] = self._processor.encode(first)
        for part in others:
            ids += _SPACE_MARK_IDS + self._continued.encode(part)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; special ids are skipped, bytes that form no character become U+FFFD."""
        text: str = self._processor.decode([int(i) for i in ids if i >= _N_SPECIALS])
        return text

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as a readable string: "▁" for a space, <0x0A> for a byte, </s> for a special id."""
        return [self._pieces[i] for i in ids]

    @cached_property
    def _pieces(self) -> list[str]:
        found: list[str] = self._processor.id_to_piece(list(range(self.vocab_size)))
        return found


def _processor(model: bytes) -> spm.SentencePieceProcessor:
    """A SentencePiece processor that is known to have our special ids and to be without loss."""
    broken = ModelError("not a SentencePiece model", hint="the file is damaged; copy the run folder again or retrain")
    if not model:  # SentencePiece would accept it and complain at first use
        raise broken
    processor = spm.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except (RuntimeError, UnicodeDecodeError):  # the latter when its message quotes the damaged bytes
        raise broken from None
    specials = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if specials != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise ModelError(
            f"this SentencePiece model has pad, unk, bos, eos = {specials}, not (0, 1, 2, 3)",
            hint="use the subwords.model that dragoman wrote",
        )
    byte_ids = range(_N_SPECIALS, _N_SPECIALS + _N_BYTES)
    if processor.get_piece_size() < byte_ids.stop or not all(map(processor.is_byte, byte_ids)):
        raise ModelError(
            "this SentencePiece model has no byte pieces", hint="use the subwords.model that dragoman wrote"
        )
    return processor


def _sample(texts: Iterable[str]) -> list[str]:
    """All texts, or a uniform sample of fixed size that depends only on the texts (reservoir sampling)."""
    kept: list[str] = []
    rng = random.Random(0)
    for i, text in enumerate(texts):
        if i < _MAX_TRAINING_LINES:
            kept.append(text)
        elif (slot := rng.randrange(i + 1)) < _MAX_TRAINING_LINES:
            kept[slot] = text
    return kept


def _train(texts: list[str], vocab_size: int) -> bytes:
    """The bytes of a SentencePiece model of exactly this size; RuntimeError if that cannot be."""
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type="bpe",
        vocab_size=vocab_size,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=_MAX_TRAINING_LINE_BYTES,
        pad_id=PAD_ID,
        unk_id=UNK_ID,
        bos_id=BOS_ID,
        eos_id=EOS_ID,
        minloglevel=2,
    )
    return model.getvalue()


def _training_error(error: RuntimeError, vocab_size: int) -> ConfigError | DataError:
    """What SentencePiece's refusal means to the user."""
    too_small = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
    if too_small is not None:
        return ConfigError(
            f"tokens.vocab_size={vocab_size} is too small for the characters of this text",
            hint=f"use more than {too_small[1]}",
        )
    return DataError(f"no subwords can be learnt from this text: {error}", hint="is it text, one sentence per line?")
