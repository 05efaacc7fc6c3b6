"""Dragoman with its matrix products in bfloat16."""

from __future__ import annotations

from benchmarks.train_speed.workers import ours

if __name__ == "__main__":
    ours.main("bfloat16")
