"""`dragoman demo`: the whole way on the built-in corpus, in minutes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dragoman.config import Settings
    from dragoman.translator import Attention, Translator

_SHADES = " ░▒▓█"
_N_EXAMPLES = 6


@click.command("demo")
@click.option("--out", metavar="RUN", type=click.Path(path_type=Path), default=Path("runs/demo"), show_default=True)
@click.option("--seed", type=int, metavar="N", default=1, show_default=True, help="The same seed gives the same run.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
def command(out: Path, seed: int, threads: int | None) -> None:
    """Train on the built-in English-German corpus, score held-out sentences and show what the model does.

    Needs no file and no network. The corpus goes to RUN-corpus, the model to RUN. Run again, it goes on where it
    was, or shows the finished model.
    """
    from dragoman.checkpoint.folder import CONFIG
    from dragoman.cli.duration import duration
    from dragoman.cli.training import train_in_sight
    from dragoman.config import make_config
    from dragoman.text.lines import read_lines
    from dragoman.translator import load

    corpus = out.with_name(f"{out.name}-corpus")
    flags: Settings = {"train": {"seed": seed} | ({} if threads is None else {"threads": threads})}
    config = make_config(_settings(corpus), flags)
    click.echo(f"making sentences: {corpus}", err=True)
    _write_corpus(corpus)
    go_on = f"dragoman demo --out {shlex.quote(str(out))} --seed {seed}"
    outcome = train_in_sight(config, out, resume=(out / CONFIG).is_file(), go_on=go_on)
    click.echo(f"trained in {duration(outcome.elapsed_s)}; translating the held-out sentences", err=True)
    translator = load(out, precision="float32", threads=threads)
    sources, references = (list(read_lines(corpus / f"test.{language}")) for language in ("en", "de"))
    _show_scores(translator, sources, references)
    click.echo("\nWhere the model looks while it writes (rows: output, columns: input; mean over layers and heads)\n")
    click.echo(heat_map(translator.attention(sources[0])))
    click.echo(f"\nYours now:  echo 'The old man reads a book.' | dragoman translate --model {out}")
    click.echo(f"            dragoman inspect {out}")


def _settings(corpus: Path) -> Settings:
    """What makes the built-in corpus learnable in minutes: a small pre-norm model and a rate that falls to zero."""
    return {
        "text": {
            "src": str(corpus / "train.en"),
            "tgt": str(corpus / "train.de"),
            "valid_src": str(corpus / "valid.en"),
            "valid_tgt": str(corpus / "valid.de"),
        },
        "tokens": {"vocab_size": 3000},
        "batches": {"tokens": 384, "max_len_tokens": 64},
        "model": {
            "d_model": 128,
            "d_ff": 256,
            "n_heads": 4,
            "n_encoder_layers": 1,
            "n_decoder_layers": 3,
            "dropout": 0.0,
            "norm": "pre",
        },
        "train": {
            "steps": 2000,
            "accumulate": 2,  # so that two cores can share an update
            "schedule": "linear",
            "lr": 0.003,
            "warmup_steps": 150,
            "clip_norm": 1.0,
            "label_smoothing": 0.0,
            "log_every": 50,
            "valid_every": 1000,
            "save_every": 500,
            "keep": 1,
            "average": 1,
        },
    }


def _write_corpus(folder: Path) -> None:
    """Writes train, valid and test as text files, a sentence per line."""
    from dragoman.text.builtin import builtin_corpus

    folder.mkdir(parents=True, exist_ok=True)
    corpus = builtin_corpus()
    for name, pairs in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
        for language, sentences in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{sentence}\n" for sentence in sentences)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")


def _show_scores(translator: Translator, sources: list[str], references: list[str]) -> None:
    from dragoman.score.metrics import bleu, exact_match

    outputs = [translation.text for translation in translator.translate(sources)]
    scored = bleu(outputs, references)
    click.echo(f"\n{len(sources)} held-out sentences, each with a combination of words that training never showed:")
    click.echo(f"  exact match  {exact_match(outputs, references):.1f} %")
    click.echo(f"  BLEU         {scored.score:.2f}   {scored.signature}\n")
    for source, output, reference in list(zip(sources, outputs, references, strict=True))[:_N_EXAMPLES]:
        click.echo(f"  English    {source}")
        click.echo(f"  Dragoman   {output}")
        click.echo(f"  reference  {reference if reference != output else '(the same)'}\n")


def heat_map(attention: Attention) -> str:
    """Cross-attention, averaged over layers and heads, as shaded cells with the tokens at the sides."""
    mean = attention.cross.mean(axis=(0, 1))
    labels = [token.replace("▁", " ").strip() or "▁" for token in attention.tgt_tokens]
    margin = max(len(label) for label in labels)
    columns = [token.replace("▁", "") or "▁" for token in attention.src_tokens]
    lines = [f"{'':{margin}}  " + " ".join(columns)]
    for label, row in zip(labels, mean, strict=True):
        cells = (_SHADES[min(4, int(weight * 6))] * len(column) for weight, column in zip(row, columns, strict=True))
        lines.append((f"{label:>{margin}}  " + " ".join(cells)).rstrip())
    return "\n".join(lines)
