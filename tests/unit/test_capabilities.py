"""What a viewer can do with a media: every combination of facts, by the rules of the specification."""

from dataclasses import asdict
from itertools import product

import pytest

from nexus.states.capabilities import Capabilities, derive
from nexus.states.media import Kind, Status

CODES = [
    None,
    "E_EXTRACTION_FAILED",
    "E_TRANSCRIPT_UNAVAILABLE",
    "E_EMBEDDING_FAILED",
    "E_EMBEDDING_TIMEOUT",
    "E_UPLOAD_FAILED",
    "E_JOB_TIMEOUT",
]
FACTS = list(product([False, True], repeat=3))


def readable_text(status: str, code: str | None) -> bool:
    """`status >= ready_for_reading`, and embedding errors leave the media readable."""
    if status == "failed":
        return code in {"E_EMBEDDING_FAILED", "E_EMBEDDING_TIMEOUT"}
    return status in {"ready_for_reading", "embedding", "ready"}


def by_the_rules(
    kind: str, status: str, code: str | None, *, file: bool, plain: bool, playback: bool
) -> dict[str, bool]:
    """Section 6, written down a second time, kind by kind."""
    text = readable_text(status, code)
    without_transcript = status == "failed" and code == "E_TRANSCRIPT_UNAVAILABLE"
    answer = {"can_download_file": file, "can_play": playback and (text or without_transcript)}
    match kind:
        case "web_article" | "epub" | "text":
            answer |= {"can_read": text, "can_highlight": text, "can_quote": text, "can_search": text}
        case "pdf":
            answer |= {"can_read": file, "can_highlight": file}
            answer |= {"can_quote": file and plain, "can_search": file and plain}
        case "video" | "podcast_episode":
            answer |= {"can_read": text, "can_highlight": text, "can_quote": text, "can_search": text}
            answer["can_play"] = playback
    return answer


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("kind", Kind)
def test_every_combination_of_facts(kind: Kind, status: Status) -> None:
    codes = [code for code in CODES if (code is not None) == (status is Status.FAILED)]
    for code, (file, plain, playback) in product(codes, FACTS):
        found = derive(kind, status, code, has_file=file, has_plain_text=plain, has_playback_url=playback)
        expected = by_the_rules(kind, status, code, file=file, plain=plain, playback=playback)
        assert asdict(found) == expected, (code, file, plain, playback)


def test_nothing_is_possible_without_facts() -> None:
    nothing = Capabilities(*[False] * 6)
    for kind in Kind:
        assert derive(kind, Status.PENDING, None) == nothing
        assert derive(kind, Status.EXTRACTING, None) == nothing


def test_the_names_are_those_of_the_contract() -> None:
    assert list(asdict(derive(Kind.PDF, Status.PENDING, None))) == [
        "can_read",
        "can_highlight",
        "can_quote",
        "can_search",
        "can_play",
        "can_download_file",
    ]


@pytest.mark.parametrize("kind", [Kind.VIDEO, Kind.PODCAST_EPISODE])
def test_a_video_without_a_transcript_plays_and_does_not_read(kind: Kind) -> None:
    found = derive(kind, Status.FAILED, "E_TRANSCRIPT_UNAVAILABLE", has_playback_url=True)
    assert found == Capabilities(
        can_read=False,
        can_highlight=False,
        can_quote=False,
        can_search=False,
        can_play=True,
        can_download_file=False,
    )


@pytest.mark.parametrize("status", Status)
def test_a_video_plays_from_the_moment_its_address_is_known(status: Status) -> None:
    code = "E_EXTRACTION_FAILED" if status is Status.FAILED else None
    assert derive(Kind.VIDEO, status, code, has_playback_url=True).can_play
    assert not derive(Kind.VIDEO, status, code, has_playback_url=False).can_play


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.PDF}))
@pytest.mark.parametrize("code", ["E_EMBEDDING_FAILED", "E_EMBEDDING_TIMEOUT", "E_EMBEDDING_ANYTHING"])
def test_a_failed_embedding_takes_nothing_away_from_the_reader(kind: Kind, code: str) -> None:
    assert derive(kind, Status.FAILED, code) == derive(kind, Status.READY_FOR_READING, None)


@pytest.mark.parametrize("status", Status)
def test_a_pdf_reads_as_soon_as_its_file_is_stored(status: Status) -> None:
    code = "E_EXTRACTION_FAILED" if status is Status.FAILED else None
    stored = derive(Kind.PDF, status, code, has_file=True)
    assert stored.can_read
    assert stored.can_highlight
    assert not stored.can_quote
    assert not derive(Kind.PDF, status, code, has_file=False, has_plain_text=True).can_read
