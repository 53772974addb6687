"""What a viewer can do with a media: every combination of facts, by the rules of the specification."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from itertools import product

import pytest

from nexus.states.capabilities import FLAGS, Capabilities, derive
from nexus.states.media import Kind, MediaStatus

CODES = [
    None,
    "E_EXTRACTION_FAILED",
    "E_TRANSCRIPT_UNAVAILABLE",
    "E_EMBEDDING_FAILED",
    "E_EMBEDDING_TIMEOUT",
    "E_UPLOAD_FAILED",
    "E_JOB_TIMEOUT",
    "E_PDF_DAMAGED",
    "E_PDF_ENCRYPTED",
    "E_PDF_NO_TEXT",
]
FACTS = list(product([False, True], repeat=3))
#: From the least to the most; `failed` stands outside.
ORDER = ["pending", "extracting", "ready_for_reading", "embedding", "ready"]


@dataclass(frozen=True)
class Facts:
    """What a media is: all that capabilities may depend on."""

    kind: str
    status: str
    code: str | None
    media_file: bool
    plain_text: bool
    external_playback_url: bool

    @property
    def at_least_ready_for_reading(self) -> bool:
        """`status >= ready_for_reading`; an embedding that failed leaves the text readable."""
        if self.status == "failed":
            return (self.code or "").startswith("E_EMBEDDING_")
        return ORDER.index(self.status) >= ORDER.index("ready_for_reading")

    @property
    def failed_without_transcript(self) -> bool:
        return self.status == "failed" and self.code == "E_TRANSCRIPT_UNAVAILABLE"

    @property
    def viewer_can_render(self) -> bool:
        """A viewer of PDFs opens neither a damaged file nor one whose password it does not have."""
        return self.code not in {"E_PDF_DAMAGED", "E_PDF_ENCRYPTED"}


#: Section 6, one line for each of its sentences, in its order. A later line for a kind replaces the one for all.
RULES: dict[str, dict[str, Callable[[Facts, dict[str, bool]], bool]]] = {
    "every kind": {
        "can_download_file": lambda one, _: one.media_file,
        "can_play": lambda one, _: (
            one.external_playback_url and (one.at_least_ready_for_reading or one.failed_without_transcript)
        ),
    },
    "web_article, epub, text": {
        "can_read": lambda one, _: one.at_least_ready_for_reading,
        "can_highlight": lambda _, can: can["can_read"],
        "can_quote": lambda _, can: can["can_read"],
        "can_search": lambda _, can: can["can_read"],
    },
    "pdf": {
        "can_read": lambda one, _: one.media_file and one.viewer_can_render,
        "can_highlight": lambda _, can: can["can_read"],
        "can_quote": lambda one, can: can["can_read"] and one.plain_text,
        "can_search": lambda _, can: can["can_quote"],
    },
    "podcast_episode, video": {
        "can_read": lambda one, _: one.at_least_ready_for_reading,
        "can_highlight": lambda _, can: can["can_read"],
        "can_quote": lambda _, can: can["can_read"],
        "can_search": lambda _, can: can["can_read"],
        "can_play": lambda one, _: one.external_playback_url,
    },
}


def by_the_rules(one: Facts) -> dict[str, bool]:
    can: dict[str, bool] = {}
    for kinds, rules in RULES.items():
        if kinds == "every kind" or one.kind in kinds.split(", "):
            for flag, rule in rules.items():
                can[flag] = rule(one, can)
    return can


@pytest.mark.parametrize("status", MediaStatus)
@pytest.mark.parametrize("kind", Kind)
def test_capabilities_follow_the_rules_for_every_combination_of_facts(
    kind: Kind, status: MediaStatus
) -> None:
    codes = [code for code in CODES if (code is not None) == (status is MediaStatus.FAILED)]
    for code, (file, plain, playback) in product(codes, FACTS):
        found = derive(kind, status, code, has_file=file, has_plain_text=plain, has_playback_url=playback)
        facts = Facts(kind, status, code, file, plain, playback)
        assert asdict(found) == by_the_rules(facts), facts


def test_nothing_is_possible_without_facts() -> None:
    nothing = Capabilities(*[False] * 6)
    for kind in Kind:
        assert derive(kind, MediaStatus.PENDING, None) == nothing
        assert derive(kind, MediaStatus.EXTRACTING, None) == nothing


def test_capabilities_have_the_names_of_the_contract() -> None:
    assert list(asdict(derive(Kind.PDF, MediaStatus.PENDING, None))) == [
        "can_read",
        "can_highlight",
        "can_quote",
        "can_search",
        "can_play",
        "can_download_file",
    ]


@pytest.mark.parametrize("kind", [Kind.VIDEO, Kind.PODCAST_EPISODE])
def test_a_video_without_a_transcript_can_be_played_but_not_read(kind: Kind) -> None:
    found = derive(kind, MediaStatus.FAILED, "E_TRANSCRIPT_UNAVAILABLE", has_playback_url=True)
    assert found == Capabilities(
        can_read=False,
        can_highlight=False,
        can_quote=False,
        can_search=False,
        can_play=True,
        can_download_file=False,
    )


@pytest.mark.parametrize("status", MediaStatus)
def test_a_video_can_be_played_as_soon_as_its_address_is_known(status: MediaStatus) -> None:
    code = "E_EXTRACTION_FAILED" if status is MediaStatus.FAILED else None
    assert derive(Kind.VIDEO, status, code, has_playback_url=True).can_play
    assert not derive(Kind.VIDEO, status, code, has_playback_url=False).can_play


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.PDF}))
@pytest.mark.parametrize("code", ["E_EMBEDDING_FAILED", "E_EMBEDDING_TIMEOUT", "E_EMBEDDING_ANYTHING"])
def test_a_failed_embedding_takes_nothing_away_from_the_reader(kind: Kind, code: str) -> None:
    assert derive(kind, MediaStatus.FAILED, code) == derive(kind, MediaStatus.READY_FOR_READING, None)


@pytest.mark.parametrize("status", MediaStatus)
def test_a_pdf_is_readable_as_soon_as_its_file_is_stored(status: MediaStatus) -> None:
    code = "E_EXTRACTION_FAILED" if status is MediaStatus.FAILED else None
    stored = derive(Kind.PDF, status, code, has_file=True)
    assert stored.can_read
    assert stored.can_highlight
    assert not stored.can_quote
    assert not derive(Kind.PDF, status, code, has_file=False, has_plain_text=True).can_read


@pytest.mark.parametrize("code", ["E_PDF_DAMAGED", "E_PDF_ENCRYPTED"])
def test_a_pdf_that_no_viewer_can_open_can_only_be_downloaded(code: str) -> None:
    found = derive(Kind.PDF, MediaStatus.FAILED, code, has_file=True)
    assert found == Capabilities(
        can_read=False,
        can_highlight=False,
        can_quote=False,
        can_search=False,
        can_play=False,
        can_download_file=True,
    )


def test_each_capability_documents_what_it_means_and_needs() -> None:
    assert list(FLAGS) == [field.name for field in fields(Capabilities)]
    assert all(flag.means and flag.needs for flag in FLAGS.values())
