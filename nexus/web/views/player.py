"""The player of an item: what it plays, from where, and where its listener is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import quote, urlsplit

from nexus.errors import TranscriptUnavailable, tree
from nexus.fetch.addresses import is_public
from nexus.fetch.guard import parse_ip
from nexus.media.history import KnownEvent
from nexus.media.queries import View
from nexus.media.recordings.facts import RecordingRow
from nexus.media.recordings.heard import HeardSoFar
from nexus.media.recordings.sound import SoundPlace
from nexus.media.recordings.timings import TranscribedSoFar
from nexus.states.media import Kind
from nexus.transcribe.speech import ANY, SpeechModel, missing_speech
from nexus.web.views.filters import clock_time

#: This near its end, a recording counts as heard, and starts again from the beginning.
ENDED_SECONDS = 15.0
BLOCKED = "E_PROVIDER_BLOCKED"
#: After one of these errors, a retry transcribes the recording if there is a model for that.
UNTRANSCRIBED = frozenset(error.code for error in tree(TranscriptUnavailable))
SPEEDS = (0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3)


class Frame(NamedTuple):
    """A player of another site, which is loaded only when its listener asks for it."""

    #: The protocol in which it is spoken to.
    speaks: str
    address: str
    site: str

    @property
    def origin(self) -> str:
        """What the page's policy lets frames come from."""
        found = urlsplit(self.address)
        return f"{found.scheme}://{found.netloc}"


class ShownChapter(NamedTuple):
    seconds: float
    title: str
    time: str


@dataclass(frozen=True)
class ShownPlayer:
    #: Whether Nexus itself passes the sound on; otherwise it is played in the frame.
    plays_file: bool
    is_video: bool
    frame: Frame | None
    seconds: float | None
    #: Where the listener is, and when they were there, in milliseconds.
    heard: float
    heard_at: int
    chapters: list[ShownChapter]
    is_queued: bool

    #: What a listener can choose.
    speeds: ClassVar[tuple[float, ...]] = SPEEDS

    @property
    def length(self) -> str:
        return "" if self.seconds is None else clock_time(self.seconds)


def show_player(
    view: View,
    known: RecordingRow | None,
    place: SoundPlace | None,
    heard: HeardSoFar | None,
    *,
    is_queued: bool,
) -> ShownPlayer | None:
    """Return None for an item that has nothing to play here."""
    plays_file = place is not None and _is_file(place)
    frame = None if plays_file else _frame(view, known)
    if not plays_file and frame is None:
        return None
    seconds = known.seconds if known is not None else None
    kind = (place.type or "") if place is not None else ""
    is_video = kind.startswith("video/") or (view.row.kind is Kind.VIDEO and not kind.startswith("audio/"))
    at = 0.0 if heard is None else heard.seconds
    has_ended = seconds is not None and at > max(seconds - ENDED_SECONDS, seconds * 0.9)
    chapters = json.loads(known.chapters) if known is not None else []
    return ShownPlayer(
        plays_file=plays_file,
        is_video=is_video,
        frame=frame,
        seconds=seconds,
        heard=0.0 if has_ended else at,
        heard_at=0 if heard is None else round(heard.at.timestamp() * 1000),
        chapters=[ShownChapter(start, title, clock_time(start)) for start, title in chapters],
        is_queued=is_queued,
    )


def _is_file(place: SoundPlace) -> bool:
    """A playlist of pieces is not a file, and few browsers can play one."""
    return "mpegurl" not in (place.type or "").lower() and ".m3u8" not in (place.url or "").lower()


def _frame(view: View, known: RecordingRow | None) -> Frame | None:
    row = view.row
    # The key of an unlisted video follows its number.
    name = quote((row.provider_id or "").partition("/")[0], safe="")
    if row.provider == "youtube" and name:
        address = f"https://www.youtube-nocookie.com/embed/{name}?enablejsapi=1&playsinline=1&rel=0"
        return Frame("youtube", address, "YouTube")
    if row.provider == "vimeo" and name:
        private = _private_part(known)
        return Frame("vimeo", f"https://player.vimeo.com/video/{name}?dnt=1&api=1{private}", "Vimeo")
    address = (known.embed_url or "") if known is not None else ""
    host = _framed_host(address)
    # A page must not open what only this network can reach, unless it is there itself.
    if host is None or (_is_inside(host) and host.removeprefix("www.") != row.host):
        return None
    # Named by its address: what a page calls itself is not necessarily where the frame comes from.
    return Frame("nothing", address, host.removeprefix("www."))


def _framed_host(address: str) -> str | None:
    """Return the host of an address that a policy can name; None for any other."""
    try:
        given = urlsplit(address)
        given.port  # noqa: B018 raises for anything but a port
    except ValueError:
        return None
    is_named = given.netloc.isascii() and all(c.isalnum() or c in "-.:[]" for c in given.netloc)
    return given.hostname if given.scheme in {"http", "https"} and is_named else None


def _is_inside(host: str) -> bool:
    address = parse_ip(host)
    return not is_public(address) if address is not None else "." not in host.rstrip(".")


def _private_part(known: RecordingRow | None) -> str:
    """Unlisted videos of Vimeo are shown only with the secret part of their address."""
    query = urlsplit((known and known.embed_url) or "").query
    found = next((part for part in query.split("&") if part.startswith("h=")), "")
    return f"&{quote(found, safe='=')}" if found else ""


def is_blocked(view: View, events: Sequence[KnownEvent]) -> bool:
    """Whether an item waits because its site refuses to give Nexus the transcript."""
    last = events[-1].entry if events else None
    return view.waiting_until is not None and last is not None and last.error_code == BLOCKED


class ShownTranscription(NamedTuple):
    """How far a transcription has come: the minute it is at, and how many there are."""

    minute: int
    minutes: int
    percent: int


def show_transcription(found: TranscribedSoFar | None) -> ShownTranscription | None:
    if found is None or found.total_ms <= 0:
        return None
    done = min(max(found.done_ms, 0), found.total_ms)
    return ShownTranscription(found.minute, found.minutes, round(100 * done / found.total_ms))


class HearingOffer(NamedTuple):
    """What makes Nexus itself transcribe a recording that has no transcript."""

    #: Whether a retry does it.
    may_ask: bool
    #: Or else why it can't, and what to type to change that, if there is something to type.
    why: str = ""
    command: str | None = None


def offer_hearing(
    view: View, known: RecordingRow | None, model: SpeechModel | None, *, heard_out: bool
) -> HearingOffer | None:
    """Return None for anything but an untranscribed recording, and for one whose sound is only in the player of a
    site."""
    if view.row.is_entered or view.row.last_error_code not in UNTRANSCRIBED:
        return None
    if known is None or known.audio_url is None:
        return None
    if heard_out and view.row.last_error_code == TranscriptUnavailable.code:
        return HearingOffer(False, "Nexus has listened to all of it, and heard nobody speak.")
    missing = missing_speech(model)
    if missing is not None:
        return HearingOffer(False, missing.why, missing.command)
    if model is not None and model.language_of(known.language or ANY) is None:
        return HearingOffer(False, "The speech model of this Nexus does not know its language.")
    return HearingOffer(True)
