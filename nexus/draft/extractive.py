"""Drafts made of the article's own sentences: no model, no network, nothing made up.

A sentence scores by how much it shares with all others, how much with the title, and how early it stands. What it
shares with all others is its degree in LexRank's graph of sentences, which equals its product with the sum of them all.
So no graph is built, and the time is linear. News says what matters first, which makes its first sentences hard to
beat; the other two help with the rest. A sentence that repeats one already taken is skipped.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from math import log, sqrt
from operator import itemgetter

from nexus.draft import HEADLINE, SUMMARY, Article, Draft, Evidence, StoryClaim, require_enough
from nexus.draft.grounding import SPACELESS
from nexus.draft.sentences import Span, split_sentences

#: Stands in place of a model's name.
EXTRACTIVE = "extractive"
VERSION = "sentences-1"
MOST_CLAIMS = 5
#: The weights of the three scores, chosen on 450 pages by how much of a page's own description the summary covers.
SHARED, TITLED, EARLY = 0.5, 1.0, 1.5
#: A summary this long needs no further sentence.
ENOUGH = 300
#: Two sentences at least this similar say the same.
ALIKE = 0.6
#: How much a sentence loses by what it shares with those already taken.
REPETITION = 0.5
LEAST_WORDS = 5
#: No space follows a sentence that ends like this.
UNSPACED = ("。", "！", "？", "。”", "！”", "？”", "」", "』")
#: The least share of letters in a sentence. It is low because vowel signs of Indic scripts don't count as letters.
LEAST_LETTERS = 0.4
#: A longer sentence is not a notice, even if it begins like one.
LONGEST_NOTICE = 160

HAN_AND_ALIKE = SPACELESS.pattern[1:-1]
#: Anything but spaces and punctuation, so that words keep vowel signs and accents that are separate characters.
WORD = re.compile(
    rf"[{HAN_AND_ALIKE}]+|[^\s\x00-\x2f:-@\[-`{{-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf।॥؟،؛۔\u2000-\u206f\u3000-\u3004"
    rf"\u3008-\u3020\u3030\u303d\ufe10-\ufe6f\uff00-\uff0f\uff1a-\uff20{HAN_AND_ALIKE}]+"
)
ENDED = re.compile(r"[.!…。！｡۔।॥።။។][\"'”’»›)\]」』）*_]*\Z")
SPEECH = re.compile(r"[\"“„«»「『].*[\"“”«»」』]", re.DOTALL)
#: Notices to the reader: how they begin, and below what legal ones contain.
NOTICES = (
    "read more", "read also", "read next", "see also", "learn more", "related articles", "related stories",
    "subscribe to", "subscribe now", "subscribe for", "sign up", "sign in", "log in", "register now", "register here",
    "follow us", "share this", "share on", "click here", "click to", "click on", "download our", "advertisement",
    "photo by", "photo:", "photograph:", "image:", "image credit", "image source", "copyright ©", "©", "watch:",
    "get our", "get the latest", "this article was", "this article is", "this story was", "this story has been",
    "we use cookies", "this site uses", "this website uses", "by continuing", "by signing", "support us", "don't miss",
    "lesen sie auch", "lesen sie mehr", "mehr zum thema", "jetzt abonnieren", "jetzt anmelden", "foto:", "bild:",
    "lire aussi", "lire la suite", "à lire aussi", "abonnez-vous", "inscrivez-vous", "lea también", "lee también",
    "suscríbete", "suscríbase", "regístrate", "leggi anche", "abbonati", "iscriviti", "leia também", "leia mais",
    "assine ", "inscreva-se", "lees ook", "lees meer", "читайте также", "подпишитесь", "подписывайтесь", "czytaj także",
    "订阅", "訂閱", "点击", "點擊", "阅读更多", "続きを読む", "구독",
)  # fmt: skip
LEGAL = (
    "all rights reserved", "alle rechte vorbehalten", "tous droits réservés", "todos los derechos reservados",
    "terms of use", "terms of service", "privacy policy", "our newsletter", "unseren newsletter", "notre newsletter",
    "nuestro boletín", "nuestra newsletter",
)  # fmt: skip

Vector = dict[str, float]


@dataclass(frozen=True)
class Sentence:
    at: int
    span: Span
    text: str
    words: tuple[str, ...]
    is_caption: bool


class Extractive:
    costs_tokens = False

    def draft(self, article: Article, seconds: float) -> Draft:  # noqa: ARG002
        """It takes milliseconds, so `seconds` is ignored. Raises DraftTooShort."""
        require_enough(article)
        captions = _places(article)
        sentences = _worthy(
            [
                _sentence(article.text, at, span, captions)
                for at, span in enumerate(split_sentences(article.text))
            ]
        )
        chosen = _choose(sentences, _words(article.title))
        happened = min(MOST_CLAIMS, (len(chosen) + 1) // 2)
        summary, from_text = _summary(chosen, article.text)
        first = Evidence(chosen[0].text, *chosen[0].span)
        headline, from_article = _headline(
            article.title, (chosen[0].text, (first,)), (summary, from_text[:1])
        )
        return Draft(
            headline=headline,
            summary=summary,
            what_happened=_claims(chosen[:happened]),
            background=_claims(chosen[happened:]),
            model=EXTRACTIVE,
            prompt_version=VERSION,
            tokens_used=0,
            headline_evidence=from_article,
            summary_evidence=from_text,
        )


def _places(article: Article) -> list[Span]:
    """Return where the captions are, in order, each wherever it is a paragraph of its own."""
    wanted = {caption.strip() for caption in article.captions}
    spans, at = [], 0
    for line in article.text.splitlines(keepends=True):
        if line.strip() in wanted:
            spans.append((at, at + len(line)))
        at += len(line)
    return spans


def _sentence(text: str, at: int, span: Span, captions: list[Span]) -> Sentence:
    own = text[span[0] : span[1]]
    before = bisect_right(captions, span[0], key=itemgetter(0))
    return Sentence(at, span, own, _words(own), before > 0 and span[1] <= captions[before - 1][1])


def _words(text: str) -> tuple[str, ...]:
    """Return the words in lower case. In scripts without spaces, each pair of neighbouring characters is a word."""
    found: list[str] = []
    for word in WORD.findall(text.casefold()):
        if SPACELESS.match(word) and len(word) > 1:
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            found.append(word)
    return tuple(found)


def _worthy(sentences: list[Sentence]) -> list[Sentence]:
    """Return the sentences that can stand alone.

    Headings, captions, questions and speech without a speaker are used only if there is nothing better.
    """
    speaking = [sentence for sentence in sentences if sentence.words]
    good = [sentence for sentence in speaking if _says_something(sentence) and not sentence.is_caption]
    ended = [own for own in good if ENDED.search(own.text) and not SPEECH.fullmatch(own.text)]
    return ended or good or speaking


def _says_something(sentence: Sentence) -> bool:
    letters = sum(map(str.isalpha, sentence.text))
    mostly_words = len(sentence.words) >= LEAST_WORDS and letters >= LEAST_LETTERS * len(sentence.text)
    return mostly_words and not _is_notice(sentence.text)


def _is_notice(text: str) -> bool:
    if len(text) > LONGEST_NOTICE:
        return False
    plain = text.casefold().lstrip(" \t>»›•·*-–—[(|").replace("’", "'")
    return plain.startswith(NOTICES) or any(phrase in plain for phrase in LEGAL)


def _choose(sentences: list[Sentence], title: tuple[str, ...]) -> list[Sentence]:
    """Return the best sentences first, each judged by what it adds to those before it."""
    rarity = _rarity(sentences)
    vectors = [_vector(sentence.words, rarity) for sentence in sentences]
    worth = _worth(vectors, _vector(title, rarity))
    nearest = [0.0] * len(sentences)
    left = set(range(len(sentences)))
    chosen: list[Sentence] = []
    while left and len(chosen) < 2 * MOST_CLAIMS:
        best = max(left, key=lambda at: (worth[at] - REPETITION * nearest[at], -at))
        chosen.append(sentences[best])
        for at in left:
            nearest[at] = max(nearest[at], _product(vectors[at], vectors[best]))
        left = {at for at in left if nearest[at] < ALIKE} - {best}
    return chosen


def _worth(vectors: list[Vector], title: Vector) -> list[float]:
    total: Counter[str] = Counter()
    for vector in vectors:
        total.update(vector)
    shared = [_product(vector, total) for vector in vectors]
    most = max(shared, default=0.0) or 1.0
    return [
        SHARED * shared[at] / most + TITLED * _product(vector, title) + EARLY / sqrt(1 + at)
        for at, vector in enumerate(vectors)
    ]


def _rarity(sentences: list[Sentence]) -> Vector:
    """Return the weight of each word: little for one that is in many sentences, in any language."""
    found = Counter(word for sentence in sentences for word in set(sentence.words))
    return {word: log(1 + len(sentences) / times) for word, times in found.items()}


def _vector(words: tuple[str, ...], rarity: Vector) -> Vector:
    """Return a vector of length one, so that a product of two is their similarity. Unknown words don't count."""
    weights = {word: times * rarity[word] for word, times in Counter(words).items() if word in rarity}
    length = sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    return {word: weight / length for word, weight in weights.items()}


