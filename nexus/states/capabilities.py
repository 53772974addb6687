"""What a viewer can do with a media, derived from facts. Pages and clients use this, never the status."""

from dataclasses import dataclass
from typing import NamedTuple

from nexus.states.media import PUBLISHED, Kind, MediaStatus

EMBEDDING_ERROR = "E_EMBEDDING_"
NO_TRANSCRIPT = "E_TRANSCRIPT_UNAVAILABLE"
#: PDFs that no viewer can render: damaged ones, and those locked with a password.
UNRENDERABLE = frozenset({"E_PDF_DAMAGED", "E_PDF_ENCRYPTED"})
#: Kinds that can be played as soon as their address is known, with or without a transcript.
PLAYABLE = frozenset({Kind.VIDEO, Kind.PODCAST_EPISODE})


class Flag(NamedTuple):
    """What the reference says about a capability."""

    means: str
    needs: str


_TEXT = "a text (`ready_for_reading`, `embedding`, `ready`, or failed with an `E_EMBEDDING_…` code)"
_READ = "the same as `can_read`"
FLAGS = {
    "can_read": Flag(
        "The main content can be shown: a text, or the pages of a PDF.",
        f"{_TEXT}; for a `pdf` its stored file, even before its text is extracted, unless it failed with "
        + " or ".join(f"`{code}`" for code in sorted(UNRENDERABLE)),
    ),
    "can_highlight": Flag(
        "There is something to highlight. Nexus itself keeps no highlights; this is for clients that do.",
        _READ,
    ),
    "can_quote": Flag(
        "Its text can be quoted, for instance in a story.", f"{_READ}; for a `pdf` also a text"
    ),
    "can_search": Flag("It has text that search can find.", "the same as `can_quote`"),
    "can_play": Flag(
        "It has an address outside Nexus that plays it.",
        "`external_playback_url`; for kinds other than `video` and `podcast_episode` also a text, or a failure with "
        f"`{NO_TRANSCRIPT}`",
    ),
    "can_download_file": Flag("The original file can be downloaded.", "a stored file"),
}


@dataclass(frozen=True)
class Capabilities:
    """What a viewer who has access to the media can do with it now."""

    can_read: bool
    can_highlight: bool
    can_quote: bool
    can_search: bool
    can_play: bool
    can_download_file: bool


def derive(
    kind: Kind,
    status: MediaStatus,
    last_error_code: str | None,
    *,
    has_file: bool = False,
    has_plain_text: bool = False,
    has_playback_url: bool = False,
    has_own_text: bool = False,
) -> Capabilities:
    """A PDF can be read as soon as its file is stored, if it can be rendered; everything else once it has text.

    A failed embedding takes nothing away from readers. A text that the viewer entered is there in every state.
    """
    embedding_failed = status is MediaStatus.FAILED and (last_error_code or "").startswith(EMBEDDING_ERROR)
    has_text = status in PUBLISHED or embedding_failed or has_own_text
    renders = has_file and last_error_code not in UNRENDERABLE
    can_read = (renders or has_own_text) if kind is Kind.PDF else has_text
    can_quote = can_read and (has_plain_text if kind is Kind.PDF else True)
    can_play = has_playback_url and (kind in PLAYABLE or has_text or last_error_code == NO_TRANSCRIPT)
    return Capabilities(
        can_read=can_read,
        can_highlight=can_read,
        can_quote=can_quote,
        can_search=can_quote,
        can_play=can_play,
        can_download_file=has_file,
    )
