"""How text becomes a story: a draft in which headline, summary and every claim point to what supports them.

Without a model, the draft is made of the article's own sentences. With one, the model writes, and each of its quotes is
looked up in the text. A quote that is not there is kept and shown as unsupported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from nexus.errors.draft import DraftTooShort

#: How much of an article a draft is made from, in characters.
MOST_TEXT = 50_000
#: An article with fewer letters and digits gives nothing to write about.
LEAST_LETTERS = 50
#: The least and most characters of each part, and the least and most claims.
HEADLINE = (10, 200)
SUMMARY = (50, 500)
WHAT_HAPPENED = (1, 10)
BACKGROUND = (0, 10)
CLAIM = (10, 1000)
QUOTE = (10, 2000)
#: The most quotes that support a headline, and a summary.
HEADLINE_QUOTES = 2
SUMMARY_QUOTES = 10


@dataclass(frozen=True)
class Article:
    """What a draft is made from."""

    title: str
    text: str
    url: str
    #: Those parts of the text that are the captions of its figures.
    captions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.text) > MOST_TEXT:
            raise ValueError(f"The text has {len(self.text)} characters, more than {MOST_TEXT}.")


@dataclass(frozen=True)
class Evidence:
    """A quote, and where it is in the article's text; None and None if it is not there."""

    quote: str
    start: int | None
    end: int | None
    #: Whether it is in the article's title, which is not part of the text. Only headlines and summaries rest on that.
    in_title: bool = False
    #: Whether the words that rest on it were changed after it was found, and nobody has compared them with it since.
    edited: bool = False

    @property
    def found(self) -> bool:
        return self.start is not None or self.in_title


@dataclass(frozen=True)
class StoryClaim:
    text: str
    evidence: Evidence


@dataclass(frozen=True)
class Draft:
    headline: str
    summary: str
    what_happened: tuple[StoryClaim, ...]
    background: tuple[StoryClaim, ...]
    #: What wrote it: the name of a model, or "extractive".
    model: str
    #: The version of the prompt, or of the way sentences are chosen.
    prompt_version: str
    #: For all calls that it took.
    tokens_used: int
    headline_evidence: tuple[Evidence, ...] = ()
    summary_evidence: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        sizes = {
            "headline": (len(self.headline), HEADLINE),
            "summary": (len(self.summary), SUMMARY),
            "what_happened": (len(self.what_happened), WHAT_HAPPENED),
            "background": (len(self.background), BACKGROUND),
        }
        for part, (size, (least, most)) in sizes.items():
            if not least <= size <= most:
                raise ValueError(f"The {part} has {size}, not {least} to {most}.")


class Drafter(Protocol):
    @property
    def costs_tokens(self) -> bool:
        """Whether drafts use up the user's quota of tokens."""
        ...

    def draft(self, article: Article, seconds: float) -> Draft:
        """Make a draft within this time. Raises DraftFailed or a kind of it; it is transient if the same may succeed a
        little later."""
        ...


def make_drafter(base_url: str, api_key: str, model: str) -> Drafter:
    """Return a drafter for the model at an address, by default OpenAI's. Without address and key, it uses no model."""
    if base_url or api_key:
        return _Model(base_url, api_key, model)
    from nexus.draft.extractive import Extractive  # noqa: PLC0415

    return Extractive()


@dataclass(frozen=True)
class _Model:
    """Loads the client with the first draft: that takes most of a second, and few commands draft anything."""

    base_url: str
    api_key: str = field(repr=False)
    model: str
    costs_tokens: bool = True

    @cached_property
    def _client(self) -> Drafter:
        from nexus.draft.openai import OpenAi  # noqa: PLC0415

        return OpenAi(self.base_url, self.api_key, self.model)

    def draft(self, article: Article, seconds: float) -> Draft:
        return self._client.draft(article, seconds)


def require_enough(article: Article) -> None:
    """Raises DraftTooShort."""
    if sum(map(str.isalnum, article.text)) < LEAST_LETTERS:
        raise DraftTooShort