def _product(one: Vector, other: Vector | Counter[str]) -> float:
    return sum(weight * other[word] for word, weight in one.items() if word in other)


def _claims(sentences: list[Sentence]) -> tuple[StoryClaim, ...]:
    in_order = sorted(sentences, key=lambda sentence: sentence.at)
    return tuple(StoryClaim(own.text, Evidence(own.text, *own.span)) for own in in_order)


def _summary(chosen: list[Sentence], text: str) -> tuple[str, tuple[Evidence, ...]]:
    """Join the best sentences that fit. If they are too short, use the beginning of the text."""
    taken: list[Sentence] = []
    size = 0
    for sentence in chosen:
        more = len(_plain(sentence.text)) + 1
        if size < ENOUGH and size + more <= SUMMARY[1]:
            taken.append(sentence)
            size += more
    taken.sort(key=lambda own: own.at)
    plain = (_plain(own.text) for own in taken)
    summary = "".join(own if own.endswith(UNSPACED) else f"{own} " for own in plain).strip()
    if len(summary) >= SUMMARY[0]:
        return summary, tuple(Evidence(own.text, *own.span) for own in taken)
    end = min(len(text), SUMMARY[1])
    return _cut(_plain(text), SUMMARY[1]), (Evidence(text[:end], 0, end),)


def _headline(title: str, *sentences: tuple[str, tuple[Evidence, ...]]) -> tuple[str, tuple[Evidence, ...]]:
    """Return the title. If it is too short, extend it with the first of these sentences that makes it long enough."""
    plain = headline = _plain(title)
    evidence = own = (Evidence(plain, None, None, in_title=True),) if plain else ()
    for sentence, supported in sentences:
        if len(headline) < HEADLINE[0]:
            headline = f"{plain}: {_plain(sentence)}".removeprefix(": ")
            evidence = (*own, *supported)
    return _cut(headline, HEADLINE[1]), evidence


def _plain(text: str) -> str:
    """Return the text on one line, without what can't be printed."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _cut(text: str, most: int) -> str:
    """Shorten a text to `most` characters, between words if there is a space in the second half."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    space = kept.rfind(" ", most // 2)
    return (kept[:space] if space > 0 else kept).rstrip(" ,;:–—-") + "…"
