"""What the server counts, in Prometheus' format."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        requests = Counter("dragoman_requests", "Requests answered", ["path", "status"], registry=self.registry)
        seconds = Histogram(
            "dragoman_request_seconds", "From the head of a request to the end of its answer", ["path"],
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60), registry=self.registry,
        )  # fmt: skip
        self.requests, self.seconds = (
            cache(requests.labels),
            cache(seconds.labels),
        )  # finding them takes longer than counting
        self.chars = Counter("dragoman_characters", "Characters translated", ["pair"], registry=self.registry)
        self.batch_sentences = Histogram(
            "dragoman_batch_sentences", "Sentences translated together", ["pair"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=self.registry,
        )  # fmt: skip
        self.batch_seconds = Histogram(
            "dragoman_batch_seconds", "Time to translate a batch", ["pair"], registry=self.registry
        )

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """A number that is read when it is asked for."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def page(self) -> bytes:
        return generate_latest(self.registry)
