"""Dragoman with its matrix products in bfloat16."""

from __future__ import annotations

from functools import partial

from benchmarks.train_speed.workers import ours, protocol

if __name__ == "__main__":
    protocol.train(partial(ours.build, precision="bfloat16"))
