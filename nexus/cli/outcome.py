"""What became of each thing a command was asked for, shown live, in plain lines or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import UUID

from nexus import urls
from nexus.cli import say
from nexus.command_line import again
from nexus.db.session import Session
from nexus.errors import ProviderBlocked
from nexus.media.queries import View
from nexus.media.waits import reason_of_wait
from nexus.settings import Settings
from nexus.states.media import STAGE_WORDS, Stage


class Result(StrEnum):
    READABLE = "readable"  #: its text is there
    THERE = "already_there"  #: its text was in a library of the user before
    QUEUED = "queued"  #: it waits, and this process can't work on it
    WAITING = "waiting"  #: the command ended before the work did
    FAILED = "failed"  #: it failed, at a stage
    REFUSED = "refused"  #: it was never taken in
    GONE = "gone"  #: somebody deleted it meanwhile


BAD = frozenset({Result.FAILED, Result.REFUSED, Result.GONE})


@dataclass(frozen=True)
class Item:
    """One thing that was asked for."""

    label: str
    media_id: UUID | None = None
    created: bool = False
    #: Whether there was work to do on it when it was asked for.
    due: bool = False


@dataclass(frozen=True)
class EndedItem:
    item: Item
    result: Result
    #: What a person wants to know: the title, or what went wrong.
    detail: str = ""
    view: View | None = None
    code: str | None = None
    #: A command that may help.
    next_step: str = ""

    @property
    def is_bad(self) -> bool:
        return self.result in BAD

    @property
    def sentence(self) -> str:
        if self.result is Result.FAILED and self.view is not None:
            why = why_failed(self.view, self.code, self.detail)
            return f"{why} Next: {self.next_step}" if self.next_step else why
        return self.detail

    def to_json(self, viewer: UUID) -> dict[str, Any]:
        from nexus.web.api.schemas import MediaOut  # noqa: PLC0415 the models of the API are slow to load

        stage = self.view.row.failure_stage if self.view is not None else None
        error = {"stage": stage, "code": self.code, "message": self.detail} if self.is_bad else None
        return {
            "url": self.item.label,
            "media_id": None if self.item.media_id is None else str(self.item.media_id),
            "created": self.item.created,
            "result": self.result.value,
            "error": error,
            "media": None if self.view is None else MediaOut.of(self.view, viewer).model_dump(mode="json"),
        }


def why_failed(view: View, code: str | None, message: str) -> str:
    return f"{STAGE_WORDS[view.row.failure_stage or Stage.OTHER]}: {message} ({code})"


def waiting_of(view: View) -> str:
    """Return which site an item waits for, and until when by this machine's clock; nothing if it does not wait."""
    if view.waiting_until is None or view.waiting_until <= datetime.now(UTC):
        return ""
    return f"waiting for {urls.host_of(view.row.canonical_url)} until {view.waiting_until.astimezone():%H:%M}"


def blocked_of(session: Session, view: View) -> str:
    """Return what somebody should know whose item waits because its site blocks this address; nothing otherwise."""
    if not waiting_of(view) or reason_of_wait(session, view.row.id) != ProviderBlocked.code:
        return ""
    host, until = urls.host_of(view.row.canonical_url), view.waiting_until or session.now
    return f"{host} blocks this address at the moment. Nexus asks again at {until.astimezone():%H:%M}."


def bring_command(chosen: Settings, view: View) -> str:
    """Return how somebody brings the transcript of an item that Nexus can't get."""
    return again(chosen, f"transcript {view.row.id} FILE")


class Progress(Protocol):
    """Shows what happens."""

    #: Whether what it shows of an end says why something failed.
    tells_failures: bool

    def changed(self, item: Item, view: View, minute: str) -> None: ...
    def ended(self, ended: EndedItem) -> None: ...
    def note(self, sentence: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class _Quiet:
    tells_failures = True

    def note(self, sentence: str) -> None:
        say.hint(sentence)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Lines(_Quiet):
    """For a pipe: the result, the id, the URL and details, separated by tabs."""

    def changed(self, item: Item, view: View, minute: str) -> None:
        more = [sentence] if (sentence := minute or waiting_of(view)) else []
        say.line(view.row.processing_status, item.media_id, item.label, *more)

    def ended(self, ended: EndedItem) -> None:
        say.line(ended.result.value, ended.item.media_id or "-", ended.item.label, ended.sentence)


class Json(_Quiet):
    """One object per URL, as each ends."""

    def __init__(self, viewer: UUID) -> None:
        self._viewer = viewer

    def changed(self, item: Item, view: View, minute: str) -> None:
        """Show nothing before the end."""

    def ended(self, ended: EndedItem) -> None:
        say.as_json(ended.to_json(self._viewer))


def progress(total: int, viewer: UUID, *, as_json: bool) -> Progress:
    if as_json:
        return Json(viewer)
    if not say.is_to_a_person():
        return Lines()
    from nexus.cli.screen import Screen  # noqa: PLC0415 rich is slow to load, and a pipe does not need it

    return Screen(total)
