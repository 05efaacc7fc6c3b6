"""What is measured: add a line for another variant of ours, and a worker for another system."""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    name: str
    environment: str  # of benchmarks/requirements; "ours" is the one that is running
    worker: str  # the program in workers/
    settings: dict[str, Any]  # what the worker is told, to which its own tuning adds
    is_tuned: bool = False


SYSTEMS = {
    "ours": Entry("**Dragoman**", "ours", "ours", {}),
    "ours-ct2-float32": Entry("Dragoman, ct2 float32", "ours", "ours", {"engine": "ct2", "precision": "float32"}),
    "ours-torch": Entry("Dragoman, torch float32", "ours", "ours", {"engine": "torch", "precision": "float32"}),
    "ours-torch-int8": Entry("Dragoman, torch int8", "ours", "ours", {"engine": "torch", "precision": "int8"}),
    "ctranslate2-int8": Entry("CTranslate2 int8", "ctranslate2", "ctranslate2", {"precision": "int8"}, True),
    "ctranslate2-float32": Entry("CTranslate2 float32", "ctranslate2", "ctranslate2", {"precision": "float32"}, True),
    "huggingface": Entry("Hugging Face", "huggingface", "huggingface", {"kinds": ["float32"]}, True),
    "huggingface-fast": Entry(
        "Hugging Face, bfloat16 or int8", "huggingface", "huggingface", {"kinds": ["bfloat16", "int8"]}, True
    ),
    "fairseq": Entry("fairseq", "fairseq", "fairseq", {}, True),
}
OURS = "ours"
YARDSTICK = "ctranslate2-int8"
REFERENCES = ("ours-torch", "ours-ct2-float32")  # our float32, the first that was measured: what BLEU is held against
HUGGING_FACE = ("huggingface", "huggingface-fast")
