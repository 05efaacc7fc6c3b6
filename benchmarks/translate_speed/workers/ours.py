"""Dragoman, through `dragoman.load` and `translate`."""

from __future__ import annotations

from collections.abc import Sequence

import dragoman
from benchmarks.translate_speed.workers.protocol import Output, RefusedError, Settings, System, Task, work
from dragoman.memory import keep_freed_memory


def build(task: Task, threads: int, settings: Settings) -> System:
    """`settings` are those of `load`. The cores it may use tell it the number of threads.

    The process handles memory as that of `dragoman translate` does.
    """
    keep_freed_memory()
    try:
        translator = dragoman.load(task.run, **settings)
    except dragoman.DragomanError as error:
        raise RefusedError(error.message) from None

    def translated(sentences: Sequence[str]) -> list[Output]:
        return [Output(one.text, len(one.tokens)) for one in translator.translate(sentences, beam=task.beam)]

    return System(
        dragoman.__version__,
        translated,
        lambda sentence: translated([sentence])[0],
        type(translator.engine).__name__,
    )


if __name__ == "__main__":
    work(build)
