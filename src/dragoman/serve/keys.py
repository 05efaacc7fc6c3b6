"""Who may ask, and how often."""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from dragoman.errors import ConfigError

_MOST_KNOWN = 10_000  # keys and addresses whose requests are counted; the one heard of longest ago is forgotten first


class ApiKeys:
    """The keys of a file, one on each line, a name for the log after it if wished; # begins a comment."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the keys in {path} cannot be read ({error})", hint="name a text file") from None
        self._names: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            key, _, name = line.partition("#")[0].strip().partition(" ")
            if key:
                self._names[_digest(key)] = name.strip() or f"line {number}"
        if not self._names:
            raise ConfigError(f"{path} has no keys", hint="write one on each line")

    def name_of(self, key: str) -> str | None:
        """The name of a key, or None. How long it takes says nothing of the keys there are."""
        given, found = _digest(key), None
        for digest, name in self._names.items():
            if hmac.compare_digest(digest, given):
                found = name
        return found


def _digest(key: str) -> bytes:
    """Of one length for all keys, so that comparing takes the same time."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


class Rate:
    """So many requests a minute for each key or address; as many may come at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # who: requests left, at this time

    def wait_s(self, who: str) -> int:
        """Counts a request; 0, or the seconds until the next one would be let in."""
        if self._per_minute == 0:
            return 0
        now, per_s = self._clock(), self._per_minute / 60
        left, before = self._left.pop(who, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - before) * per_s)
        is_in = left >= 1
        self._left[who] = (left - is_in, now)
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        return 0 if is_in else max(1, math.ceil((1 - left) / per_s))
