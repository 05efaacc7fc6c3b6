"""Which part of the model a weight belongs to, from its name alone."""

from __future__ import annotations

from collections.abc import Mapping

_PARTS = (
    "embeddings",
    *(f"{stack} {part}" for stack in ("encoder", "decoder") for part in ("attention", "feed-forward", "norms")),
)


def parameters_by_part(sizes: Mapping[str, int]) -> dict[str, int]:
    """Numbers of parameters by part, in the order of the data, given each weight's name and size."""
    counts = dict.fromkeys(_PARTS, 0)
    for name, size in sizes.items():
        counts[_part(name)] += size
    return counts


def _part(name: str) -> str:
    stack = name.split(".")[0].removesuffix("_norm")
    if stack not in ("encoder", "decoder"):
        return "embeddings"
    if "_norm." in name:
        return f"{stack} norms"
    return f"{stack} feed-forward" if ".feed_forward." in name else f"{stack} attention"
