"""Files that were sent to be translated, and their translations until somebody has fetched them.

The answer to a file is sent when its translation is on the disk under its final name: a client either gets an address
that still works after the server was killed and started again, or no answer at all, which it sees as an error. What a
kill leaves half-written is deleted at the next start.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from pathlib import Path

from dragoman.checkpoint.folder import write_atomically
from dragoman.errors import ConfigError
from dragoman.serve.limits import Limits
from dragoman.serve.refusals import Refusal
from dragoman.serve.service import Service

FORMATS = {".txt": "text", ".html": "html", ".htm": "html"}
_ID_CHARS = 32
_NAME = re.compile(rf"[0-9a-f]{{{_ID_CHARS}}}\.[^/\\\x00]+")
_LONGEST_NAME = 100  # characters of a client's file name that are kept


class Files:
    """The folder of translated files."""

    def __init__(self, folder: Path, service: Service, limits: Limits) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for part in folder.glob(".*.part"):
                part.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(
                f"files cannot be kept in {folder} ({error.strerror})", hint="name another folder with --files"
            ) from None
        self._folder, self._service, self._limits = folder, service, limits
        self._n_under_way = 0

    async def translated(self, name: str, content: bytes, src: str, tgt: str) -> str:
        """Translates a file; the name under which it can be fetched."""
        self.forget_old()
        ending = Path(name).suffix.lower()
        if ending not in FORMATS:
            raise Refusal(400, f"Invalid request: file format not supported; there are {', '.join(FORMATS)}")
        if len(content) > self._limits.max_file_bytes:
            raise Refusal(413, f"the file is larger than {self._limits.max_file_bytes:,} bytes")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refusal(400, "Invalid request: the file is not UTF-8") from None
        if src == "auto":
            src = self._service.detected([text])[0][0]
        model = None if src == tgt and src in self._service.languages else self._service.model_for(src, tgt)
        if self._n_under_way >= self._limits.max_files:
            raise Refusal(503, "too many files are being translated", retry_after_s=10)
        self._n_under_way += 1
        try:
            found = text if model is None else await self._service.long_text(model, text, FORMATS[ending])
        finally:
            self._n_under_way -= 1
        kept = f"{secrets.token_hex(_ID_CHARS // 2)}.{_shown(name, tgt)}"
        await asyncio.to_thread(write_atomically, self._folder / kept, lambda part: part.write_bytes(found.encode()))
        return kept

    def find(self, name: str) -> tuple[Path, str]:
        """The path of a translated file, and the name to give it."""
        path = self._folder / name
        if not _NAME.fullmatch(name) or not path.is_file() or self._is_old(path):
            raise Refusal(404, "there is no such file, or it was kept no longer")
        return path, name[_ID_CHARS + 1 :]

    def forget_old(self) -> None:
        """Deletes what was kept for long enough."""
        for path in self._folder.iterdir():
            if _NAME.fullmatch(path.name) and self._is_old(path):
                path.unlink(missing_ok=True)

    def _is_old(self, path: Path) -> bool:
        try:
            return time.time() - path.stat().st_mtime > self._limits.keep_files_s
        except FileNotFoundError:
            return True


def _shown(name: str, tgt: str) -> str:
    """The name of the translation of a file: notes.txt becomes notes_de.txt, and nothing in it leads elsewhere."""
    path = Path(re.sub(r"[/\\\x00-\x1f]", "_", name))
    stem = path.stem.encode("utf-8", "replace").decode()[:_LONGEST_NAME].strip(". ") or "file"
    return f"{stem}_{tgt}{path.suffix.lower()}"
