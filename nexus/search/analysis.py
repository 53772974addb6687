"""Turns text into the tokens that are indexed and asked for, the same on every database.

Tokens are ASCII letters and digits only. SQLite's and PostgreSQL's own tokenizers, with any locale and any version of
Unicode, take such a token as it is, so both databases index exactly these.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import Stemmer

#: The stemmer of each language. Norwegian has three tags.
STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
#: The language in which to stem a word if that of its text is unknown, or is written in another script.
DEFAULT = "en"
#: The last character of each script, and the languages of its words, the default first.
_SCRIPTS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0x036F, ()),
    (0x03FF, ("el",)),
    (0x052F, ("ru", "sr")),
    (0x058F, ("hy",)),
    (0x05FF, ("yi",)),
    (0x08FF, ("ar", "fa")),
    (0x097F, ("hi", "ne")),
    (0x0BFF, ("ta",)),
    (0x1EFF, ()),
    (0x1FFF, ("el",)),
)
_NOT_LATIN = frozenset(language for _, languages in _SCRIPTS for language in languages) - {"sr"}

#: Scripts that put no spaces between words, and Hangul, whose words carry particles: each character is a token.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u1b00-\u1b7f\u2e80-\u2fdf\u3005-\u3007\u3021-\u302f\u3031-\u3035\u3038-\u303c\u3040-\u30ff"
    "\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua9df"
    "\uaa60-\uaa7f\uaa80-\uaadf\uac00-\ud7ff\uf900-\ufaff\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
#: Marks above and below letters, Hebrew points, Arabic vowels and the stretching of Arabic lines.
_DIACRITICS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")
#: Letters that Unicode does not take apart, but readers who lack the key do.
_BARE = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"})
_ZERO_WIDTH_SPACE = 0x200B
#: How many characters of a word count.
LONGEST_WORD = 48
#: How many words of a language are remembered with their tokens.
REMEMBERED = 1 << 16

_ASCII_WORDS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_TURKISH = str.maketrans({"I": "ı", "İ": "i"})
_stemming = threading.Lock()


class Indexed(NamedTuple):
    """What the index holds of a chunk: `head` counts more, and `length` is the number of all its tokens."""

    words: str
    head: str
    length: int


def analyse(text: str, language: str | None = None) -> list[str]:
    """Return the tokens of a text in a language, given as a BCP 47 tag, in their order."""
    stemmed = stemmed_in(language)
    return [*map(tokens_of(stemmed), split_words(text, stemmed))]


def indexed(text: str, heads: Iterable[str | None], language: str | None = None) -> Indexed:
    """Return what the index holds of a chunk, or of an item's own row, whose text is empty.

    The heads of a chunk are its nearest headings, and those of an item its title, byline and site.
    """
    words = analyse(text, language)
    head = [token for part in heads if part for token in analyse(part, language)]
    return Indexed(" ".join(words), " ".join(head), len(words) + len(head))


@lru_cache(1024)
def stemmed_in(language: str | None) -> str:
    """Return the language that Latin words of such a text are stemmed in: English if there is no stemmer for its own.

    A question needs to know which languages some text was stemmed in.
    """
    primary = (language or DEFAULT).replace("_", "-").partition("-")[0].lower()
    return primary if primary in STEMMERS else DEFAULT


def split_words(text: str, language: str = DEFAULT) -> list[str]:
    """Return the words of a text as they are spelled, in lower case; in scripts without spaces, its characters."""
    if text.isascii() and (language != "tr" or "I" not in text):
        return text.encode().translate(_ASCII_WORDS).lower().decode().split()
    return fold_characters(text, language).split()


def fold_characters(text: str, language: str = DEFAULT) -> str:
    """Return a text in lower case with spaces between its words, or its characters in scripts without spaces."""
    if language == "tr":
        text = text.translate(_TURKISH)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_characters)


def is_spaceless(word: str) -> bool:
    """Whether a word of `split_words` is one character of a script without spaces."""
    return _SPACELESS.match(word) is not None


def tokens_of(language: str) -> Callable[[str], str]:
    """Return the function that gives a word's token in a language of `STEMMERS`."""
    return _remembered(language).__getitem__


class _Characters(dict[int, str]):
    """What each character of a text in lower case turns into. Filled as characters are met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _character(chr(code))
        return found


def _character(character: str) -> str:
    category = unicodedata.category(character)
    if _DIACRITICS.match(character):
        return ""
    if category == "Cf":  # soft hyphens, joiners and marks of direction are inside words
        return " " if ord(character) == _ZERO_WIDTH_SPACE else ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category[0] not in "LN" and category not in {"Co", "Mn", "Mc"}:
        return " "
    return f" {character} " if _SPACELESS.match(character) else character


_characters = _Characters()


class _Tokens(dict[str, str]):
    """Remembers the tokens of words in a language: most words of a text have been seen before."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._stem = _stemmer(language)

    def __missing__(self, word: str) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[word] = self._token(word)
        return found

    def _token(self, word: str) -> str:
        word = word[:LONGEST_WORD]
        if word.isdigit() and word.isascii():
            return word
        if not _SPACELESS.match(word):
            word = _without_diacritics(self._stemmed(word))
        return _ascii(word)

    def _stemmed(self, word: str) -> str:
        stem = self._stem
        if not word.isascii() or self._language in _NOT_LATIN:
            stem = _stemmer(_language_of(word, self._language))
        with _stemming:  # stemmers are not safe to share between threads
            return stem(word) or word


def _language_of(word: str, language: str) -> str:
    """The language to stem a word in: that of its text, if it is written in the script of this word."""
    first = ord(word[0])
    languages = next((languages for last, languages in _SCRIPTS if first <= last), ())
    if languages:
        return language if language in languages else languages[0]
    return DEFAULT if language in _NOT_LATIN else language


def _without_diacritics(word: str) -> str:
    if word.isascii():
        return word
    bare = _DIACRITICS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare.translate(_BARE))


def _ascii(word: str) -> str:
    """Letters and digits that stand for the word. No language has words that begin with q0 or q1.

    PostgreSQL takes 1e5x for a number and a letter, so a number with letters begins with a letter here.
    """
    if not word.isascii():
        return "q0" + word.encode("punycode").decode().replace("-", "q9")
    return "q1" + word if word[0].isdigit() else word


def spelled(token: str) -> str:
    """Return the stem that a token stands for, as it is written."""
    if token.startswith("q0"):
        with suppress(UnicodeError):  # a word of a text may look like one of our tokens
            return token[2:].replace("q9", "-").encode().decode("punycode")
    return token.removeprefix("q1")


@lru_cache(8)
def _remembered(language: str) -> _Tokens:
    return _Tokens(language)


@lru_cache
def _stemmer(language: str) -> Callable[[str], str]:
    stem: Callable[[str], str] = Stemmer.Stemmer(STEMMERS[language], 0).stemWord
    return stem
