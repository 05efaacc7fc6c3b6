"""A run while it trains: when it validates, saves and ends. Part of the composer `run`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from dragoman.batches.batch import Batch, make_batch, prefetch
from dragoman.batches.sampler import epoch_batches
from dragoman.checkpoint import folder as files
from dragoman.checkpoint.format import load_tensors, load_weights, save_checkpoint, save_tensors
from dragoman.checkpoint.metrics import MetricsLog, Record
from dragoman.config import Config, to_toml
from dragoman.engines.torch_engine import TorchEngine
from dragoman.errors import ModelError
from dragoman.model.transformer import Transformer
from dragoman.prepare import Data, evenly
from dragoman.score.likelihood import perplexity
from dragoman.score.metrics import bleu
from dragoman.tokens.unmerge import Ids, Unmerging
from dragoman.train.config import PAPER_STEPS
from dragoman.train.embeddings import begin_from_text
from dragoman.train.forecast import forecast
from dragoman.train.loop import Update, updates
from dragoman.train.optim import make_optimizer, optimizer_tensors, restore_optimizer
from dragoman.train.pace import Pacer, change_pace, even_pace, last_step, share_done
from dragoman.train.schedule import learning_rate
from dragoman.translator import Translator
from dragoman.watch import Forecast, Meter, Stop, Validation, Watcher

_LOOKS_AT_END = 4  # a run ends with work that takes as long as this many validations
PENALTIES = (0.6, 1.0, 1.4)  # of length, tried at the end if asked for; the first is the paper's
_LOOKS_PER_PENALTY = 2.5
_GUESS = 0.004  # share of the budget
_CARD_S = 1.5  # the card, with its picture


@dataclass(slots=True)
class State:
    """What resuming needs to know besides tensors; kept in state.json."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch already used
    elapsed_s: float = 0.0
    best_step: int | None = None
    best_bleu: float = -1.0
    best_loss: float = math.inf
    last_bleu: float | None = None
    n_worse: int = 0  # validations since the best
    loss_sum: float = 0.0  # over the target tokens since the last report
    n_tokens: int = 0
    pace: list[list[float]] | None = None  # as it was changed under a budget
    curve: list[list[float]] = field(default_factory=list)  # share of the way, loss and BLEU of each validation


