"""For all tests: one thread, so that sums have one order, and property tests that draw the same each time."""

from __future__ import annotations

import torch
from hypothesis import settings

torch.set_num_threads(1)

settings.register_profile("dragoman", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("dragoman")
