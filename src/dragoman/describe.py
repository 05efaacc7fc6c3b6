"""What the model card says of a run."""

from __future__ import annotations

import platform

import torch

from dragoman._version import __version__
from dragoman.checkpoint.card import Card
from dragoman.checkpoint.folder import CONFIG
from dragoman.config import Config
from dragoman.model.transformer import Transformer
from dragoman.prepare import Data
from dragoman.score.metrics import Scores


def describe(
    config: Config,
    data: Data,
    model: Transformer,
    *,
    name: str,
    choice: str,
    scores: Scores | None,
    int8_costs: float | None,
    n_scored: int,
    step: int,
    epoch: int,
    elapsed_s: float,
) -> Card:
    """The card of a finished run; `choice` says which weights were taken, `n_scored` on how many pairs they scored.

    `int8_costs` is by how much the loss on these is higher in int8, if that was measured.
    """
    text, shape, train = config.text, config.model, config.train
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    budget = "" if train.budget_s is None else f" of a budget of {train.budget_s / 60:g}"
    time = f"{elapsed_s / 60:.1f} minutes{budget} on {model.embedding.weight.device.type}"
    used = f", {n_scored:,} used" if n_scored < len(data.valid) else ""
    rows = [] if scores is None else [("BLEU", scores.bleu), ("chrF", scores.chrf), ("TER", scores.ter)]
    return Card(
        name=name,
        data=[
            ("training text", text.pairs or f"{text.src} → {_targets(config)}"),
            ("training pairs", f"{len(data.pairs):,}"),
            ("validation text", text.valid_pairs or f"{text.valid_src} → {text.valid_tgt}"),
            (
                "validation pairs",
                f"{len(data.valid):,}{used}",
            ),
            ("vocabulary", f"{shape.vocab_size:,} subwords, SentencePiece BPE with bytes, joint"),
        ],
        model=[
            ("parameters", f"{n_parameters:,}"),
            ("layers", f"{shape.n_encoder_layers} encoder, {shape.n_decoder_layers} decoder, {shape.norm}-norm"),
            ("width", f"d_model {shape.d_model}, d_ff {shape.d_ff}, {shape.n_heads} heads"),
            ("weights", choice),
            *([] if int8_costs is None else [("precision", _precision(config, int8_costs))]),
        ],
        training=[
            ("updates", f"{step:,} ({epoch + 1} epochs begun)"),
            ("batch", f"{config.batches.tokens:,} tokens × {train.accumulate}"),
            ("time", f"{time}, {train.threads or torch.get_num_threads()} threads"),
            ("optimizer", f"{train.optimizer.capitalize()}, products in {train.precision}"),
            ("seed", str(train.seed)),
            ("software", f"dragoman {__version__}, torch {torch.__version__}, Python {platform.python_version()}"),
            ("settings", f"all of them in {CONFIG}"),
        ],
        scores=[(f"{name}, validation", f"{s.score:.2f}", s.signature) for name, s in rows],
    )


def _precision(config: Config, int8_costs: float) -> str:
    default = "int8" if config.search.int8 else "float32"
    return f"{default} unless asked otherwise; int8 changes the validation loss by {int8_costs:+.4f} nats per token"


def _targets(config: Config) -> str:
    """What the training text is paired with."""
    text = config.text
    if not text.teachers:
        return str(text.tgt)
    beam = "" if text.teacher_beam is None else f", beam {text.teacher_beam}"
    return f"translations by {' and '.join(text.teachers)}{beam}" + (f"; {text.tgt}" if text.tgt else "")
