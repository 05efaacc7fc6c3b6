"""The end of a run: which weights are used, how well they do, and what is said of them. Part of the composer `run`."""

from __future__ import annotations

from dataclasses import replace

from dragoman.checkpoint import folder as files
from dragoman.checkpoint.average import average_weights
from dragoman.checkpoint.card import write_card
from dragoman.checkpoint.ct2 import suits_ct2
from dragoman.checkpoint.format import load_weights, save_tensors
from dragoman.checkpoint.metrics import Record, read_records
from dragoman.config import to_toml
from dragoman.describe import describe
from dragoman.prepare import ENCODED, check_shortlist
from dragoman.score.metrics import Scores, score
from dragoman.session import PENALTIES, Session
from dragoman.train.forecast import forecast_more
from dragoman.translator import load

_MOST_LOST = 0.01  # nats per target token, about a fifth of a point of BLEU
_MORE_S = 600  # the time of which a run under a budget says what it would give


def finish(run: Session) -> Scores | None:
    """Chooses the weights to use, writes them and the model card, and clears away the encoded text.

    The record that says so comes last: without it, a run that was killed does all of this again.
    """
    run.prune()
    choice, scores, int8_costs = _choose(run), None, None
    save_tensors(run.folder / files.WEIGHTS, run.model.state_dict())
    record: Record = {"step": run.state.step, "final": choice, "elapsed_s": round(run.meter.elapsed(), 1)}
    if run.valid:
        run.watcher.note("scoring the final model by beam search on the validation text")
        scores, texts = _final_scores(run)
        check_shortlist(run.folder, run.data.subwords, run.valid_texts()[0], texts, run.watcher)
        loss = run.translator.loss(*run.valid_texts())
        int8_costs = _check_int8(run, loss)
        record |= {"scores": scores.to_dict(), "loss_of_final": loss, "int8_costs": int8_costs}
        _tell_of_more_time(run, scores.bleu.score)
    _settle(run)
    card = describe(
        run.config, run.data, run.model, name=run.folder.name, choice=choice, scores=scores,
        int8_costs=int8_costs, n_scored=len(run.valid), step=run.state.step, epoch=run.state.epoch,
        elapsed_s=run.meter.elapsed(),
    )  # fmt: skip
    write_card(run.folder, card, read_records(run.folder))
    files.remove_folder(run.folder / ENCODED)
    run.log.write(record)
    return scores


def _choose(run: Session) -> str:
    """Loads the average of the last checkpoints, or the best one if that validates better; says which."""
    saved, state = files.checkpoints(run.folder), run.state
    steps = [step for step in saved if run.is_scheduled(step)][-run.config.train.average :] or [max(saved)]
    run.model.load_state_dict(average_weights([saved[step] for step in steps]))
    name = f"average of {len(steps)} checkpoints, steps {steps[0]} to {steps[-1]}"
    if len(steps) == 1:
        name = f"checkpoint of step {steps[0]}"
    has_landed = run.config.train.schedule == "linear" and steps == [run.total_steps]
    if state.best_step is None or steps == [state.best_step] or has_landed:
        # Where the rate has fallen to zero, BLEU on some sentences is no reason to prefer earlier weights.
        return name
    loss, value = run.validation_scores()
    if (value, -loss) >= (state.best_bleu, -state.best_loss):
        return name
    load_weights(run.model, saved[state.best_step] / files.WEIGHTS)
    return f"best checkpoint, step {state.best_step} (BLEU {state.best_bleu:.2f}; {name}: {value:.2f})"


def _final_scores(run: Session) -> tuple[Scores, list[str]]:
    """Those of the beam search of the settings, or of the one that does best if that is to be found out.

    With the translations they are of.
    """
    src, tgt = run.valid_texts()

    def scored(penalty: float | None) -> tuple[Scores, list[str]]:
        texts = [t.text for t in run.translator.translate(src, length_penalty=penalty)]
        return score(texts, tgt), texts

    if not run.config.train.tune_search:
        return scored(None)
    found = {penalty: scored(penalty) for penalty in PENALTIES}
    best = max(found, key=lambda penalty: found[penalty][0].bleu.score)
    run.watcher.note(
        f"length penalty {best:g} does best: BLEU "
        + ", ".join(f"{scores.bleu.score:.2f} with {penalty:g}" for penalty, (scores, _) in found.items())
    )
    run.config = replace(run.config, search=replace(run.config.search, length_penalty=best))
    return found[best]


def _check_int8(run: Session, loss: float) -> float | None:
    """By how much int8 raises the final model's loss; if that is too much, float32 becomes its default."""
    if not suits_ct2(run.config.model):
        return None
    in_bytes = load(run.folder, engine="ct2", precision="int8", threads=1, shortlist=False)
    costs = in_bytes.loss(*run.valid_texts()) - loss
    if not costs <= _MOST_LOST:  # written so that NaN is too much
        run.watcher.note(f"int8 raises the loss by {costs:.3f}: float32 becomes this model's default")
        run.config = replace(run.config, search=replace(run.config.search, int8=False))
    return costs


def _tell_of_more_time(run: Session, value: float) -> None:
    """Under a budget: what more time would have given."""
    budget_s = run.config.train.budget_s
    if budget_s is None or run.config.train.schedule != "linear":
        return
    more = forecast_more([(point[0], point[2]) for point in run.state.curve], budget_s, budget_s + _MORE_S)
    if more is not None:
        low, likely, high = (value + gain for gain in more)
        run.watcher.note(f"{_MORE_S // 60} more minutes would give about BLEU {likely:.1f} ({low:.1f} to {high:.1f})")


def _settle(run: Session) -> None:
    """Lets the settings say how it went, where something was left to be found out on the way.

    They give the same weights then, whatever the machine's speed, and the same translations.
    """
    train = replace(run.config.train, tune_search=False)
    if train.budget_s is not None:
        train = replace(train, steps=run.total_steps, pace=run.pace, budget_s=None)
    files.write_text(run.folder / files.CONFIG, to_toml(replace(run.config, train=train)))
