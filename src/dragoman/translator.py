"""Composer for use: subwords, model and search make a translator."""

# Letters: B batch, S source length, T target length, L layers, H heads.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.batches.batch import pad_sequences
from dragoman.checkpoint.folder import SUBWORDS, WEIGHTS
from dragoman.checkpoint.format import load_weights
from dragoman.config import Config, load_config
from dragoman.errors import ConfigError, ModelError
from dragoman.model.transformer import AttentionWeights, Transformer
from dragoman.score.likelihood import token_loss
from dragoman.search.beam import beam_search
from dragoman.search.greedy import greedy_search
from dragoman.search.sample import sample_search
from dragoman.search.step import Hypothesis, SearchConfig
from dragoman.tokens.subwords import Subwords

BATCH_TOKENS = 2048  # padded source tokens translated together; beams multiply it


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to draw a translation instead of searching for the likeliest one."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 0
    first_sentence: int = 0  # number of the first sentence: each has a random stream of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A translation and how it came about."""

    text: str
    score: float  # log-probability over length penalty: what the search maximises
    log_prob: float  # natural logarithm of the probability of the tokens, end included
    tokens: tuple[str, ...]  # subwords, without the end
    token_log_probs: tuple[float, ...]  # one per token and one for the end
    alignment: tuple[tuple[int, int], ...] | None = None  # (source word, target word), when asked for
    alternatives: tuple[Translation, ...] = ()  # the rest of the n-best list, best first


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Every layer's and head's attention for one sentence pair: rows look at columns and sum to one."""

    src_tokens: tuple[str, ...]  # columns of `encoder` and `cross`, rows of `encoder`; ends with </s>
    tgt_tokens: tuple[str, ...]  # row t of `decoder` and `cross` is the step that produced tgt_tokens[t]
    tgt_in_tokens: tuple[str, ...]  # columns of `decoder`: <s>, then the tokens before each step
    encoder: np.ndarray  # (L, H, S, S)
    decoder: np.ndarray  # (L, H, T, T)
    cross: np.ndarray  # (L, H, T, S)


class Translator:
    """Turns sentences into translations. Call it with one sentence, or use `translate` for many."""

    def __init__(self, model: Transformer, subwords: Subwords, config: Config) -> None:
        self.model = model
        self.subwords = subwords
        self.config = config

    def __call__(self, text: str) -> str:
        """The best translation of one sentence."""
        return self.translate([text])[0].text

    @torch.inference_mode()
    def translate(
        self,
        sentences: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        nbest: int = 1,
        sampling: Sampling | None = None,
        alignments: bool = False,
        batch_tokens: int = BATCH_TOKENS,
    ) -> list[Translation]:
        """A translation of each sentence, in order; with `nbest` above 1 the others are its alternatives.

        Beam and length penalty are the model's own settings unless given. No sentence's result depends on its
        neighbours or on `batch_tokens`. An empty sentence has an empty translation.
        """
        if isinstance(sentences, str):
            raise TypeError("translate takes a list of sentences; call the translator itself for one")
        if nbest < 1 or batch_tokens < 1:
            raise ConfigError(f"nbest={nbest} or batch_tokens={batch_tokens} is below 1", hint="raise it")
        search = self.config.search
        search = replace(
            search,
            beam=search.beam if beam is None else beam,
            length_penalty=search.length_penalty if length_penalty is None else length_penalty,
        )
        src_ids = [self.subwords.encode(text) for text in sentences]
        nothing = Translation(
            text="", score=0.0, log_prob=0.0, tokens=(), token_log_probs=(), alignment=() if alignments else None
        )
        results = [nothing] * len(src_ids)
        with _evaluating(self.model):
            for rows in _batches([len(ids) for ids in src_ids], batch_tokens):
                found = self._search([src_ids[row] for row in rows], rows, search, nbest, sampling)
                for row, hypotheses in zip(rows, found, strict=True):
                    best, *others = (self._translation(src_ids[row], one, alignments) for one in hypotheses)
                    results[row] = replace(best, alternatives=tuple(others))
        return results

    @torch.inference_mode()
    def loss(self, sentences: Sequence[str], references: Sequence[str], *, batch_tokens: int = BATCH_TOKENS) -> float:
        """Plain cross-entropy of the references in nats per target token, the end of each sentence included."""
        subwords, device = self.subwords, self.model.embedding.weight.device
        src_ids = [[*subwords.encode(text), subwords.eos_id] for text in sentences]
        tgt_ids = [[*subwords.encode(text), subwords.eos_id] for text in references]
        lengths = [max(len(src), len(tgt)) for src, tgt in zip(src_ids, tgt_ids, strict=True)]
        total, n_tokens = 0.0, 0
        with _evaluating(self.model):
            for rows in _batches(lengths, batch_tokens):
                src_BS = pad_sequences([src_ids[row] for row in rows], subwords.pad_id).to(device)
                tgt_out_BT = pad_sequences([tgt_ids[row] for row in rows], subwords.pad_id).to(device)
                bos_B1 = torch.full_like(tgt_out_BT[:, :1], subwords.bos_id)
                logits_BTV = self.model(src_BS, torch.cat([bos_B1, tgt_out_BT[:, :-1]], dim=1))
                batch_total, batch_n_tokens = token_loss(logits_BTV, tgt_out_BT, subwords.pad_id)
                total, n_tokens = total + batch_total, n_tokens + batch_n_tokens
        return total / n_tokens

    @torch.inference_mode()
    def attention(self, text: str, target: str | None = None) -> Attention:
        """The attention of every layer and head while translating `text`, or while producing `target`."""
        if target is None:
            target = self(text)
        src_ids, tgt_ids = self.subwords.encode(text), self.subwords.encode(target)
        encoder, decoder, cross = (
            np.stack([weights_BHTS[0].numpy(force=True) for weights_BHTS in layers])
            for layers in self._explain(src_ids, tgt_ids)
        )
        tgt_tokens = self.subwords.pieces(tgt_ids)
        return Attention(
            src_tokens=(*self.subwords.pieces(src_ids), "</s>"),
            tgt_tokens=(*tgt_tokens, "</s>"),
            tgt_in_tokens=("<s>", *tgt_tokens),
            encoder=encoder,
            decoder=decoder,
            cross=cross,
        )

    def _search(
        self,
        src_ids: list[list[int]],
        rows: list[int],
        search: SearchConfig,
        nbest: int,
        sampling: Sampling | None,
    ) -> list[list[Hypothesis]]:
        device = self.model.embedding.weight.device
        src_BS = pad_sequences([[*ids, self.subwords.eos_id] for ids in src_ids], self.subwords.pad_id).to(device)
        cache = self.model.start(src_BS)
        limits: dict[str, Any] = {
            "max_lens": [len(ids) + search.max_extra_tokens for ids in src_ids],
            "bos_id": self.subwords.bos_id,
            "eos_id": self.subwords.eos_id,
            "length_penalty": search.length_penalty,
        }
        if sampling is not None:
            return sample_search(
                self.model.step,
                cache,
                **limits,
                indices=[sampling.first_sentence + row for row in rows],
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                n_samples=nbest,
            )
        if search.beam == nbest == 1:
            return [[hypothesis] for hypothesis in greedy_search(self.model.step, cache, **limits)]
        return beam_search(self.model.step, cache, **limits, beam=search.beam, nbest=nbest)

    def _translation(self, src_ids: list[int], hypothesis: Hypothesis, with_alignment: bool) -> Translation:
        tgt_ids = list(hypothesis.ids)
        return Translation(
            text=self.subwords.decode(tgt_ids),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.subwords.pieces(tgt_ids)),
            token_log_probs=hypothesis.token_log_probs,
            alignment=self._alignment(src_ids, tgt_ids) if with_alignment else None,
        )

    def _explain(self, src_ids: list[int], tgt_ids: list[int]) -> AttentionWeights:
        device = self.model.embedding.weight.device
        src_BS = torch.tensor([[*src_ids, self.subwords.eos_id]], device=device)
        tgt_in_BT = torch.tensor([[self.subwords.bos_id, *tgt_ids]], device=device)
        with _evaluating(self.model):
            return self.model.explain(src_BS, tgt_in_BT)[1]

    def _alignment(self, src_ids: list[int], tgt_ids: list[int]) -> tuple[tuple[int, int], ...]:
        """For each target word the source word it looked at most, cross-attention averaged over layers and heads."""
        if not src_ids or not tgt_ids:
            return ()
        cross_TS = torch.stack([w.mean(dim=1)[0] for w in self._explain(src_ids, tgt_ids).cross]).mean(dim=0)
        src_words, tgt_words = (_words(self.subwords.pieces(ids)) for ids in (src_ids, tgt_ids))
        mass = np.zeros((tgt_words[-1] + 1, src_words[-1] + 1))
        weights = cross_TS[: len(tgt_ids), : len(src_ids)].numpy(force=True)
        np.add.at(mass, (np.array(tgt_words)[:, None], np.array(src_words)[None, :]), weights)
        return tuple((int(row.argmax()), word) for word, row in enumerate(mass))


def load(path: str | Path, *, device: str = "auto", threads: int | None = None) -> Translator:
    """The translator in a run folder or checkpoint. Reads TOML, SentencePiece and safetensors: never a pickle."""
    folder = Path(path)
    config = load_config(folder)
    subwords = Subwords.load(folder / SUBWORDS)
    if subwords.vocab_size != config.model.vocab_size:
        raise ModelError(
            f"{folder / SUBWORDS} has {subwords.vocab_size} subwords, but the model has {config.model.vocab_size}",
            hint="the files of this folder do not belong together",
        )
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"threads={threads} is below 1", hint="give a whole number above 0")
        torch.set_num_threads(threads)
    model = Transformer(config.model)
    load_weights(model, folder / WEIGHTS)
    return Translator(model.to(pick_device(device)).eval(), subwords, config)


def pick_device(name: str) -> torch.device:
    """The device named; "auto" is the first CUDA device if there is one, else the processor."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device", hint="use --device cpu")
    if name not in ("cpu", "cuda"):
        raise ConfigError(f'device "{name}" is not a choice', hint="use one of auto, cpu, cuda")
    return torch.device(name)


@contextmanager
def _evaluating(model: Transformer) -> Iterator[None]:
    """Without dropout inside, as before outside."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """The rows of non-empty sentences, alike in length, at most `batch_tokens` padded tokens at a time."""
    rows: list[int] = []
    for row in sorted((row for row, length in enumerate(lengths) if length), key=lambda row: -lengths[row]):
        if rows and (len(rows) + 1) * lengths[rows[0]] > batch_tokens:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def _words(pieces: Sequence[str]) -> list[int]:
    """The number of the word each piece belongs to, words being divided by spaces."""
    words, word, is_open = [], 0, False
    for piece in pieces:
        if piece.startswith("▁") and is_open:
            word, is_open = word + 1, False
        words.append(word)
        is_open = is_open or piece.strip("▁") != ""  # spaces alone begin no word
    return words
