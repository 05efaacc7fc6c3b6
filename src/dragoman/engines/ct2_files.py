"""CTranslate2's files in a run folder: made from its weights when they are first needed, and anew when those change."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.checkpoint.ct2 import write_ct2
from dragoman.checkpoint.folder import WEIGHTS, new_folder, open_weights, write_text
from dragoman.checkpoint.shapes import check_shapes, weight_shapes
from dragoman.engines.ct2_threads import Split, best_split
from dragoman.engines.engine import n_cores
from dragoman.engines.processor import sum_bits
from dragoman.errors import ModelError
from dragoman.model.config import ModelConfig
from dragoman.tokens.shortlist import Shortlist

_STAMP = "made-from.json"
_HASH_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Ct2Files:
    """The files of one precision."""

    folder: Path
    config: ModelConfig
    pieces: list[str]
    precision: Literal["float32", "int8"]
    threads: int | None

    def whole(self) -> Any:
        """A translator that can write every subword."""
        return self._opened(self.precision, "", lambda: None)

    def short(self, path: Path) -> Any:
        """A translator that writes what is on the shortlist in this file."""
        return self._opened(
            f"{self.precision}-short", _hash(path), lambda: Shortlist.load(path, len(self.pieces)).usual.tolist()
        )

    def _opened(self, name: str, of: str, tgt_ids: Callable[[], list[int] | None]) -> Any:
        kept, weights = self.folder / "ct2" / name, self.folder / WEIGHTS
        bits = sum_bits() if self.precision == "int8" else None
        described = hashlib.sha256(repr((self.config, self.pieces, bits, of)).encode()).hexdigest()
        if not _is_current(kept, weights, described):
            files = self.config, _read(weights, self.config), self.pieces, bits, tgt_ids()
            try:
                shutil.rmtree(kept, ignore_errors=True)
                with new_folder(kept) as part:
                    write_ct2(part, *files)
                    write_text(part / _STAMP, json.dumps(_stamp(weights, described)) + "\n")
            except OSError:  # a folder that may not be written to
                with tempfile.TemporaryDirectory() as scratch:
                    write_ct2(Path(scratch), *files)
                    return self._translator(Path(scratch), is_kept=False)
        try:
            return self._translator(kept)
        except RuntimeError as error:
            raise ModelError(f"{kept} cannot be read ({error})", hint="delete it: it will be made again") from None

    def _translator(self, path: Path, *, is_kept: bool = True) -> Any:
        import ctranslate2

        n_threads = self.threads or n_cores()

        def opened(split: Split) -> Any:
            inter, intra = split
            return ctranslate2.Translator(
                str(path),
                compute_type=self.precision,
                inter_threads=inter,
                intra_threads=intra,
                max_queued_batches=-1,
            )

        return opened(best_split(path, n_threads, opened, self.pieces) if is_kept else (n_threads, 1))


def _read(path: Path, config: ModelConfig) -> dict[str, Any]:
    """The weights of a run folder as numpy arrays."""
    with open_weights(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    check_shapes(path, {name: value.shape for name, value in tensors.items()}, weight_shapes(config))
    return tensors


def _is_current(kept: Path, weights: Path, described: str) -> bool:
    """Whether the files were made from these weights: the same size and time, or else the same bytes."""
    try:
        stamp = json.loads((kept / _STAMP).read_text(encoding="utf-8"))
        status = weights.stat()
    except (OSError, ValueError):
        return False
    if stamp.get("described") != described:
        return False
    if (stamp.get("size"), stamp.get("time")) == (status.st_size, status.st_mtime_ns):
        return True
    return bool(stamp.get("hash") == _hash(weights))


def _stamp(weights: Path, described: str) -> dict[str, Any]:
    status = weights.stat()
    return {"size": status.st_size, "time": status.st_mtime_ns, "hash": _hash(weights), "described": described}


def _hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()
