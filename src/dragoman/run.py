"""Composer for training: from text files to a run folder that holds a translator."""

from __future__ import annotations

import math
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from dragoman._version import __version__
from dragoman.batches.batch import Batch, make_batch, prefetch
from dragoman.batches.sampler import epoch_batches
from dragoman.checkpoint import folder as files
from dragoman.checkpoint.average import average_weights
from dragoman.checkpoint.card import Card, write_card
from dragoman.checkpoint.format import (
    load_tensors,
    load_weights,
    random_tensors,
    restore_random,
    save_checkpoint,
    save_tensors,
)
from dragoman.checkpoint.metrics import MetricsLog, read_records
from dragoman.config import Config, changed_settings, load_config, to_toml
from dragoman.errors import ConfigError, DragomanError, ModelError
from dragoman.model.transformer import Transformer
from dragoman.prepare import ENCODED, Data, prepare
from dragoman.score.likelihood import perplexity
from dragoman.score.metrics import Scores, bleu, score
from dragoman.train.config import PAPER_STEPS
from dragoman.train.loop import Update, updates
from dragoman.train.optim import make_optimizer, optimizer_tensors, restore_optimizer
from dragoman.train.schedule import learning_rate
from dragoman.translator import Translator, pick_device
from dragoman.watch import Meter, Stop, Validation, Watcher


@dataclass(frozen=True, slots=True)
class Outcome:
    """How training ended."""

    run: Path
    step: int
    is_finished: bool  # False: stopped on request, to be resumed
    elapsed_s: float  # over all sessions of the run
    scores: Scores | None = None  # of the final model, by beam search on the validation text


