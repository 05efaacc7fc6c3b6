"""How training looks in a terminal, and as plain lines where there is none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dragoman.cli.duration import duration
from dragoman.watch import Progress, Translated, Validation


class Lines:
    """A line per event on stderr."""

    def note(self, text: str) -> None:
        self._write(text)

    def warn(self, text: str) -> None:
        self._write(f"warning: {text}")

    def plan(self, budget_s: float, choices: Sequence[tuple[str, object, str]]) -> None:
        self._write(f"the plan for {duration(budget_s)}:")
        widths = [max(len(str(choice[column])) for choice in choices) for column in (0, 1)]
        said = ""
        for setting, value, reason in choices:
            why = "″" if reason == said else reason
            self._write(f"  {setting:<{widths[0]}}  {value!s:>{widths[1]}}  {why}")
            said = reason

    def translated(self, translated: Translated) -> None:
        self._write(f"translated {translated.n_done}/{translated.total}  {_pace(translated)}")

    def progress(self, progress: Progress) -> None:
        self._write(f"step {progress.step}/{progress.total_steps}  " + "  ".join(_parts(progress)))

    def validated(self, validation: Validation) -> None:
        self._write(_verdict(validation))

    def _write(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Screen(Lines):
    """A progress bar that stays at the bottom, the other events above it."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=False)

    def translated(self, translated: Translated) -> None:
        self._show("translated", translated.n_done, translated.total, _pace(translated))

    def progress(self, progress: Progress) -> None:
        self._show("step", progress.step, progress.total_steps, "  ".join(_parts(progress)))

    def _show(self, what: str, n_done: int, total: int, more: str) -> None:
        row = Table.grid(padding=(0, 2), expand=True)
        row.add_column(no_wrap=True)
        row.add_column(ratio=1)
        row.add_column(no_wrap=True)
        row.add_row(Text(f"{what} {n_done}/{total}"), ProgressBar(total=total, completed=n_done), Text(more))
        self._live.update(row)

    def _write(self, text: str) -> None:
        # Long lines are left to the terminal, so that a command in them can be copied whole.
        self._live.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def watcher() -> Lines:
    """The screen if stderr is a terminal, plain lines otherwise."""
    console = Console(stderr=True)
    return Screen(console) if console.is_terminal else Lines()


def _pace(translated: Translated) -> str:
    return f"{translated.per_s:,.0f} lines/s  ETA {duration(translated.eta_s)}"


def _parts(progress: Progress) -> list[str]:
    parts = [
        f"epoch {progress.epoch}",
        f"loss {progress.loss:.3f}",
        f"{progress.tokens_per_s:,.0f} tok/s",
        f"lr {progress.lr:.2e}",
        f"ETA {duration(progress.eta_s)}",
    ]
    return parts if progress.last_bleu is None else [*parts, f"BLEU {progress.last_bleu:.1f}"]


def _verdict(validation: Validation) -> str:
    best = "  (best so far)" if validation.is_best else ""
    verdict = f"validation at step {validation.step}: loss {validation.loss:.3f}  BLEU {validation.bleu:.2f}{best}"
    loss, bleu = validation.expected_loss, validation.expected_bleu
    told = [] if loss is None else [f"loss {loss.likely:.2f} ({loss.low:.2f} to {loss.high:.2f})"]
    if bleu is not None:
        told.append(f"BLEU {bleu.likely:.1f} ({bleu.low:.1f} to {bleu.high:.1f})")
    return f"{verdict}; at the end probably {', '.join(told)}" if told else verdict
