"""The float32 matrix-product peak of the machine at this moment, in operations per second."""

from __future__ import annotations

import torch

from benchmarks.peak import float32_peak
from benchmarks.train_speed.workers.protocol import parse_arguments
from benchmarks.worker import obey


def main() -> None:
    parse_arguments()

    def run(n_repeats: int) -> dict[str, float]:
        return {"flops": max(2 * float32_peak() for _ in range(n_repeats))}  # a multiply-add is two operations

    obey({"run": run}, {"version": torch.__version__, "torch": torch.__version__, "parameters": 0})


if __name__ == "__main__":
    main()