class Session:
    """One run while it trains: the model, where it stands, and when it validates and saves."""

    def __init__(
        self,
        config: Config,
        run: Path,
        data: Data,
        device: torch.device,
        watcher: Watcher,
        clock: Callable[[], float],
        began: float,
    ) -> None:
        self.config, self.folder, self.data, self.watcher = config, run, data, watcher
        self.valid = evenly(data.valid, config.train.valid_sentences)
        torch.manual_seed(config.train.seed)
        self.model = Transformer(config.model).to(device)
        self.optimizer = make_optimizer(self.model, config.train)
        self.translator = Translator(TorchEngine(self.model), data.subwords, config)
        self.state = self._restore()
        steps = config.train.steps or PAPER_STEPS
        self.pace = config.train.pace or even_pace(config.train.warmup_steps, steps)
        if config.train.budget_s is not None and self.state.pace is not None:
            self.pace, steps = self.state.pace, last_step(self.state.pace)
        self.total_steps = steps
        # Until they are known: what a look at the validation text and a checkpoint take.
        self.valid_s, self.save_s = (config.train.budget_s or 0.0) * _GUESS, 0.0
        self.brevity = 1.0  # how much shorter translations will be that end when they should
        self.pacer = None if config.train.budget_s is None else Pacer(config.train.budget_s)
        self.log = MetricsLog(run, self.state.step)
        self.meter = Meter(
            clock,
            elapsed_s=self.state.elapsed_s + clock() - began,
            step=self.state.step,
            loss_sum=self.state.loss_sum,
            n_tokens=self.state.n_tokens,
        )

    def run(self, stop: Stop) -> bool:
        """Trains to the end; False if it was stopped on request, after saving."""
        with closing(prefetch(self._batches())) as batches:
            return self._run(batches, stop)

    def _run(self, batches: Iterable[tuple[int, int, Batch]], stop: Stop) -> bool:
        stream = updates(
            self.model, self._placed(batches), self.optimizer, self._lr, self.config.train,
            pad_id=self.config.model.pad_id, done=self.state.step,
        )  # fmt: skip
        with closing(stream):
            return self._follow(stream, stop)

    def _follow(self, stream: Iterator[Update], stop: Stop) -> bool:
        config, state = self.config.train, self.state
        stop.is_heeded = True
        while not self._is_done() and not stop.is_requested:
            update = next(stream)
            state.step = update.step
            self.meter.add(update.loss, update.n_tgt_tokens)
            self._keep_pace()
            is_last = state.step == self.total_steps
            if state.step % config.log_every == 0 or is_last:
                self._report(update)
            if self.valid and (state.step % config.valid_every == 0 or is_last):
                with self.meter.paused() as pause:
                    self._validate()
                self.valid_s = pause.length_s * self.brevity
            if self.is_scheduled(state.step) or state.step == state.best_step or self._is_done():
                with self.meter.paused() as pause:
                    self._save()
                self.save_s = pause.length_s
        stop.is_heeded = False
        if not self._is_done():
            self._save()
        elif state.step < self.total_steps:
            self.watcher.note(f"no better in {state.n_worse} validations: training ends at step {state.step}")
        return self._is_done()

    def _keep_pace(self) -> None:
        """Under a budget: now and then, sets the last step to where the time will be up."""
        if self.pacer is None:
            return
        step, config = self.state.step, self.config.train
        n_valid, n_saves = (
            self.total_steps // every - step // every for every in (config.valid_every, config.save_every)
        )
        # At the end come a look at the last weights and a beam search, or several, which take longer.
        n_at_end = _LOOKS_AT_END + config.tune_search * (len(PENALTIES) - 1) * _LOOKS_PER_PENALTY
        spared_s = self.valid_s * (n_valid + n_at_end) + self.save_s * n_saves + _CARD_S
        end = self.pacer.look(step, self.meter.elapsed(), self.meter.paused_s, spared_s)
        if end is not None:
            self.state.pace = self.pace = change_pace(self.pace, step, end)
            self.total_steps = last_step(self.pace)

    def _restore(self) -> State:
        """Takes up the latest checkpoint, or else the weights to begin with."""
        saved = files.checkpoints(self.folder)
        if not saved:
            if self.config.train.init is not None:
                load_weights(self.model, Path(self.config.train.init) / files.WEIGHTS)
            elif self.config.train.embeddings == "text":
                begin_from_text(self.model, self.data.pairs)
            return State()
        folder = saved[max(saved)]
        values = files.load_state(folder)
        try:
            later: Record = {"pace": None, "curve": []}  # which checkpoints did not have from the start
            state = State(**{name: {**later, **values}[name] for name in asdict(State())})
            tensors = load_tensors(folder / files.TRAINING)
            load_weights(self.model, folder / files.WEIGHTS)
            restore_optimizer(self.model, self.optimizer, tensors, state.step)
        except KeyError as error:
            raise ModelError(f"{folder} lacks {error}", hint="delete it to go on from the one before") from None
        self.watcher.note(f"going on from step {state.step:,}")
        return state

    def _batches(self) -> Iterator[tuple[int, int, Batch]]:
        """Batches without end from where the run stands, each with the place in the text after it."""
        subwords, epoch, skip = self.data.subwords, self.state.epoch, self.state.batch
        seed, p = self.config.train.seed, self.config.tokens.dropout
        unmerging = Unmerging(subwords, p) if p > 0 else None
        while True:
            order = epoch_batches(self.data.pairs, self.config.batches, seed=seed, epoch=epoch, skip=skip)
            for number, indices in enumerate(order, skip + 1):
                respell: Callable[[list[Ids]], list[Ids]] = list
                if unmerging is not None:  # by its place in the run alone: a run taken up again sees the same
                    respell = partial(unmerging, rng=np.random.default_rng([seed, epoch, number]))
                ids = {"pad_id": subwords.pad_id, "bos_id": subwords.bos_id}
                yield epoch, number, make_batch(self.data.pairs, indices, **ids, respell=respell)
            epoch, skip = epoch + 1, 0

    def _placed(self, batches: Iterable[tuple[int, int, Batch]]) -> Iterator[Batch]:
        """The batches, keeping account of the place in the text as they are used; some of them turned around."""
        subwords, state = self.data.subwords, self.state
        for state.epoch, state.batch, batch in batches:
            is_both_ways = share_done(state.step + 1, self.pace) < self.config.train.both_ways
            if is_both_ways and (state.epoch + state.batch) % 2 == 0:
                yield batch.turned(pad_id=subwords.pad_id, bos_id=subwords.bos_id)
            else:
                yield batch

    def _lr(self, step: int) -> float:
        return learning_rate(
            step, self.config.train, d_model=self.config.model.d_model, total_steps=self.total_steps, pace=self.pace
        )

    def _is_done(self) -> bool:
        patience = self.config.train.patience
        is_out_of_patience = patience is not None and self.state.n_worse >= patience
        return self.state.step >= self.total_steps or is_out_of_patience

    def is_scheduled(self, step: int) -> bool:
        """Whether a checkpoint of this step counts for averaging: those of an interruption do not."""
        return step % self.config.train.save_every == 0 or step == self.total_steps

    def _report(self, update: Update) -> None:
        progress = self.meter.read(update.step, update.lr, self.total_steps, self.state.epoch + 1, self.state.last_bleu)
        if self.config.train.budget_s is not None:
            progress = replace(progress, eta_s=max(0.0, self.config.train.budget_s - progress.elapsed_s))
        self.log.write(
            {
                "step": progress.step,
                "epoch": progress.epoch,
                "loss": round(progress.loss, 6),
                "lr": progress.lr,
                "grad_norm": round(update.grad_norm, 6),
                "tokens_per_s": round(progress.tokens_per_s, 1),
                "elapsed_s": round(progress.elapsed_s, 1),
            }
        )
        self.watcher.progress(progress)

    def _validate(self) -> None:
        state = self.state
        loss, value = self.validation_scores()
        is_best = (value, -loss) > (state.best_bleu, -state.best_loss)
        state.last_bleu, state.n_worse = value, 0 if is_best else state.n_worse + 1
        if is_best:
            state.best_step, state.best_bleu, state.best_loss = state.step, value, loss
            save_tensors(self.folder / files.WEIGHTS, self.model.state_dict())
        state.curve.append([share_done(state.step, self.pace), loss, value])
        final_loss, final_bleu = self._forecast()
        record: Record = {
            "step": state.step,
            "valid_loss": round(loss, 6),
            "valid_perplexity": round(perplexity(loss), 4),
            "valid_bleu": round(value, 4),
            "elapsed_s": round(self.meter.elapsed(), 1),
        }
        for name, expected in (("expected_loss", final_loss), ("expected_bleu", final_bleu)):
            if expected is not None:
                record[name] = [round(number, 4) for number in expected]
        self.log.write(record)
        self.watcher.validated(Validation(state.step, loss, value, is_best, final_loss, final_bleu))

    def _forecast(self) -> tuple[Forecast | None, Forecast | None]:
        """What loss and BLEU will come to, if the rate falls so that it can be told."""
        if self.config.train.schedule != "linear":
            return None, None
        curve, decays, both_ways = self.state.curve, self.config.train.weight_decay > 0, self.config.train.both_ways
        loss = forecast("loss", [(share, loss) for share, loss, _ in curve], decays=decays, both_ways=both_ways)
        value = forecast("bleu", [(share, value) for share, _, value in curve], decays=decays, both_ways=both_ways)
        return loss and Forecast(*loss), value and Forecast(*value)

    def validation_scores(self) -> tuple[float, float]:
        """Loss, and BLEU of greedy translations, on the validation text."""
        src, tgt = self.valid_texts()
        hypotheses = [translation.text for translation in self.translator.translate(src, beam=1)]
        self.brevity = _brevity(hypotheses, tgt)
        return self.translator.loss(src, tgt), bleu(hypotheses, tgt).score

    def valid_texts(self) -> tuple[list[str], list[str]]:
        return [pair.src for pair in self.valid], [pair.tgt for pair in self.valid]

    def _save(self) -> None:
        """Writes a checkpoint and deletes those no longer wanted."""
        state = self.state
        state.elapsed_s = self.meter.elapsed()
        state.loss_sum, state.n_tokens = self.meter.loss_sum, self.meter.n_tokens
        save_checkpoint(
            files.checkpoint_folder(self.folder, state.step),
            weights=self.model.state_dict(),
            training=optimizer_tensors(self.model, self.optimizer),
            state=asdict(state),
            config=to_toml(self.config),
            subwords=self.folder / files.SUBWORDS,
        )
        self.prune()

    def prune(self) -> None:
        """Keeps the last checkpoints, the best and the current one."""
        saved = files.checkpoints(self.folder)
        scheduled = [step for step in saved if self.is_scheduled(step)]
        keep = {*scheduled[-self.config.train.keep :], self.state.best_step, self.state.step}
        for step, folder in saved.items():
            if step not in keep:
                files.remove_folder(folder)


def _brevity(hypotheses: list[str], references: list[str]) -> float:
    """The length of the references over that of the translations, if they are the shorter.

    A model that has learned little does not know when to stop, so that looking at it takes longer than it will later.
    """
    return min(1.0, sum(map(len, references)) / max(1, sum(map(len, hypotheses))))
