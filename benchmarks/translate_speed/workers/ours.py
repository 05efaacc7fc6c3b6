"""Dragoman, through `dragoman.load` and `translate`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import dragoman
from benchmarks.translate_speed.workers.protocol import Output, RefusedError, Settings, System, Task, work
from dragoman.memory import keep_freed_memory


def build(task: Task, threads: int, settings: Settings) -> System:
    """`settings` are those of `load`. The cores it may use tell it the number of threads.

    For the whole text it is told how much there is to translate, as `dragoman translate FILE` does, and the process
    handles memory as that command's does; for single sentences it is loaded anew, without the former.
    """
    keep_freed_memory()
    try:
        many = dragoman.load(task.run, **settings, n_sentences=len(task.sentences))
    except dragoman.DragomanError as error:
        raise RefusedError(error.message) from None

    @functools.cache
    def single() -> dragoman.Translator:
        return dragoman.load(task.run, **settings)

    def translated(translator: dragoman.Translator, sentences: Sequence[str]) -> list[Output]:
        return [Output(one.text, len(one.tokens)) for one in translator.translate(sentences, beam=task.beam)]

    return System(
        dragoman.__version__,
        lambda sentences: translated(many, sentences),
        lambda sentence: translated(single(), [sentence])[0],
        type(many.engine).__name__,
    )


if __name__ == "__main__":
    work(build)
