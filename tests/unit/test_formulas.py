"""Formulas are shown by the browser and read on one line, with the same characters in both."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resiliparse.parse.html import DOMNode, HTMLTree

from nexus.extract.formulas import DEEPEST, LONGEST, NAMES
from nexus.extract.markup import clean_markup
from nexus.extract.safe_html import is_safe

#: A formula, and how a person would write it on one line.
LINES = [
    ("<mfrac><mn>1</mn><mn>2</mn></mfrac>", "1/2"),
    ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac>", "(a+b)/c"),
    ('<mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac>', "n choose k"),
    ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
    ("<msup><mi>e</mi><mrow><mo>−</mo><mi>t</mi></mrow></msup>", "e^(−t)"),
    ("<msup><mrow><mo>(</mo><mi>a</mi><mo>)</mo></mrow><mn>2</mn></msup>", "(a)^2"),
    ("<msub><mi>x</mi><mi>i</mi></msub>", "x_i"),
    ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
    ("<msup><mi>f</mi><mo>′</mo></msup>", "f′"),
    ("<msqrt><mi>a</mi><mo>+</mo><mn>1</mn></msqrt>", "√(a+1)"),
    ("<mroot><mi>x</mi><mn>3</mn></mroot>", "x^(1/3)"),
    (
        "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mi>i</mi>",
        "∑_(i=1)^ni",
    ),
    ('<mover accent="true"><mi>v</mi><mo>→</mo></mover>', "v→"),
    ("<mi>sin</mi><mo>\u2061</mo><mi>x</mi>", "sin x"),
    ("<mi>sin</mi><mi>x</mi>", "sin x"),
    ("<mn>2</mn><mo>\u2062</mo><mi>x</mi>", "2x"),
    ('<mfenced open="[" close="]" separators=";"><mi>a</mi><mi>b</mi><mi>c</mi></mfenced>', "[a;b;c]"),
    (
        "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr>"
        "<mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable>",
        "1, 2; 3, 4",
    ),
    (
        "<mmultiscripts><mi>X</mi><mn>1</mn><mn>2</mn><mprescripts/><mn>3</mn><none/></mmultiscripts>",
        "_3X_1^2",
    ),
    (
        '<semantics><mi>x</mi><annotation encoding="application/x-tex">\\mathbf{x}</annotation></semantics>',
        "x",
    ),
    ("<mphantom><mi>y</mi></mphantom><mi>x</mi>", "x"),
    ('<mi>x</mi><mspace width="1em"/><mi>y</mi>', "x\u00a0y"),
    ("<mi>x</mi><mo>&lt;</mo><mn>3</mn>", "x<3"),
    ("<mfrac><mn>1</mn></mfrac>", "1"),
]


def read(html: str) -> tuple[str, str]:
    fragment, _ = clean_markup(html, None, 0)
    return fragment.html or "", fragment.text


def text_of(node: DOMNode) -> str:
    return "".join(child.text if child.tag == "#text" else text_of(child) for child in node.child_nodes)


def browser_text(html: str) -> str:
    return text_of(HTMLTree.parse(f"<!doctype html><body>{html}</body>").body)


@pytest.mark.parametrize(("formula", "line"), LINES, ids=[line for _, line in LINES])
def test_a_formula_reads_as_a_person_would_write_it_on_one_line(formula: str, line: str) -> None:
    html, text = read(f"<p>So <math>{formula}</math> holds.</p>")
    assert text == f"So {line} holds."
    assert browser_text(html) == text
    assert is_safe(html)


def test_a_formula_stays_one_for_the_browser() -> None:
    html, _ = read('<p><math display="block"><msup><mi>x</mi><mn>2</mn></msup></math></p>')
    assert html.startswith('<p><math display="block"><msup><mi>x</mi>')


def test_what_only_the_line_needs_is_hidden_by_every_browser() -> None:
    html, _ = read("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>")
    assert "<annotation>/</annotation>" in html
    assert browser_text(html.replace("<annotation>/</annotation>", "")) == "12"


def test_attributes_of_a_formula_do_no_harm() -> None:
    html, text = read(
        '<math onclick="x()" href="javascript:x()"><mi class="notice" hx-get="/y">a</mi></math>'
    )
    assert (html, text) == ("<p><math><mi>a</mi></math></p>", "a")


def test_elements_of_formulas_outside_of_one_keep_their_text() -> None:
    assert read("<p>one <mi>two</mi> three</p>") == ("<p>one two three</p>", "one two three")


def test_a_formula_nested_without_end_keeps_its_text() -> None:
    deep = "<mrow>" * 3 * DEEPEST + "<mi>x</mi>" + "</mrow>" * 3 * DEEPEST
    html, text = read(f"<p>a <math>{deep}</math> b</p>")
    assert "x" in text
    assert browser_text(html) == text


def test_a_formula_longer_than_any_is_left_out_and_the_text_around_it_stays() -> None:
    html, text = read(f"<p>a <math><mtext>{'x' * (LONGEST + 1)}</mtext></math> b</p>")
    assert text == "a b"
    assert browser_text(html) == text


PIECES = st.one_of(
    st.sampled_from(sorted(NAMES)).map(lambda name: f"<{name}>"),
    st.sampled_from(sorted(NAMES)).map(lambda name: f"</{name}>"),
    st.sampled_from(sorted(NAMES)).map(lambda name: f"<{name}/>"),
    st.sampled_from(
        ["x", " ", "2", "+", "&lt;", "<p>", "</p>", "<td>", "<b>", "<img src=/a>", "\u2061", "(", ")"]
    ),
)


@given(st.lists(PIECES, max_size=30).map("".join))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_formula_has_the_same_characters_in_html_and_text(inside: str) -> None:
    html, text = read(f"<p>a <math>{inside}</math> b</p>")
    assert browser_text(html) == text
    assert is_safe(html)
