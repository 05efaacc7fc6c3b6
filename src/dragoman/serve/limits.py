"""What the server lets in, and for how long."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dragoman.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes and times beyond which a request is refused; each refusal has its own status code."""

    max_chars: int = 50_000  # of all texts of a request
    max_texts: int = 1000  # in a list
    max_body_bytes: int = 1 << 20
    max_file_bytes: int = 8 << 20
    max_queue: int = 1024  # sentences that wait for the model; a request that finds none waiting is always taken
    max_batch: int = 64  # sentences translated together
    max_files: int = 4  # files translated at a time
    max_held_bytes: int = 256 << 20  # of all bodies that are being received or worked on
    max_connections: int = 8000  # beyond, those that wait for a request are closed, the oldest first
    timeout_s: float = 60.0  # for a request, once it has been received
    file_timeout_s: float = 1800.0  # the same of a file
    header_timeout_s: float = 10.0  # until the head of a request is complete
    body_timeout_s: float = 30.0  # until its body is, and the longest that a client may not read its answer
    keep_files_s: float = 3600.0  # a translated file can be fetched
    requests_per_minute: int = 0  # of one key or address; 0: any number

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_too_small = value < 0 if field.name == "requests_per_minute" else value <= 0
            if is_too_small:
                raise ConfigError(f"{field.name}={value} lets nothing in", hint="raise it")
