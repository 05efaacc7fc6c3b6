"""`dragoman translate`: text in, text out, line for line."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from dragoman.translator import Translation

_WINDOW = 1024  # lines read, sorted by length and translated together; bounds memory


@click.command("translate")
@click.argument("file", required=False)
@click.option("--model", metavar="RUN", required=True, help="Run folder or checkpoint.")
@click.option("--output", metavar="F", type=click.Path(path_type=Path), help="Write here instead of to stdout.")
@click.option("--beam", type=int, metavar="N", help="Hypotheses kept at each step; 1 is greedy.")
@click.option("--length-penalty", type=float, metavar="A", help="Above 0 favours longer translations.")
@click.option("--nbest", type=int, metavar="N", default=1, help="Translations per line.")
@click.option("--sample", is_flag=True, help="Draw translations at random instead of searching for the likeliest.")
@click.option("--temperature", type=float, metavar="X", help="With --sample: below 1 is safer, above 1 more varied.")
@click.option("--top-k", type=int, metavar="N", help="With --sample: only among the N likeliest tokens.")
@click.option("--top-p", type=float, metavar="P", help="With --sample: only among the tokens that make up P.")
@click.option("--seed", type=int, metavar="N", help="With --sample: the same seed draws the same.")
@click.option("--scores", is_flag=True, help="Put the score before each translation.")
@click.option("--alignments", is_flag=True, help="Put word alignments (source-target) after each translation.")
@click.option("--batch-tokens", type=int, metavar="N", help="Source tokens translated together.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", help="json: an object per line."
)
def command(file: str | None, model: str, output: Path | None, style: str, **flags: Any) -> None:
    """Translate FILE, or stdin, to stdout line for line.

    With --nbest above 1 each line has N lines of output: its number, the score and the translation, between tabs.
    """
    options = _options(flags)
    if output is not None:
        _check_writable(output)
    from dragoman.text.lines import read_lines
    from dragoman.translator import Sampling, load

    translator = load(model, device=flags["device"], threads=flags["threads"])
    if file is None or file == "-":
        lines = read_lines(sys.stdin.buffer, name="stdin")
        window = 1 if sys.stdin.isatty() else _WINDOW
    else:
        lines, window = read_lines(file), _WINDOW
    with _writing(output) as out:
        number = 0
        while texts := list(islice(lines, window)):
            if flags["sample"]:
                options["sampling"] = Sampling(first_sentence=number, **_sampling(flags))
            for translation in translator.translate(texts, **options):
                number += 1
                out.write(_text(translation, number, flags) if style == "text" else _json(translation, flags))
            out.flush()


def _options(flags: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `Translator.translate` among the flags."""
    from dragoman.errors import ConfigError

    if _sampling(flags) and not flags["sample"]:
        raise ConfigError("--temperature, --top-k, --top-p and --seed draw at random", hint="give --sample too")
    if flags["sample"] and flags["beam"] is not None:
        raise ConfigError("--sample and --beam exclude each other", hint="give one of them")
    names = ("beam", "length_penalty", "nbest", "alignments", "batch_tokens")
    return {name: flags[name] for name in names if flags[name] is not None}


def _check_writable(output: Path) -> None:
    """Raises if the output has no place, before any time is spent on it."""
    from dragoman.errors import DataError

    if output.is_dir():
        raise DataError(f"{output} is a folder", hint="name a file inside it")
    if not output.parent.is_dir():
        raise DataError(f"there is no folder {output.parent}", hint="make it, or write elsewhere")


def _sampling(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: flags[name] for name in ("temperature", "top_k", "top_p", "seed") if flags[name] is not None}


@contextlib.contextmanager
def _writing(path: Path | None) -> Iterator[TextIO]:
    """Where the output goes; a file appears only when it is complete."""
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
        return
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _text(translation: Translation, number: int, flags: dict[str, Any]) -> str:
    rows = []
    for one in (translation, *translation.alternatives):
        columns = [_one_line(one.text)]
        if flags["scores"] or flags["nbest"] > 1:
            columns.insert(0, f"{one.score:.4f}")
        if flags["nbest"] > 1:
            columns.insert(0, str(number))
        if one.alignment is not None:
            columns.append(" ".join(f"{src}-{tgt}" for src, tgt in one.alignment))
        rows.append("\t".join(columns) + "\n")
    return "".join(rows)


def _json(translation: Translation, flags: dict[str, Any]) -> str:
    record = asdict(translation)
    for one in (record, *record["alternatives"]):
        if not flags["alignments"]:
            del one["alignment"]
    for alternative in record["alternatives"]:
        del alternative["alternatives"]
    return json.dumps(record, ensure_ascii=False) + "\n"


def _one_line(text: str) -> str:
    """The text without line ends or tabs, which a model could produce and which would shift all that follows."""
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
