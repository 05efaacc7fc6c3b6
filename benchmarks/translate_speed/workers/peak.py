"""The machine's matrix-product peaks at this moment, in multiply-adds per second."""

from __future__ import annotations

import argparse

import torch

from benchmarks.peak import float32_peak, int8_peak
from benchmarks.worker import obey, stay_on


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", type=int, nargs="+", required=True)
    args = parser.parse_args()
    stay_on(args.cores)
    torch.set_num_threads(len(args.cores))
    obey({"run": lambda: {"float32": float32_peak(), "int8": int8_peak()}}, {"version": torch.__version__})


if __name__ == "__main__":
    main()
