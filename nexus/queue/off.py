"""Nobody works: everything stays pending."""

from __future__ import annotations

from uuid import UUID

from nexus.queue import Queue


class Off(Queue):
    workers_look = True

    def tell(self, media_id: UUID, request_id: str | None) -> bool:  # noqa: ARG002
        return False

    def idle(self) -> bool:
        return False
