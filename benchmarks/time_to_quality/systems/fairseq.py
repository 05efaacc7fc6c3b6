"""fairseq, by its own commands.

`RECOMMENDED` has the settings of its examples/translation/README.md for IWSLT'14, its example of a small corpus, but
for three things: embeddings are shared three ways, with a joint vocabulary; validation computes the loss only, as BLEU
by beam search would take minutes; checkpoints do not hold the optimizer's state, which is faster.
`TINY` has the shape and the settings of our recipe for Multi30k, as far as fairseq has them.
"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import ROOT, python_of
from benchmarks.text import read_lines
from benchmarks.time_to_quality.clock import PEER_ENVIRONMENT, Checkpoint
from benchmarks.time_to_quality.text import FILES, SRC, TGT, learn_subwords, write_text


@dataclass(frozen=True)
class Fairseq:
    """One way to train with fairseq."""

    name: str
    flags: str
    vocab_size: int
    every: int  # updates between two checkpoints: about ten in twenty minutes
    stops_itself: bool = True  # and validates and saves then, so it is given a little longer

    def prepare(self, data: Path, folder: Path) -> None:
        """Subwords, then fairseq's own binary files."""
        text = folder / "text"
        write_text(data, text)
        subwords = learn_subwords(text, self.vocab_size)
        for split in FILES:
            for language in (SRC, TGT):
                pieces = subwords.encode(read_lines(text / f"{split}.{language}"), out_type=str)
                encoded = "".join(" ".join(line) + "\n" for line in pieces)
                (text / f"{split}.pieces.{language}").write_text(encoded, encoding="utf-8")
        splits = [word for split in FILES for word in (f"--{split}pref", str(text / f"{split}.pieces"))]
        sides = ["--source-lang", SRC, "--target-lang", TGT, "--joined-dictionary", "--workers", "2"]
        command = _command("preprocess", *splits, *sides, "--destdir", str(folder / "binary"))
        with open(folder / "preprocess.log", "w") as log:
            subprocess.run(command, cwd=ROOT, env=PEER_ENVIRONMENT, check=True, stdout=log, stderr=log)

    def train(self, folder: Path, seconds: float) -> list[str]:
        """The command that trains for so long."""
        saving = shlex.split(f"""
            --save-interval-updates {self.every} --validate-interval-updates {self.every} --no-epoch-checkpoints
            --save-interval 1000 --validate-interval 1000 --no-save-optimizer-state
            --log-format simple --log-interval {self.every} --seed 1 --stop-time-hours {seconds / 3600}
        """)
        folders = [str(folder / "binary"), "--save-dir", str(folder / "model")]
        return _command("train", *folders, *shlex.split(self.flags), *saving)

    def checkpoints(self, folder: Path) -> list[Checkpoint]:
        """Those of every so many updates, and the one written at the end unless it is the same."""
        paths = (folder / "model").glob("checkpoint_[0-9]*_[0-9]*.pt")
        found = [Checkpoint.of(path, updates) for updates, path in sorted((_updates(path), path) for path in paths)]
        last = folder / "model" / "checkpoint_last.pt"  # mostly a copy of the one before, made within moments
        if last.exists() and (not found or Checkpoint.of(last, None).written > found[-1].written + 5):
            found.append(Checkpoint.of(last, None))
        return found

    def translate(self, folder: Path, checkpoint: Path, split: str) -> list[str]:
        """Plain text, by a beam of 5."""
        flags = shlex.split(f"""
            --gen-subset {split} --batch-size 128 --beam 5 --max-len-a 1.2 --max-len-b 10 --remove-bpe sentencepiece
        """)
        command = _command("generate", str(folder / "binary"), "--path", str(checkpoint), *flags)
        with open(folder / "generate.log", "w") as log:
            output = {"stdout": subprocess.PIPE, "stderr": log, "encoding": "utf-8"}
            done = subprocess.run(command, cwd=ROOT, env=PEER_ENVIRONMENT, check=True, **output)
        found = {}
        for line in done.stdout.split("\n"):
            if line.startswith("D-"):  # D-<number of the sentence>, score, text
                number, _, text = line.split("\t")
                found[int(number[2:])] = text
        return [found[i] for i in range(len(found))]


def _updates(checkpoint: Path) -> int:
    return int(checkpoint.stem.split("_")[2])


def _command(name: str, *flags: str) -> list[str]:
    return [str(python_of("fairseq")), "-m", "benchmarks.time_to_quality.launch.fairseq", name, *flags]


RECOMMENDED = Fairseq(
    name="fairseq, its recipe",
    flags="""
        --arch transformer_iwslt_de_en --share-all-embeddings --optimizer adam --adam-betas '(0.9, 0.98)'
        --clip-norm 0.0 --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000 --dropout 0.3 --weight-decay 0.0001
        --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-tokens 4096
    """,
    vocab_size=10_000,
    every=20,
)
TINY = Fairseq(
    name="fairseq, our settings",
    flags="""
        --arch transformer --share-all-embeddings --encoder-embed-dim 128 --decoder-embed-dim 128
        --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-layers 4 --decoder-layers 4
        --encoder-attention-heads 4 --decoder-attention-heads 4 --encoder-normalize-before --decoder-normalize-before
        --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 --lr 3e-3 --lr-scheduler inverse_sqrt
        --warmup-updates 800 --dropout 0.2 --criterion label_smoothed_cross_entropy --label-smoothing 0.1
        --max-tokens 1024
    """,
    vocab_size=4000,
    every=300,
)
