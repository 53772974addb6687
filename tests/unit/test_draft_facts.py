"""Numbers, dates and names that a quote lacks are pointed out; those that it writes in another way are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus.draft.facts import MOST, missing_facts

TUNNEL = "The tunnel will open in March 2099"


def missing(text: str, *quotes: str) -> list[str]:
    return list(missing_facts(text, quotes))


@pytest.mark.parametrize(
    ("text", "quote", "said"),
    [
        (TUNNEL, "The tunnel is due to open next spring.", ["March", "2099"]),
        (TUNNEL, "The tunnel is due to open in March.", ["2099"]),
        ("It cost 1,000 euros.", "It cost 1,500 euros.", ["1,000"]),
        ("It cost 5 million.", "It cost 5 billion.", ["5 million"]),
        ("Prices rose by 5%.", "Prices rose on 5 days.", ["5%"]),
        ("Prices rose by 5 percent.", "Prices rose by 6 percent.", ["5%"]),
        ("It was the 21st of them.", "It was the 20th of them.", ["21st"]),
        ("It has twenty-five rooms.", "It has twenty rooms.", ["twenty-five"]),
        ("On 5 March it was cold.", "On 5 April it was cold.", ["March"]),
        ("On 2099-03-05 it was cold.", "On 2099-04-05 it was cold.", ["2099-03-05"]),
        ("Then the mayor met Anna Smith.", "Then the mayor met a visitor.", ["Anna Smith"]),
        ("Then Anna Smith met the mayor.", "Then Anna Jones met the mayor.", ["Smith"]),
        ("Anna Smith met the mayor.", "A visitor met the mayor.", ["Smith"]),
        ("NATO met on that day.", "The ministers met on that day.", ["NATO"]),
        ("It flew to Niger.", "It flew to Nigeria.", ["Niger"]),
        ("It flew to Austria.", "It flew to Australia.", ["Austria"]),
        ("Туннель открыл Иванов.", "Туннель открыл Петров.", ["Иванов"]),
        ("Dann kam Angela Merkel und ging mit der Post.", "Dann kam sie und ging.", ["Angela Merkel"]),
        ("隧道将于2099年3月开放。", "隧道将于明年开放。", ["2099", "3"]),
        ("隧道耗资三千五百万元。", "隧道耗资三千万元。", ["三千五百万"]),
        ("सुरंग २०९९ में खुलेगी।", "सुरंग अगले साल खुलेगी।", ["2099"]),
    ],
)
def test_what_a_quote_lacks_is_pointed_out(text: str, quote: str, said: list[str]) -> None:
    assert missing(text, quote) == said


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        (TUNNEL, "“In March 2099 the tunnel will open,” she said."),
        (TUNNEL, "The tunnel opens on 05.03.2099."),
        (TUNNEL, "Der Tunnel wird am 5. März 2099 eröffnet."),
        (TUNNEL, "隧道将于2099年3月5日开放。"),
        ("It opens on 5 March 2099.", "It opens on 2099-03-05."),
        ("It opens on March 5th, 2099.", "It opens on 5/3/99."),
        ("It cost 1,000 euros.", "It cost 1000 euros."),
        ("It cost 1,000 euros.", "Es kostete 1.000 Euro."),
        ("It cost 1,000 euros.", "Il a coûté 1\u202f000 euros."),
        ("It cost 1000 euros.", "It cost a thousand euros."),
        ("It cost 5.3 million.", "It cost 5,300,000."),
        ("It cost 5.3 million.", "Es kostete 5,3 Millionen."),
        ("It cost 5 million.", "It cost $5m."),
        ("It cost 5 million.", "It cost 5 to 6 million."),
        ("Prices rose by 5%.", "Prices rose by five per cent."),
        ("Prices rose by 5 percent.", "Prices rose by between 5 and 10 %."),
        ("Half of them, 50%, came.", "Half of them came."),
        ("It has 25 rooms.", "It has twenty-five rooms."),
        ("It has 105 rooms.", "It has one hundred and five rooms."),
        ("It is the third of them.", "It is the 3rd of them."),
        ("Two boats left.", "Both boats left."),
        ("One of the boats left first.", "A boat left before the others."),
        ("It lasted until 2020.", "It lasted from 2019–20."),
        ("They may march again.", "They will walk again."),
        ("Then Anna Smith's boat left.", "Then the boat of Anna Smith left."),
        ("Then the Müllers left.", "Then Frau Mu\u0308ller left."),
        ("It was said by Jean-Claude.", "Jean Claude said so."),
        ("It belongs to the U.S.", "It belongs to the United States."),
        ("It belongs to the United States.", "It belongs to the US."),
        ("She met Mr. Smith there.", "She met Smith there."),
        ("It was in Moscow. Nobody knew.", "It was in Moscow."),
        ("She said: “Nobody came.”", "She said that no one came."),
        ("Boats Leave the Harbour Again", "The fleet is out."),
        ("I think that I'm right.", "They are right."),
        ("Das Boot hat den Hafen mit Verspätung verlassen.", "Es fuhr zu spät ab."),
        ("Он был в Москве вчера.", "Москва вчера была пуста."),
        ("सुरंग २०९९ में खुलेगी।", "The tunnel opens in 2099."),
        ("隧道将于二〇九九年开放。", "隧道将于2099年开放。"),
        ("它耗资三千万元。", "它耗资3000万元。"),
    ],
)
def test_what_a_quote_writes_in_another_way_is_not_pointed_out(text: str, quote: str) -> None:
    assert missing(text, quote) == []


def test_several_quotes_count_together() -> None:
    assert missing(TUNNEL, "It opens in March.", "That is in 2099.") == []
    assert missing(TUNNEL) == ["March", "2099"]


def test_only_the_first_few_facts_are_pointed_out() -> None:
    text = "It had 11, 12, 13, 14, 15, 16 and 17 of them."
    assert missing(text, "It had none.") == ["11", "12", "13", "14", "15"][:MOST]


@given(st.text(max_size=300))
def test_a_text_that_is_its_own_quote_lacks_nothing(text: str) -> None:
    assert missing(text, text) == []
