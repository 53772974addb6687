"""A draft without a model: the article's own sentences, each with its exact place."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus.draft import Article, Draft, Evidence, StoryClaim, make_drafter
from nexus.draft.extractive import MOST_CLAIMS, Extractive
from nexus.draft.support import support_of
from nexus.errors.draft import DraftTooShort

TITLE = "Springfield closes Main Street bridge after cracks are found"
LEAD = (
    "The city council of Springfield voted 7 to 2 on Tuesday to close the Main St. bridge, which was built in 1931, "
    "after engineers found cracks in two of its piers."
)
COST = "Repairs will cost $5.3 million and take until March 2027, the city said."
NEWS = f"""{LEAD}

Read more: the long history of our bridges and roads.

“We can’t wait any longer,” said Mayor Anna J. Ruiz. “Every day that we keep it open is a day too many.” The bridge \
carries about 14,000 cars a day, according to the U.S. Department of Transportation.
Subscribe to our newsletter to get the best stories every morning.
{COST} Traffic will be led over the Elm Avenue bridge, where Dr. Paul Stone expects delays of up to 20 minutes.

What came before the vote of Tuesday
The bridge had been inspected every second year since 1998. In 2019, a report warned of rust in its steel. {COST}
Who will pay for the repairs of the bridge? Two members who voted no said that shops on the east side would suffer.
© 2026 Springfield Herald. All rights reserved."""


def drafted(text: str, title: str = TITLE) -> Draft:
    return Extractive().draft(Article(title, text, "https://news.example/bridge"), 45)


def test_a_caption_is_no_sentence_of_the_article() -> None:
    """Unless there is nothing else, and however well it matches the title."""
    caption = "Springfield closes the Main Street bridge: cracks are found in two piers on Monday."
    assert any(caption in claim.text for claim in claims(drafted(f"{caption}\n\n{NEWS}")))
    article = Article(TITLE, f"{caption}\n\n{NEWS}", "https://news.example/bridge", (f" {caption}\n",))
    draft = Extractive().draft(article, 45)
    require_grounded(draft, article.text)
    assert not any(caption in said for said in (draft.summary, *(claim.text for claim in claims(draft))))
    alone = Article(TITLE, caption * 2, "https://news.example/bridge", (caption * 2,))
    assert claims(Extractive().draft(alone, 45))


def claims(draft: Draft) -> list[StoryClaim]:
    return [*draft.what_happened, *draft.background]


def require_grounded(draft: Draft, text: str) -> None:
    for claim in claims(draft):
        evidence = claim.evidence
        assert evidence.found
        assert claim.text == evidence.quote == text[evidence.start : evidence.end]
        assert claim.text
    assert support_of(draft.headline, draft.headline_evidence).is_full
    assert support_of(draft.summary, draft.summary_evidence).is_full
    for evidence in (*draft.headline_evidence, *draft.summary_evidence):
        assert evidence.in_title or evidence.quote == text[evidence.start : evidence.end]


def test_the_news_comes_first_and_the_rest_is_background() -> None:
    draft = drafted(NEWS)
    require_grounded(draft, NEWS)
    assert draft.headline == TITLE
    assert draft.what_happened[0].text == LEAD
    assert COST in [claim.text for claim in draft.what_happened]
    assert draft.summary.startswith(LEAD)
    assert "The bridge had been inspected every second year since 1998." in [c.text for c in draft.background]
    assert (draft.model, draft.tokens_used) == ("extractive", 0)


def test_an_extractive_draft_says_nothing_twice() -> None:
    texts = [claim.text for claim in claims(drafted(NEWS))]
    assert len(texts) == len(set(texts))
    near = "The old bridge in the town was closed on Tuesday after cracks were found"
    draft = drafted(f"{near}. Shops nearby fear for their income. {near} again. Buses take another way now.")
    assert sum(near in claim.text for claim in claims(draft)) == 1


def test_sentences_that_are_no_statements_are_left_out() -> None:
    said = " ".join(claim.text for claim in claims(drafted(NEWS)))
    for notice in (
        "Read more",
        "Subscribe",
        "All rights reserved",
        "What came before",
        "Every day that",
        "Who will pay",
    ):
        assert notice not in said


def test_claims_stand_in_reading_order() -> None:
    draft = drafted(NEWS)
    for part in (draft.what_happened, draft.background):
        starts = [claim.evidence.start or 0 for claim in part]
        assert starts == sorted(starts)
        assert len(part) <= MOST_CLAIMS


def test_the_news_is_found_even_if_it_does_not_come_first() -> None:
    idle = " ".join(
        f"On day {at} the weather in {name} was mild." for at, name in enumerate(("Rome", "Oslo", "Lima"))
    )
    news = "Engineers found cracks in the bridge, so the bridge closes for repairs."
    more = "The repairs of the bridge begin when engineers have measured the cracks."
    draft = drafted(f"{idle} {news} {more} Nobody knows more.", "Bridge closes after engineers find cracks")
    assert news in [claim.text for claim in draft.what_happened]


@pytest.mark.parametrize(
    ("title", "text", "lead"),
    [
        (
            "提高退休年龄",
            "国务院周二宣布，将从明年起提高退休年龄。专家认为，这一政策将影响数百万工人！新的规定将分三个阶段实施，"
            "直到二零三五年。订阅我们的新闻。工会表示反对这一决定，并呼吁政府重新考虑。",
            "国务院周二宣布，将从明年起提高退休年龄。",
        ),
        (
            "Brücke gesperrt",
            "Am 3. Mai wurde die Brücke gesperrt, wie Dr. Meier mitteilte. Die Kosten betragen ca. 5 Mio. Euro. Lesen "
            "Sie auch: Mehr Geld für Straßen und Schulen. Die Sanierung der Brücke dauert bis März.",
            "Am 3. Mai wurde die Brücke gesperrt, wie Dr. Meier mitteilte.",
        ),
        (
            "पुल बंद",
            "शहर की परिषद ने मंगलवार को पुल बंद करने का फैसला किया। मरम्मत पर पाँच करोड़ रुपये खर्च होंगे। "
            "काम मार्च तक चलेगा, अधिकारी ने कहा।",
            "शहर की परिषद ने मंगलवार को पुल बंद करने का फैसला किया।",
        ),
    ],
)
def test_texts_in_other_languages_are_drafted_without_settings(title: str, text: str, lead: str) -> None:
    draft = drafted(text, title)
    require_grounded(draft, text)
    assert draft.what_happened[0].text == lead
    said = " ".join(claim.text for claim in claims(draft))
    assert "订阅" not in said
    assert "Lesen Sie" not in said


def test_headline_and_summary_rest_on_the_title_and_sentences_they_are_made_of() -> None:
    draft = drafted(NEWS)
    assert draft.headline_evidence == (Evidence(TITLE, None, None, in_title=True),)
    assert [evidence.quote in draft.summary for evidence in draft.summary_evidence] == [True] * len(
        draft.summary_evidence
    )
    short = drafted(NEWS, "Bridge")
    title, lead = short.headline_evidence
    assert (title.quote, title.in_title) == ("Bridge", True)
    assert (lead.quote, NEWS[lead.start : lead.end]) == (LEAD, LEAD)
    assert [evidence.quote for evidence in drafted(NEWS, "").headline_evidence] == [LEAD]


def test_a_headline_is_made_to_fit() -> None:
    assert drafted(NEWS, "Bridge").headline == f"Bridge: {LEAD}"
    assert drafted(NEWS, "").headline == LEAD
    assert drafted(NEWS, " A \n title\twith \0 gaps ").headline == "A title with gaps"
    long = drafted(NEWS, "word " * 100).headline
    assert len(long) <= 200
    assert long.endswith("word…")
    assert len(drafted(NEWS, "x" * 500).headline) == 200


@pytest.mark.parametrize("text", ["", " \n ", "Hardly a word.", "!" * 5000, "\u200b" * 500, "— " * 400])
def test_a_text_that_is_too_short_for_a_draft_is_reported(text: str) -> None:
    with pytest.raises(DraftTooShort) as caught:
        drafted(text)
    assert caught.value.transient is False


def test_a_text_beyond_the_limit_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="50001"):
        Article("A title", "x" * 50_001, "")


def test_a_draft_of_the_wrong_size_can_not_be_made() -> None:
    claim = StoryClaim("A claim of this test", Evidence("never said", None, None))
    given = {"background": (), "model": "m", "prompt_version": "1", "tokens_used": 0}
    good = {"headline": "h" * 10, "summary": "s" * 50, "what_happened": (claim,), **given}
    Draft(**good)  # type: ignore[arg-type]
    for wrong in (
        {"headline": "h" * 9},
        {"headline": "h" * 201},
        {"summary": "s" * 49},
        {"summary": "s" * 501},
        {"what_happened": ()},
        {"what_happened": (claim,) * 11},
        {"background": (claim,) * 11},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Draft(**{**good, **wrong})  # type: ignore[arg-type]


def test_the_client_of_a_model_is_not_loaded_without_an_address_and_a_key() -> None:
    code = "import sys, nexus.draft as d; print(type(d.make_drafter('', '', 'm')).__name__, 'openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Extractive", "False"]


def test_an_address_or_a_key_selects_the_model() -> None:
    assert make_drafter("http://127.0.0.1:9/v1", "", "m").costs_tokens
    assert make_drafter("", "key", "m").costs_tokens
    assert not make_drafter("", "", "m").costs_tokens


def test_the_repr_of_a_drafter_does_not_show_its_key() -> None:
    assert "secret" not in repr(make_drafter("", "secret", "m"))


@settings(deadline=None, derandomize=True)
@given(
    st.text(), st.text(alphabet=st.one_of(st.sampled_from(" \n.!?。”'a Bc1"), st.characters()), max_size=2000)
)
def test_any_text_gives_a_draft_or_a_known_error(title: str, text: str) -> None:
    try:
        draft = drafted(text, title)
    except DraftTooShort:
        assert sum(map(str.isalnum, text)) < 50
    else:
        require_grounded(draft, text)


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from([*NEWS.split("\n"), *NEWS.split(" "), "\n", "。", "的是不了人我在有他这"]),
        min_size=60,
    )
)
def test_pieces_of_news_in_any_order_make_a_draft(pieces: list[str]) -> None:
    text = " ".join(pieces)[:50_000]
    try:
        require_grounded(drafted(text), text)
    except DraftTooShort:
        assert sum(map(str.isalnum, text)) < 50


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "a. " * 16_000,
        "\n" * 40_000 + "b" * 60,
        "!" * 49_000 + "c" * 60,
        "²" * 60,
        "的" * 50_000,
        "Mr. " * 12_000,
        " ".join(f"Thing {at} was seen at place {at % 91}." for at in range(2000))[:50_000],
    ],
    ids=lambda text: text[:8].strip(),
)
def test_the_longest_and_oddest_texts_make_a_draft(text: str) -> None:
    require_grounded(drafted(text), text)
