"""JoeyNMT's commands: `python -m benchmarks.time_to_quality.launch.joeynmt {train,test} CONFIG FLAGS`."""

from __future__ import annotations

import signal
from typing import Any

import torch

from benchmarks.old_packages import NOT_FOR_JOEYNMT, leave_out


class _Plateau(torch.optim.lr_scheduler.ReduceLROnPlateau):
    """Takes the argument `verbose`, which torch no longer has and JoeyNMT sets to False."""

    def __init__(self, *args: Any, verbose: bool, **options: Any) -> None:
        super().__init__(*args, **options)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to JoeyNMT a Ctrl-C, on which it saves and ends
    leave_out(*NOT_FOR_JOEYNMT)
    torch.optim.lr_scheduler.ReduceLROnPlateau = _Plateau
    from joeynmt.__main__ import main

    main()
