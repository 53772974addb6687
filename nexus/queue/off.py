"""Nobody works: everything stays pending."""

from __future__ import annotations

from nexus.queue import Queue, Work


class OffQueue(Queue):
    workers_look = True
    workers = "none, everything stays queued (NEXUS_EXTRACTION=off)"

    def tell(self, work: Work) -> bool:  # noqa: ARG002
        return False
