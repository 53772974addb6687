"""Counters for Prometheus: requests as they pass, media as the database counts them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import Scope

from nexus import logging
from nexus.db.session import Sessions
from nexus.queue import Queue
from nexus.upkeep import counts

log = logging.get_logger(__name__)


class Metrics:
    """Has a registry of its own, so that two apps in one process don't share their counts."""

    def __init__(self, sessions: Sessions, queue: Queue) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter(
            "nexus_requests", "Requests answered.", (*labels, "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "nexus_request_seconds", "Time to answer a request.", labels, registry=self._registry
        )
        #: The counters of each kind of request. To look them up by their labels takes ten times as long.
        self._of: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(FailedAnnouncements(queue))
        self._registry.register(MediaByStatus(sessions))

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        kind = scope["method"], getattr(scope.get("route"), "path", "unrouted"), status
        if (found := self._of.get(kind)) is None:
            found = self._of[kind] = self._requests.labels(*kind), self._seconds.labels(*kind[:2])
        found[0].inc()
        found[1].observe(seconds)

    def page(self) -> bytes:
        return generate_latest(self._registry)


class MediaByStatus(Collector):
    """Counts in the database at each request for metrics; left out while the database is unavailable."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterable[GaugeMetricFamily]:
        gauge = GaugeMetricFamily("nexus_media", "Media by processing status.", labels=["status"])
        try:
            with self._sessions.read() as session:
                counted = counts.by_status(session)
        except Exception as error:
            log.warning("media_not_counted", reason=type(error).__name__)
            return
        for status, count in counted.items():
            gauge.add_metric([status.value], count)
        yield gauge


class FailedAnnouncements(Collector):
    """Asks the queue, which counts them: most happen in workers, not in requests."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def describe(self) -> Iterable[CounterMetricFamily]:
        return []

    def collect(self) -> Iterable[CounterMetricFamily]:
        yield CounterMetricFamily(
            "nexus_announcements_failed",
            "Announcements of work that failed and were left to the sweep.",
            value=self._queue.failures,
        )
