"""`nexus audit`: who did what, when, and from where."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from nexus.cli import say
from nexus.cli.context import acting_user, connected
from nexus.cli.failures import MISUSED, Refused
from nexus.libraries import audit, catalog
from nexus.libraries.audit import AuditEntry, AuditEvent, AuditFilter


def show_audit_log(
    data_dir: Path | None,
    user: UUID | None,
    library: str | None,
    event: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    with connected(data_dir) as (chosen, sessions), sessions.read() as session:
        viewer = acting_user(chosen, user)
        library_id = None if library is None else catalog.find_own_library(session, viewer, library)
        if library is not None and library_id is None:
            raise Refused(f"You administer no library “{library}”.")
        found = audit.entries(
            session,
            viewer,
            AuditFilter(library_id=library_id, event=None if event is None else _event(event)),
            everything=chosen.is_operator(viewer),
            most=limit,
        )
    for entry in reversed(found):
        _show(entry, as_json=as_json)
    if not found and not as_json:
        say.hint("The audit log has no such entries.")


def _event(name: str) -> AuditEvent:
    if name not in set(AuditEvent):
        raise Refused(f"There is no event of that name. Choose one of {', '.join(AuditEvent)}.", MISUSED)
    return AuditEvent(name)


def _show(entry: AuditEntry, *, as_json: bool) -> None:
    """One line each, the latest last, as in a log."""
    shown = {name: None if value is None else str(value) for name, value in entry._asdict().items()}
    if as_json:
        say.as_json({**shown, "id": entry.id, "at": entry.at.isoformat()})
        return
    who, where = shown["user_id"] or "nobody", shown["address"] or "this machine"
    said = [f"{name}={shown[name]}" for name in ("library_id", "subject_id", "about") if shown[name]]
    say.line(f"{entry.at:%Y-%m-%d %H:%M:%S}", entry.event.value, who, where, *said)
