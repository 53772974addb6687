"""What a viewer can do with a media, derived from facts alone. Pages and clients ask this, never the status."""

from dataclasses import dataclass

from nexus.states.media import PUBLISHED, Kind, Status

EMBEDDING_ERROR = "E_EMBEDDING_"
NO_TRANSCRIPT = "E_TRANSCRIPT_UNAVAILABLE"
#: Kinds that play from the moment their address is known, with or without a transcript.
PLAYABLE = frozenset({Kind.VIDEO, Kind.PODCAST_EPISODE})


@dataclass(frozen=True)
class Capabilities:
    """What a viewer who may read the media can do with it now."""

    can_read: bool  #: the primary content can be shown
    can_highlight: bool  #: highlights can be made in it
    can_quote: bool  #: its text can be quoted
    can_search: bool  #: it appears in search results
    can_play: bool  #: it has a playable address outside
    can_download_file: bool  #: the original file can be downloaded


def derive(
    kind: Kind,
    status: Status,
    last_error_code: str | None,
    *,
    has_file: bool = False,
    has_plain_text: bool = False,
    has_playback_url: bool = False,
) -> Capabilities:
    """A PDF reads as soon as its file is stored; everything else when its text is there.

    A failed embedding takes nothing away from the reader.
    """
    embedding_failed = status is Status.FAILED and (last_error_code or "").startswith(EMBEDDING_ERROR)
    has_text = status in PUBLISHED or embedding_failed
    can_read = has_file if kind is Kind.PDF else has_text
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
