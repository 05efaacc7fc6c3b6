"""`dragoman translate`: text in, text out, line for line."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from dragoman.checkpoint.resumable import ResumableFile, identity
from dragoman.cli.counted import Counted
from dragoman.cli.output import check_writable

if TYPE_CHECKING:
    from dragoman.translator import Translation, Translator

_log = logging.getLogger(__name__)
_NAMED = 10  # lines named in a warning
_ALSO_STREAMED = ("prefix", "no_repeat_ngram")
_NOT_STREAMED = ("output", "beam", "length_penalty", "sample", "glossary", "unk_copy", "scores", "alignments")
_WINDOW = 4096  # lines read, sorted by length and translated together; bounds memory


@click.command("translate")
@click.argument("file", required=False)
@click.option(
    "--model", metavar="RUN", required=True, multiple=True, help="Run folder or checkpoint; several: averaged."
)
@click.option("--output", metavar="F", type=click.Path(path_type=Path), help="Write here instead of to stdout.")
@click.option("--resume", is_flag=True, help="Go on with an --output that was interrupted.")
@click.option("--beam", type=int, metavar="N", help="Hypotheses kept at each step; 1 is greedy.")
@click.option("--length-penalty", type=float, metavar="A", help="Above 0 favours longer translations.")
@click.option("--nbest", type=int, metavar="N", default=1, help="Translations per line.")
@click.option("--sample", is_flag=True, help="Draw translations at random instead of searching for the likeliest.")
@click.option("--temperature", type=float, metavar="X", help="With --sample: below 1 is safer, above 1 more varied.")
@click.option("--top-k", type=int, metavar="N", help="With --sample: only among the N likeliest tokens.")
@click.option("--top-p", type=float, metavar="P", help="With --sample: only among the tokens that make up P.")
@click.option("--seed", type=int, metavar="N", help="With --sample: the same seed draws the same.")
@click.option("--prefix", metavar="TEXT", help="Words with which every translation has to begin.")
@click.option("--no-repeat-ngram", type=int, metavar="N", help="No run of N subwords occurs twice in a translation.")
@click.option("--glossary", metavar="F", help="Terms to insist on: source, tab, target, tab, its other forms.")
@click.option("--unk-copy", is_flag=True, help="Keep placeholders, addresses, numbers and tags as they are.")
@click.option("--scores", is_flag=True, help="Put the score before each translation.")
@click.option("--alignments", is_flag=True, help="Put word alignments (source-target) after each translation.")
@click.option("--stream", is_flag=True, help="Show each translation while it is made, by greedy search.")
@click.option("--batch-tokens", type=int, metavar="N", help="Source tokens translated together.")
@click.option("--engine", type=click.Choice(["auto", "torch", "ct2"]), default="auto", help="What translates.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "int8", "bfloat16"]),
    default="auto",
    help="Of matrix products.",
)
@click.option("--shortlist/--no-shortlist", default=True, help="In int8, choose among likely subwords, or among all.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where to run.")
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", help="json: an object per line."
)
def command(file: str | None, model: tuple[str, ...], output: Path | None, style: str, **flags: Any) -> None:
    """Translate FILE, or stdin, to stdout line for line.

    With --nbest above 1 each line has N lines of output: its number, the score and the translation, between tabs.
    """
    from dragoman.errors import ConfigError

    options = _options(flags | {"output": output}, style)
    if output is not None:
        check_writable(output)
    is_stdin = file is None or file == "-"
    if flags["resume"] and (output is None or is_stdin):
        raise ConfigError("--resume goes on with a file that is half translated", hint="give FILE and --output")
    from dragoman.text.lines import count_lines, read_lines
    from dragoman.translator import load

    is_pipe = is_stdin or (os.path.exists(str(file)) and not os.path.isfile(str(file)))  # which is read but once
    total = None if is_pipe else count_lines(str(file))
    chosen = {name: flags[name] for name in ("engine", "precision", "device", "threads", "shortlist")}
    translator = load(model, **chosen)
    lines = read_lines(_stdin(), name="stdin") if is_stdin else read_lines(str(file))
    window = 1 if is_stdin and sys.stdin.isatty() else _WINDOW
    account = _Account()
    if output is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        if flags["stream"]:
            _write_as_made(translator, lines, flags)
            return
        with contextlib.closing(translator.stream(lines, window=window, **options)) as translations:
            for number, translation in enumerate(translations, 1):
                account.note(translation, number)
                sys.stdout.write(_written(translation, number, style, flags))
                sys.stdout.flush()
        account.give()
        return
    settings = None if is_stdin else _settings(model, str(file), style, flags)
    with ResumableFile(output, settings, resume=flags["resume"]) as out, _told_how_to_go_on(out, is_stdin):
        counted = Counted(total, out.n_done)
        if "sampling" in options:
            options["sampling"] = replace(options["sampling"], first_sentence=out.n_done)
        rest = islice(lines, out.n_done, None)
        with contextlib.closing(translator.stream(rest, window=window, **options)) as translations:
            for translation in translations:
                account.note(translation, out.n_done + 1)
                out.write(_written(translation, out.n_done + 1, style, flags))
                counted.show(out.n_done)
        counted.close()
    account.give()


def _write_as_made(translator: Translator, lines: Iterator[str], flags: dict[str, Any]) -> None:
    """Writes every bit of a translation as soon as it is there."""
    options = {name: flags[name] for name in _ALSO_STREAMED if flags[name] is not None}
    for line in lines:
        for bit in translator.tokens(line, **options):
            sys.stdout.write(_one_line(bit))
            sys.stdout.flush()
        sys.stdout.write("\n")
        sys.stdout.flush()


def _stdin() -> BinaryIO:
    """The standard input, apart from Python's own object for it.

    That one is closed when the program ends, which fails while the thread that reads waits for a line.
    """
    try:
        return open(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, ValueError):  # it has no file behind it
        return sys.stdin.buffer


class _Account:
    """What is to be said of the translations at the end: which were cut, and which terms of a glossary were met."""

    def __init__(self) -> None:
        self._cut, self._unmet = _Some(), _Some()
        self._n_terms = self._n_anyway = 0

    def note(self, translation: Translation, number: int) -> None:
        if translation.is_cut:
            self._cut.add(str(number))
        for src, form, is_anyway in translation.terms:
            self._n_terms += 1
            self._n_anyway += is_anyway
            if form is None:
                self._unmet.add(f"{number} ({src})")

    def give(self) -> None:
        """Says it, on stderr."""
        if self._cut.n:
            _log.warning("translations cut at the limit of length: %d, lines %s", self._cut.n, self._cut.named())
        if self._n_terms:
            n_met = self._n_terms - self._unmet.n
            text = f"terms: {n_met:,} of {self._n_terms:,} met, {self._n_anyway:,} of them without insisting"
            click.echo(text + (f"; not met in lines {self._unmet.named()}" if self._unmet.n else ""), err=True)


class _Some:
    """How many there are, and the names of the first."""

    def __init__(self) -> None:
        self.n, self._first = 0, list[str]()

    def add(self, name: str) -> None:
        self.n += 1
        if self.n <= _NAMED:
            self._first.append(name)

    def named(self) -> str:
        return ", ".join(self._first) + (", …" if self.n > _NAMED else "")


def _settings(models: Sequence[str], file: str, style: str, flags: dict[str, Any]) -> dict[str, Any]:
    """What the output depends on: a command with other settings cannot go on with it."""
    from dragoman.checkpoint.folder import WEIGHTS

    settings = {name: value for name, value in flags.items() if name not in ("resume", "threads", "batch_tokens")}
    return settings | {
        "format": style,
        "weights": [identity(Path(model) / WEIGHTS) for model in models],
        "input": identity(Path(file)),
        "terms": flags["glossary"] and identity(Path(flags["glossary"])),
    }


@contextlib.contextmanager
def _told_how_to_go_on(out: ResumableFile, is_stdin: bool) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if not is_stdin:
            click.echo(f"{out.n_done:,} lines are done; the same command with --resume goes on from there", err=True)
        raise


def _options(flags: dict[str, Any], style: str) -> dict[str, Any]:
    """The arguments of `Translator.translate` among the flags."""
    from dragoman.errors import ConfigError
    from dragoman.search.step import Sampling
    from dragoman.text.glossary import Glossary

    if _sampling(flags) and not flags["sample"]:
        raise ConfigError("--temperature, --top-k, --top-p and --seed draw at random", hint="give --sample too")
    if flags["sample"] and (flags["glossary"] is not None or flags["unk_copy"]):
        raise ConfigError("--glossary and --unk-copy search; --sample does not", hint="leave out --sample")
    if flags["sample"] and flags["beam"] is not None:
        raise ConfigError("--sample and --beam exclude each other", hint="give one of them")
    if flags["stream"] and (
        style != "text" or flags["nbest"] > 1 or any(flags[name] not in (None, False) for name in _NOT_STREAMED)
    ):
        others = ", ".join(f"--{name.replace('_', '-')}" for name in ("nbest", "format", *_NOT_STREAMED))
        raise ConfigError("--stream shows one translation while it is made", hint=f"leave out {others}")
    names = ("beam", "length_penalty", "nbest", "prefix", "no_repeat_ngram", "unk_copy", "alignments", "batch_tokens")
    options = {name: flags[name] for name in names if flags[name] is not None}
    if flags["glossary"] is not None:
        options["glossary"] = Glossary.read(flags["glossary"])
    if flags["sample"]:
        options["sampling"] = Sampling(**_sampling(flags))
    return options | {"token_log_probs": style == "json"}


def _sampling(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: flags[name] for name in ("temperature", "top_k", "top_p", "seed") if flags[name] is not None}


def _written(translation: Translation, number: int, style: str, flags: dict[str, Any]) -> str:
    return _text(translation, number, flags) if style == "text" else _json(translation, flags)


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
        if flags["glossary"] is None and not flags["unk_copy"]:
            del one["terms"]
    for alternative in record["alternatives"]:
        del alternative["alternatives"]
    return json.dumps(record, ensure_ascii=False) + "\n"


def _one_line(text: str) -> str:
    """The text without line ends or tabs, which a model could produce and which would shift all that follows."""
    return text.replace("\r", " ").replace("\n", " ").replace("\t", " ")
