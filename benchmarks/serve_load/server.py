"""A server in a process of its own, and what the system says of it and of those of its models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COMMAND = [sys.executable, "-c", "from dragoman.cli.main import main; main()", "serve"]


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def cpu_s(self) -> float:
        """Processor time so far, of all threads."""
        fields = [(process / "stat").read_text().rpartition(")")[2].split() for process in self._processes()]
        return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        """Resident memory now, what two of them share counted twice."""
        found = [re.search(r"VmRSS:\s+(\d+)", (process / "status").read_text()) for process in self._processes()]
        return sum(int(each[1]) / 1024 for each in found if each)

    def _processes(self) -> list[Path]:
        own = Path(f"/proc/{self.process.pid}")
        children = (own / "task" / str(self.process.pid) / "children").read_text().split()
        return [own, *(Path(f"/proc/{child}") for child in children)]


@contextmanager
def started(model: Path, folder: Path, *flags: str) -> Iterator[Server]:
    """A server of the English-German model; it must end well."""
    log = folder / f"serve-{time.monotonic_ns()}.log"
    with log.open("wb") as err:
        process = subprocess.Popen(
            [*_COMMAND, "--model", f"en-de={model}", "--port", "0", "--files", str(log.with_suffix(".files")), *flags],
            stderr=err,
        )
    try:
        while not (found := re.search(r" at http://127\.0\.0\.1:(\d+)\n", log.read_text())):
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        yield Server(process, int(found[1]))
        process.terminate()
        code = process.wait(120)
        if code:
            raise SystemExit(f"the server ended with {code}")
    finally:
        process.kill()
        process.wait()
