"""Transcripts in their formats, whole and damaged in every way that is easy to name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot")

VTT = """WEBVTT
Kind: captions
Language: en

NOTE made by hand

intro
00:00:01.000 --> 00:00:02.000 align:start
<v Ann>alpha <i>bravo</i>.

00:00:02.500 --> 00:00:04.000
<v Bo>charlie &amp; delta.

00:01:04.000 --> 00:01:06.000
<v Ann>echo
foxtrot.
"""
SRT = """1
00:00:01,000 --> 00:00:02,000
alpha <i>bravo</i>.

2
00:00:02,500 --> 00:00:04,000
charlie &amp; delta.

3
00:01:04,000 --> 00:01:06,000
echo
foxtrot.
"""
PODCAST_JSON = """{"version": "1.0.0", "segments": [
{"speaker": "Ann", "startTime": 1, "endTime": 2, "body": "alpha bravo."},
{"speaker": "Bo", "startTime": 2.5, "endTime": 4, "body": "charlie & delta."},
{"speaker": "Ann", "startTime": 64, "endTime": 66, "body": "echo foxtrot."}]}"""
PODCAST_HTML = """<cite>Ann:</cite><time>0:01</time><p>alpha bravo.</p>
<cite>Bo:</cite><time>0:02.5</time><p>charlie &amp; delta.</p>
<cite>Ann:</cite><time>1:04</time><p>echo foxtrot.</p>"""

Damage = Callable[[str], str]

#: Whatever is done to a file here, its words can still be read.
HARMLESS: dict[str, Damage] = {
    "nothing": lambda text: text,
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "old Mac lines": lambda text: text.replace("\n", "\r"),
    "no empty lines": lambda text: text.replace("\n\n", "\n"),
    "many empty lines": lambda text: text.replace("\n\n", "\n\n\n\n"),
    "lines of spaces": lambda text: text.replace("\n\n", "\n  \t\n"),
    "commas": lambda text: text.replace(".000", ",000").replace(".500", ",500"),
    "points": lambda text: text.replace(",000", ".000").replace(",500", ".500"),
    "no milliseconds": lambda text: text.replace(".000", "").replace(",000", ""),
    "one digit": lambda text: text.replace("00:00:0", "0:0:").replace("00:01:0", "0:1:"),
    "no hours": lambda text: text.replace("00:00:", "00:").replace("00:01:", "01:"),
    "spaces in clocks": lambda text: text.replace("00:00:", "00: 00: "),
    "short arrow": lambda text: text.replace("-->", "->"),
    "long dash": lambda text: text.replace("-->", "—>"),
    "no spaces": lambda text: text.replace(" --> ", "-->"),
    "tabs": lambda text: text.replace(" --> ", "\t-->\t"),
    "no end": lambda text: text.rstrip("\n"),
    "mark": lambda text: "\ufeff" + text,
    "spaces before": lambda text: "\n\n  " + text,
    "reversed times": lambda text: text.replace("00:00:04", "00:00:01"),
    "same times": lambda text: text.replace("00:00:02.500", "00:00:01.000"),
    "huge times": lambda text: text.replace("00:01:06", "999999999:99:99"),
    "negative times": lambda text: text.replace("00:00:01", "-00:00:01"),
    "overlap": lambda text: text.replace("00:00:02.000", "00:59:59.000"),
    "out of order": lambda text: text.replace("00:01:04", "00:00:00").replace("00:01:06", "00:00:00"),
    "style": lambda text: text.replace("intro\n", "STYLE\n::cue { color: red }\n\n"),
    "region": lambda text: text.replace("intro\n", "REGION\nid:fred\nwidth:40%\n\n"),
    "open tags": lambda text: text.replace("</i>", ""),
    "closing tags": lambda text: text.replace("<i>", ""),
    "classes": lambda text: text.replace("<v Ann>", "<v.first.loud Ann>"),
    "nameless voice": lambda text: text.replace("<v Ann>", "<v>"),
    "inner times": lambda text: text.replace("bravo", "<00:00:01.500><c>bravo</c>"),
    "colours": lambda text: text.replace("echo", "<font color='#ff0000'>echo</font>"),
    "positions": lambda text: text.replace("echo", "{\\an8}echo"),
    "zeros between": lambda text: text.replace("bravo", "br\0avo"),
    "invisible": lambda text: text.replace("bravo", "\u200ebravo\u202c"),
    "twice": lambda text: text + "\n" + (text.partition("intro")[2] or text),
    "no numbers": lambda text: text.replace("\n2\n", "\n").replace("\n3\n", "\n"),
    "wrong numbers": lambda text: text.replace("\n2\n", "\n77777\n").replace("\n3\n", "\n1\n"),
    "long settings": lambda text: text.replace("align:start", "align:start " * 1000),
    "one broken time": lambda text: text.replace("00:00:02", "oo:oo:o2"),
    "half an arrow": lambda text: text.replace("00:00:02.500 -->", "00:00:02.500 --"),
}
#: What this does to a file may cost it anything but its reader's life.
HARMFUL: dict[str, Damage] = {
    "nothing": lambda text: "",
    "spaces": lambda text: " \n\t\n" * 50,
    "first half": lambda text: text[: len(text) // 2],
    "second half": lambda text: text[len(text) // 2 :],
    "header alone": lambda text: text.split("\n", maxsplit=1)[0],
    "no header": lambda text: text.partition("\n")[2],
    "no arrows": lambda text: text.replace("-->", ""),
    "arrows alone": lambda text: "-->\n" * 1000,
    "every arrow twice": lambda text: text.replace("-->", "--> -->"),
    "no colons": lambda text: text.replace(":", ""),
    "no line ends": lambda text: text.replace("\n", " "),
    "a line end everywhere": "\n".join,
    "letters for digits": lambda text: text.translate(str.maketrans("0123456789", "abcdefghij")),
    "other digits": lambda text: text.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    "tags unclosed": lambda text: text.replace(">", ""),
    "tags nested": lambda text: text.replace("alpha", "<v <v <c <b " * 500 + "alpha"),
    "voices without end": lambda text: text.replace("alpha", "<v a>" * 5000 + "alpha"),
    "references": lambda text: text.replace("&amp;", "&#0;&#xd800;&#99999999999;&nosuch;&"),
    "controls": lambda text: text.replace(" ", "\x01\x02\x03"),
    "halves of characters": lambda text: text.replace("a", "\udc80"),
    "upside down": lambda text: "\n".join(reversed(text.split("\n"))),
    "backwards": lambda text: text[::-1],
    "sorted": lambda text: "\n".join(sorted(text.split("\n"))),
    "the page of an error": lambda text: f"<!doctype html><title>404</title><p>Not found: {text}",
    "entities": lambda text: f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b '{text}'>]><a>&b;</a>",
    "braces": lambda text: "{" * 5000 + text,
    "brackets": lambda text: "[" * 5000 + text,
    "quoted": lambda text: f'{{"text": {text!r}}}',
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252")


def damaged(kinds: dict[str, Damage], first: str) -> Iterator[tuple[str, str]]:
    """Both files with one damage, and then with each other one."""
    for name, whole in (("vtt", VTT), ("srt", SRT)):
        once = kinds[first](whole)
        yield f"{name}: {first}", once
        for second, damage in kinds.items():
            yield f"{name}: {first}, then {second}", damage(once)
