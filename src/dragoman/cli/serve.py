"""`dragoman serve`: models over HTTP."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import click


@click.command("serve")
@click.option(
    "--model", metavar="RUN", required=True, multiple=True,
    help="Run folder; its languages are those its training files are named after, or as in en-de=RUN.",
)  # fmt: skip
@click.option("--host", metavar="H", default="127.0.0.1", show_default=True, help="0.0.0.0: from anywhere.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=5000,
    show_default=True,
    help="0: any.",
)
@click.option("--threads", type=int, metavar="N", help="Processor threads to use.")
@click.option("--engine", type=click.Choice(["auto", "torch", "ct2"]), default="auto", help="What translates.")
@click.option(
    "--precision", type=click.Choice(["auto", "float32", "int8", "bfloat16"]), default="auto", help="Of products."
)
@click.option("--api-key-file", metavar="F", type=click.Path(path_type=Path), help="Keys, of which one is needed.")
@click.option("--requests-per-minute", type=int, metavar="N", help="For each key or address.")
@click.option("--max-chars", type=int, metavar="N", help="Characters of a request.")
@click.option("--max-texts", type=int, metavar="N", help="Texts in a list.")
@click.option("--max-body-bytes", type=int, metavar="N", help="Bytes of a request.")
@click.option("--max-file-bytes", type=int, metavar="N", help="Bytes of a file.")
@click.option("--max-queue", type=int, metavar="N", help="Sentences that may wait.")
@click.option("--max-batch", type=int, metavar="N", help="Sentences translated together.")
@click.option("--timeout", "timeout_s", type=float, metavar="S", help="Seconds for a request.")
@click.option("--files", metavar="DIR", type=click.Path(path_type=Path), help="Where translated files are kept.")
@click.option("--cors", metavar="ORIGIN", multiple=True, help="Pages of ORIGIN may ask from a browser; * for all.")
def command(model: tuple[str, ...], host: str, port: int, threads: int | None, **flags: Any) -> None:
    """Serve models over HTTP, with LibreTranslate's interface and our own; see /docs there."""
    from dragoman.errors import ConfigError, MissingPartError

    if os.name != "posix":
        raise ConfigError("the server needs Linux or macOS", hint="use `dragoman translate`, or run it in a container")
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        raise MissingPartError("this command needs FastAPI and uvicorn", hint="pip install 'dragoman[serve]'")
    from dragoman.config import load_config
    from dragoman.engines.engine import n_cores
    from dragoman.explain.page import page_html
    from dragoman.serve.app import make_app
    from dragoman.serve.keys import ApiKeys
    from dragoman.serve.languages import languages_of, parse_model
    from dragoman.serve.limits import Limits
    from dragoman.serve.metrics import Metrics
    from dragoman.serve.remote import RemoteTranslator
    from dragoman.serve.server import log_to_stderr, run_server
    from dragoman.serve.service import Service

    names = Limits.__dataclass_fields__
    limits = Limits(**{name: value for name, value in flags.items() if name in names and value is not None})
    keys = None if flags["api_key_file"] is None else ApiKeys(flags["api_key_file"])
    models = []
    for text in model:
        src, tgt, folder = parse_model(text)
        if src is None or tgt is None:
            src, tgt = languages_of(load_config(folder), folder)
        models.append((src, tgt, folder))
    _check_distinct(models)
    loading = {"engine": flags["engine"], "precision": flags["precision"], "threads": threads}
    n_at_a_time = 2 * max(threads or n_cores(), 2) + 1  # batches, as many read ahead, and what is done alone
    started = [RemoteTranslator(folder, __name__, n_at_a_time=n_at_a_time, **loading) for _, _, folder in models]
    for translator in started:
        translator.wait()
    loaded = [(*model, translator) for model, translator in zip(models, started, strict=True)]
    service = Service(loaded, limits=limits, metrics=Metrics(), keys=keys, threads=threads)
    app = make_app(service, files=flags["files"] or _cache() / "files", page=page_html, cors=flags["cors"])
    log_to_stderr()
    pairs = ", ".join(f"{src} to {tgt}" for src, tgt, _ in models)
    run_server(
        app, host=host, port=port, limits=limits,
        on_start=lambda address: click.echo(f"serving {pairs} at {address}", err=True),
    )  # fmt: skip
    for translator in started:
        if translator.has_ended:
            raise translator.ended()


def work() -> None:
    """What the process of each model does."""
    from dragoman.explain.api import explain_json
    from dragoman.serve.remote import work_for_server
    from dragoman.translator import load

    work_for_server(load, explain_json)


def _check_distinct(models: list[tuple[str, str, Path]]) -> None:
    from dragoman.errors import ConfigError

    pairs = [(src, tgt) for src, tgt, _ in models]
    for pair in pairs:
        if pairs.count(pair) > 1:
            raise ConfigError(
                f"two models translate from {pair[0]} to {pair[1]}", hint="give one, or say their languages: en-de=RUN"
            )


def _cache() -> Path:
    """Where programs of this user keep what they can do without."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman"
