"""Nobody works: everything stays pending."""

from __future__ import annotations

from uuid import UUID


class Off:
    workers_look = True

    def announce(self, media_id: UUID, request_id: str | None) -> bool:  # noqa: ARG002
        return False

    def idle(self) -> bool:
        return False