def train(
    config: Config,
    out: str | Path,
    *,
    watcher: Watcher,
    resume: bool = False,
    stop: Stop | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Trains a translator into the folder `out`, or goes on with the one begun there."""
    run = Path(out)
    device = pick_device(config.train.device)
    if config.train.threads is not None:
        torch.set_num_threads(config.train.threads)
    if resume:
        changed = _check_resumable(config, run)
        records = read_records(run)
        if records and "final" in records[-1] and not changed:
            watcher.note(f"{run} is finished: {records[-1]['step']} steps; give more --steps to go on")
            return Outcome(run, records[-1]["step"], True, records[-1]["elapsed_s"])
    else:
        config = _begin(config, run)
    try:
        data, config = prepare(config, run, watcher)
        config = replace(config, train=replace(config.train, steps=_total_steps(config, data), epochs=None))
        files.write_text(run / files.CONFIG, to_toml(config))
        training = _Training(config, run, data, device, watcher, clock)
    except DragomanError:
        if not resume:
            shutil.rmtree(run)  # nothing was trained: a mistake in what was given leaves no half-made run behind
        raise
    is_finished = training.run(stop or Stop())
    scores = training.finish() if is_finished else None
    training.log.close()
    return Outcome(run, training.state.step, is_finished, training.meter.elapsed(), scores)


def _begin(config: Config, run: Path) -> Config:
    """Makes the run folder with its settings in it, so that a kill at any instant leaves something to resume."""
    if run.exists() and not run.is_dir():
        raise ConfigError(f"{run} is a file", hint="give --out a folder")
    unfinished = f".{files.CONFIG}.part"  # all there is of a run that was killed in its first moment
    if run.is_dir() and any(path.name != unfinished for path in run.iterdir()):
        raise ConfigError(f"{run} is not empty", hint="give --resume to go on with the run there, or another --out")
    if config.text.src is None and config.text.pairs is None:
        raise ConfigError("there is no training text", hint="give --src and --tgt, or --pairs")
    if config.train.init is not None:
        shape = load_config(Path(config.train.init)).model
        config = replace(config, model=replace(shape, dropout=config.model.dropout))
    run.mkdir(parents=True, exist_ok=True)
    files.write_text(run / files.CONFIG, to_toml(config))
    return config


def _check_resumable(config: Config, run: Path) -> list[str]:
    """The settings that were changed since; raises if the run cannot go on with them."""
    if not (run / files.CONFIG).is_file():
        raise ModelError(f"there is no run to resume in {run}", hint="leave --resume out to begin one")
    # The vocabulary decides these two, whatever a preset says of them.
    derived = ("model.vocab_size", "model.pad_id")
    changed = [name for name in changed_settings(load_config(run), config) if name not in derived]
    for name in changed:
        if not name.startswith(("train.", "search.")) or name in ("train.seed", "train.init"):
            raise ConfigError(f"{name} cannot change in a run that goes on", hint="begin a new run for that")
    files.remove_leftovers(run)
    return changed


def _total_steps(config: Config, data: Data) -> int:
    """Updates to make: as many as were asked for, or as the first epoch would take, times the epochs."""
    if config.train.epochs is None:
        return config.train.steps or PAPER_STEPS
    n_batches = sum(1 for _ in epoch_batches(data.pairs, config.batches, seed=config.train.seed, epoch=0))
    return max(1, config.train.epochs * n_batches // config.train.accumulate)


@dataclass(slots=True)
class _State:
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


class _Training:
    """One run while it trains: the model, where it stands, and when it validates and saves."""

    def __init__(
        self, config: Config, run: Path, data: Data, device: torch.device, watcher: Watcher, clock: Callable[[], float]
    ) -> None:
        self.config, self.folder, self.data, self.watcher = config, run, data, watcher
        self.total_steps = config.train.steps or PAPER_STEPS
        torch.manual_seed(config.train.seed)
        self.model = Transformer(config.model).to(device)
        self.optimizer = make_optimizer(self.model)
        self.translator = Translator(self.model, data.subwords, config)
        self.state = self._restore()
        self.log = MetricsLog(run, self.state.step)
        self.meter = Meter(
            clock,
            elapsed_s=self.state.elapsed_s,
            step=self.state.step,
            loss_sum=self.state.loss_sum,
            n_tokens=self.state.n_tokens,
        )

    def run(self, stop: Stop) -> bool:
        """Trains to the end; False if it was stopped on request, after saving."""
        with closing(prefetch(self._batches())) as batches:
            return self._run(batches, stop)

    def _run(self, batches: Iterable[tuple[int, int, Batch]], stop: Stop) -> bool:
        config, state = self.config.train, self.state
        stream = updates(
            self.model, self._placed(batches), self.optimizer, self._lr, config,
            pad_id=self.config.model.pad_id, done=state.step,
        )  # fmt: skip
        stop.is_heeded = True
        while not self._is_done() and not stop.is_requested:
            update = next(stream)
            state.step = update.step
            self.meter.add(update.loss, update.n_tgt_tokens)
            is_last = state.step == self.total_steps
            if state.step % config.log_every == 0 or is_last:
                self._report(update)
            with self.meter.paused():
                if self.data.valid and (state.step % config.valid_every == 0 or is_last):
                    self._validate()
                if self._is_scheduled(state.step) or state.step == state.best_step or self._is_done():
                    self._save()
        stop.is_heeded = False
        if not self._is_done():
            self._save()
        elif state.step < self.total_steps:
            self.watcher.note(f"no better in {state.n_worse} validations: training ends at step {state.step}")
        return self._is_done()

    def finish(self) -> Scores | None:
        """Chooses the weights to use, writes them and the model card, and clears away the encoded text.

        The record that says so comes last: without it, a run that was killed does all of this again.
        """
        self._prune()
        choice, scores = self._choose(), None
        save_tensors(self.folder / files.WEIGHTS, self.model.state_dict())
        record = {"step": self.state.step, "final": choice, "elapsed_s": round(self.meter.elapsed(), 1)}
        if self.data.valid:
            self.watcher.note("scoring the final model by beam search on the validation text")
            src, tgt = [pair.src for pair in self.data.valid], [pair.tgt for pair in self.data.valid]
            scores = score([t.text for t in self.translator.translate(src)], tgt)
            record |= {"scores": scores.to_dict(), "loss_of_final": self.translator.loss(src, tgt)}
        write_card(self.folder, self._card(choice, scores), read_records(self.folder))
        files.remove_folder(self.folder / ENCODED)
        self.log.write(record)
        return scores

    def _restore(self) -> _State:
        """Takes up the latest checkpoint, or else the weights to begin with."""
        saved = files.checkpoints(self.folder)
        if not saved:
            if self.config.train.init is not None:
                load_weights(self.model, Path(self.config.train.init) / files.WEIGHTS)
            return _State()
        folder = saved[max(saved)]
        values = files.load_state(folder)
        try:
            state = _State(**{name: values[name] for name in asdict(_State())})
            tensors = load_tensors(folder / files.TRAINING)
            load_weights(self.model, folder / files.WEIGHTS)
            restore_optimizer(self.model, self.optimizer, tensors, state.step)
            restore_random(tensors)
        except KeyError as error:
            raise ModelError(f"{folder} lacks {error}", hint="delete it to go on from the one before") from None
        self.watcher.note(f"going on from step {state.step:,}")
        return state

    def _batches(self) -> Iterator[tuple[int, int, Batch]]:
        """Batches without end from where the run stands, each with the place in the text after it."""
        subwords, epoch, skip = self.data.subwords, self.state.epoch, self.state.batch
        while True:
            order = epoch_batches(
                self.data.pairs, self.config.batches, seed=self.config.train.seed, epoch=epoch, skip=skip
            )
            for number, indices in enumerate(order, skip + 1):
                batch = make_batch(self.data.pairs, indices, pad_id=subwords.pad_id, bos_id=subwords.bos_id)
                yield epoch, number, batch
            epoch, skip = epoch + 1, 0

    def _placed(self, batches: Iterable[tuple[int, int, Batch]]) -> Iterator[Batch]:
        """The batches, keeping account of the place in the text as they are used."""
        for self.state.epoch, self.state.batch, batch in batches:
            yield batch

    def _lr(self, step: int) -> float:
        return learning_rate(step, self.config.train, d_model=self.config.model.d_model, total_steps=self.total_steps)

    def _is_done(self) -> bool:
        patience = self.config.train.patience
        is_out_of_patience = patience is not None and self.state.n_worse >= patience
        return self.state.step >= self.total_steps or is_out_of_patience

    def _is_scheduled(self, step: int) -> bool:
        """Whether a checkpoint of this step counts for averaging: those of an interruption do not."""
        return step % self.config.train.save_every == 0 or step == self.total_steps

    def _report(self, update: Update) -> None:
        progress = self.meter.read(update.step, update.lr, self.total_steps, self.state.epoch + 1, self.state.last_bleu)
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
        loss, value = self._validation_scores()
        is_best = (value, -loss) > (state.best_bleu, -state.best_loss)
        state.last_bleu, state.n_worse = value, 0 if is_best else state.n_worse + 1
        if is_best:
            state.best_step, state.best_bleu, state.best_loss = state.step, value, loss
            save_tensors(self.folder / files.WEIGHTS, self.model.state_dict())
        self.log.write(
            {
                "step": state.step,
                "valid_loss": round(loss, 6),
                "valid_perplexity": round(perplexity(loss), 4),
                "valid_bleu": round(value, 4),
                "elapsed_s": round(self.meter.elapsed(), 1),
            }
        )
        self.watcher.validated(Validation(state.step, loss, value, is_best))

    def _validation_scores(self) -> tuple[float, float]:
        """Loss, and BLEU of greedy translations, on the validation text."""
        src, tgt = [pair.src for pair in self.data.valid], [pair.tgt for pair in self.data.valid]
        hypotheses = [translation.text for translation in self.translator.translate(src, beam=1)]
        return self.translator.loss(src, tgt), bleu(hypotheses, tgt).score

    def _save(self) -> None:
        """Writes a checkpoint and deletes those no longer wanted."""
        state = self.state
        state.elapsed_s = self.meter.elapsed()
        state.loss_sum, state.n_tokens = self.meter.loss_sum, self.meter.n_tokens
        save_checkpoint(
            files.checkpoint_folder(self.folder, state.step),
            weights=self.model.state_dict(),
            training={**optimizer_tensors(self.model, self.optimizer), **random_tensors()},
            state=asdict(state),
            config=to_toml(self.config),
            subwords=self.folder / files.SUBWORDS,
        )
        self._prune()

    def _prune(self) -> None:
        """Keeps the last checkpoints, the best and the current one."""
        saved = files.checkpoints(self.folder)
        scheduled = [step for step in saved if self._is_scheduled(step)]
        keep = {*scheduled[-self.config.train.keep :], self.state.best_step, self.state.step}
        for step, folder in saved.items():
            if step not in keep:
                files.remove_folder(folder)

    def _choose(self) -> str:
        """Loads the average of the last checkpoints, or the best one if that validates better; says which."""
        saved = files.checkpoints(self.folder)
        steps = [step for step in saved if self._is_scheduled(step)][-self.config.train.average :] or [max(saved)]
        average = average_weights([saved[step] for step in steps])
        self.model.load_state_dict(average)
        name = f"average of {len(steps)} checkpoints, steps {steps[0]} to {steps[-1]}"
        if len(steps) == 1:
            name = f"checkpoint of step {steps[0]}"
        if self.state.best_step is None or steps == [self.state.best_step]:
            return name
        loss, value = self._validation_scores()
        if (value, -loss) >= (self.state.best_bleu, -self.state.best_loss):
            return name
        load_weights(self.model, saved[self.state.best_step] / files.WEIGHTS)
        return f"best checkpoint, step {self.state.best_step} (BLEU {self.state.best_bleu:.2f}; {name}: {value:.2f})"

    def _card(self, choice: str, scores: Scores | None) -> Card:
        config, text = self.config, self.config.text
        device = self.model.embedding.weight.device
        n_parameters = sum(parameter.numel() for parameter in self.model.parameters())
        model = config.model
        rows = [] if scores is None else [("BLEU", scores.bleu), ("chrF", scores.chrf), ("TER", scores.ter)]
        return Card(
            name=self.folder.name,
            data=[
                ("training text", text.pairs or f"{text.src} → {text.tgt}"),
                ("training pairs", f"{len(self.data.pairs):,}"),
                ("validation text", text.valid_pairs or f"{text.valid_src} → {text.valid_tgt}"),
                ("validation pairs", f"{len(self.data.valid):,}"),
                ("vocabulary", f"{config.model.vocab_size:,} subwords, SentencePiece BPE with bytes, joint"),
            ],
            model=[
                ("parameters", f"{n_parameters:,}"),
                ("layers", f"{model.n_encoder_layers} encoder, {model.n_decoder_layers} decoder, {model.norm}-norm"),
                ("width", f"d_model {model.d_model}, d_ff {model.d_ff}, {model.n_heads} heads"),
                ("weights", choice),
            ],
            training=[
                ("updates", f"{self.state.step:,} ({self.state.epoch + 1} epochs begun)"),
                ("batch", f"{config.batches.tokens:,} tokens × {config.train.accumulate}"),
                (
                    "time",
                    f"{self.meter.elapsed() / 60:.1f} minutes on {device.type}, {torch.get_num_threads()} threads",
                ),
                ("seed", str(config.train.seed)),
                ("software", f"dragoman {__version__}, torch {torch.__version__}, Python {platform.python_version()}"),
                ("settings", f"all of them in {files.CONFIG}"),
            ],
            scores=[(f"{name}, validation", f"{s.score:.2f}", s.signature) for name, s in rows],
        )
