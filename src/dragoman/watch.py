"""What training tells whoever watches it. Training itself prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training stands."""

    step: int
    total_steps: int
    epoch: int  # from 1
    loss: float  # against smoothed labels, nats per target token, mean since the last report
    lr: float
    tokens_per_s: float  # target tokens without padding; validation and saving do not count as time
    elapsed_s: float
    eta_s: float
    last_bleu: float | None


class Forecast(NamedTuple):
    """A value at the end of the run: between `low` and `high` in nine runs of ten, probably near `likely`."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Validation:
    """How well the model does on the validation text."""

    step: int
    loss: float  # plain cross-entropy, nats per target token
    bleu: float  # of greedy translations
    is_best: bool
    expected_loss: Forecast | None = None  # at the end of the run
    expected_bleu: Forecast | None = None


@dataclass(frozen=True, slots=True)
class Translated:
    """How far the teachers of a run are."""

    n_done: int  # lines
    total: int
    per_s: float
    eta_s: float


class Watcher(Protocol):
    """Someone who is told."""

    def note(self, text: str) -> None: ...
    def plan(self, budget_s: float, choices: Sequence[tuple[str, object, str]]) -> None: ...
    def warn(self, text: str) -> None: ...
    def translated(self, translated: Translated) -> None: ...
    def progress(self, progress: Progress) -> None: ...
    def validated(self, validation: Validation) -> None: ...


@dataclass(slots=True)
class Stop:
    """A request to stop after the current update; `is_heeded` while training looks at it."""

    is_requested: bool = False
    is_heeded: bool = False


@dataclass(slots=True)
class Pause:
    """A time that did not go to training."""

    length_s: float = 0.0


class Meter:
    """Measures training: mean loss, speed and time left."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        elapsed_s: float = 0.0,
        step: int = 0,
        loss_sum: float = 0.0,
        n_tokens: int = 0,
    ) -> None:
        """Begins now, with `step` updates made in `elapsed_s` seconds of earlier sessions.

        `loss_sum` and `n_tokens` are what those sessions counted since their last report.
        """
        self._clock, self._elapsed_before_s, self._started, self._first_step = clock, elapsed_s, clock(), step
        self.paused_s = 0.0  # of this session, not counted as training
        self._reset()
        self.loss_sum, self.n_tokens, self._n_untimed_tokens = loss_sum, n_tokens, n_tokens

    def elapsed(self) -> float:
        """Seconds spent on this run, earlier sessions included."""
        return self._elapsed_before_s + self._clock() - self._started

    def add(self, loss: float, n_tgt_tokens: int) -> None:
        """Counts an update."""
        self.loss_sum += loss * n_tgt_tokens
        self.n_tokens += n_tgt_tokens

    @contextmanager
    def paused(self) -> Iterator[Pause]:
        """Time spent inside does not count as training; the pause knows its length when it is over."""
        began, pause = self._clock(), Pause()
        yield pause
        pause.length_s = self._clock() - began
        self.paused_s += pause.length_s
        self._since += pause.length_s

    def read(self, step: int, lr: float, total_steps: int, epoch: int, last_bleu: float | None) -> Progress:
        """Where training stands; begins a new measurement. Time left counts validation and saving too."""
        now = self._clock()
        per_step_s = (now - self._started) / (step - self._first_step)
        progress = Progress(
            step=step,
            total_steps=total_steps,
            epoch=epoch,
            loss=self.loss_sum / self.n_tokens,
            lr=lr,
            tokens_per_s=(self.n_tokens - self._n_untimed_tokens) / max(now - self._since, 1e-9),
            elapsed_s=self.elapsed(),
            eta_s=per_step_s * (total_steps - step),
            last_bleu=last_bleu,
        )
        self._reset()
        return progress

    def _reset(self) -> None:
        self._since = self._clock()
        self.loss_sum, self.n_tokens, self._n_untimed_tokens = 0.0, 0, 0
