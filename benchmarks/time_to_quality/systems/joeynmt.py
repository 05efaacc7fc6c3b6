"""JoeyNMT, by its own commands.

`RECOMMENDED` has the settings of its configs/transformer_iwslt14_deen_bpe.yaml, its example of a small corpus, but
for: subwords by SentencePiece, 10,000 instead of 32,000; cased text; names that version 2 has changed; validation on
100 sentences of at most 62 subwords, as its greedy search recomputes every prefix; patience in updates as there.
`TINY` has the shape and the settings of our recipe for Multi30k, as far as JoeyNMT has them.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT, python_of
from benchmarks.text import read_lines
from benchmarks.time_to_quality.clock import PEER_ENVIRONMENT, Checkpoint
from benchmarks.time_to_quality.text import SRC, TGT, learn_subwords, write_text

_MAX_LENGTH = 62


@dataclass(frozen=True)
class JoeyNMT:
    """One way to train with JoeyNMT."""

    name: str
    stack: dict[str, Any]  # encoder and decoder
    training: dict[str, Any]
    vocab_size: int
    every: int  # updates between two checkpoints: about ten in twenty minutes
    stops_itself: bool = False

    def prepare(self, data: Path, folder: Path) -> None:
        """Subwords and their list; JoeyNMT encodes by itself."""
        text = folder / "text"
        write_text(data, text)
        subwords = learn_subwords(text, self.vocab_size)
        pieces = [subwords.id_to_piece(i) for i in range(subwords.vocab_size())]
        (text / "subwords.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")

    def train(self, folder: Path, seconds: float) -> list[str]:
        """The command that trains until it is stopped."""
        config = folder / "train.yaml"
        _write(config, self._settings(folder))
        return _command("train", str(config), "--skip-test")

    def checkpoints(self, folder: Path) -> list[Checkpoint]:
        """Those of every validation, and the one that JoeyNMT writes when it is stopped."""
        files = [(int(path.stem), path) for path in (folder / "model").glob("[0-9]*.ckpt")]
        return [Checkpoint.of(path, updates) for updates, path in sorted(files)]

    def translate(self, folder: Path, checkpoint: Path, split: str) -> list[str]:
        """Plain text, by a beam of 5."""
        settings = self._settings(folder)
        settings["data"]["dev"] = str(folder / "text" / split)  # it is called dev whatever it is
        settings["testing"]["load_model"] = str(checkpoint)
        config, output = folder / "translate.yaml", folder / "output"
        _write(config, settings)
        command = _command("test", str(config), "--output-path", str(output))
        with open(folder / "translate.log", "w") as log:
            subprocess.run(command, cwd=ROOT, env=PEER_ENVIRONMENT, check=True, stdout=log, stderr=log)
        return read_lines(output.with_suffix(".dev"))

    def _settings(self, folder: Path) -> dict[str, Any]:
        text = folder / "text"
        side = {
            "max_length": _MAX_LENGTH,
            "lowercase": False,
            "level": "bpe",
            "voc_file": str(text / "subwords.txt"),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(text / "subwords.model")},
        }
        return {
            "name": "time_to_quality",
            "model_dir": str(folder / "model"),
            "use_cuda": False,
            "random_seed": 42,
            "data": {
                "train": str(text / "train"),
                "dev": str(text / "valid"),
                "sample_dev_subset": 100,
                "dataset_type": "plain",
                "src": {"lang": SRC, **side},
                "trg": {"lang": TGT, **side},
            },
            "testing": {
                "beam_size": 5,
                "beam_alpha": 1.0,
                "batch_size": 1024,
                "batch_type": "token",
                "max_output_length": _MAX_LENGTH,
                "eval_metrics": ["bleu"],
            },
            "training": {
                "optimizer": "adam",
                "normalization": "tokens",
                "loss": "crossentropy",
                "learning_rate_min": 0.0,  # the example has 1e-8, which YAML reads as a word
                "weight_decay": 0.0,
                "label_smoothing": 0.1,
                "batch_type": "token",
                "early_stopping_metric": "bleu",
                "epochs": 1000,
                "validation_freq": self.every,
                "logging_freq": self.every,
                "shuffle": True,
                "keep_best_ckpts": -1,  # all
                "print_valid_sents": [0],
                **self.training,
            },
            "model": {
                "initializer": "xavier_uniform",
                "embed_initializer": "xavier_uniform",
                "embed_init_gain": 1.0,
                "init_gain": 1.0,
                "bias_initializer": "zeros",
                "tied_embeddings": True,
                "tied_softmax": True,
                "encoder": self.stack,
                "decoder": self.stack,
            },
        }


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.write_text(json.dumps(settings, indent=1))  # JSON is YAML


def _command(name: str, *flags: str) -> list[str]:
    return [str(python_of("joeynmt")), "-m", "benchmarks.time_to_quality.launch.joeynmt", name, *flags]


def _stack(n_layers: int, hidden_size: int, ff_size: int, dropout: float) -> dict[str, Any]:
    return {
        "type": "transformer",
        "num_layers": n_layers,
        "num_heads": 4,
        "embeddings": {"embedding_dim": hidden_size, "scale": True, "dropout": 0.0},
        "hidden_size": hidden_size,
        "ff_size": ff_size,
        "dropout": dropout,
        "layer_norm": "pre",  # what JoeyNMT 1, for which the example is, always did
    }


RECOMMENDED = JoeyNMT(
    name="JoeyNMT, its recipe",
    stack=_stack(6, 256, 1024, dropout=0.3),
    training={
        "adam_betas": [0.9, 0.999],
        "scheduling": "plateau",
        "patience": 5 * 1000 // 25,  # 5000 updates, in validations
        "decrease_factor": 0.7,
        "learning_rate": 0.0003,
        "batch_size": 4096,
    },
    vocab_size=10_000,
    every=25,
)
TINY = JoeyNMT(
    name="JoeyNMT, our settings",
    stack=_stack(4, 128, 256, dropout=0.2),
    training={
        "adam_betas": [0.9, 0.98],
        "scheduling": "warmupinversesquareroot",
        "learning_rate": 0.003,
        "learning_rate_warmup": 800,
        "clip_grad_norm": 1.0,
        "batch_size": 1024,
    },
    vocab_size=4000,
    every=300,
)
