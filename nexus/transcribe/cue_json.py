"""Reads transcripts in JSON: the podcast namespace's, YouTube's json3, Whisper's, and plain lists of cues."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nexus.transcribe import UNTIMED, Cue, Transcript
from nexus.transcribe.moments import moment_ms, with_ends

#: The names of the list of cues.
_LISTS = (
    "segments",
    "events",
    "cues",
    "captions",
    "transcript",
    "transcription",
    "utterances",
    "results",
    "items",
    "chunks",
)
#: The names of the parts of a cue, and how many milliseconds a number stands for.
_STARTS = {"startTime": 1000, "start": 1000, "start_time": 1000, "from": 1000, "tStartMs": 1, "start_ms": 1}
_ENDS = {"endTime": 1000, "end": 1000, "end_time": 1000, "to": 1000, "end_ms": 1}
_LENGTHS = {"duration": 1000, "dur": 1000, "dDurationMs": 1}
_TEXTS = ("body", "text", "utf8", "content")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")
#: Whisper names a language in English.
_NAMED = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
}


def read_cue_json(text: str) -> Transcript | None:
    """Read a transcript in JSON, which is empty if nothing is said in it. None if it is not JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    cues = [_cue(one) for one in _list(found)]
    spoken = [cue for cue in cues if cue is not None and cue.text.strip()]
    if not spoken and isinstance(found, dict) and isinstance(found.get("text"), str):
        spoken = [Cue(UNTIMED, UNTIMED, found["text"])]
    return Transcript(tuple(with_ends(spoken)), language=_language(found))


def _list(found: Any) -> list[Any]:
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        for name in _LISTS:
            if isinstance(inner := found.get(name), dict):
                inner = next((inner[one] for one in _LISTS if isinstance(inner.get(one), list)), None)
            if isinstance(inner, list):
                return inner
    return []


def _language(found: Any) -> str | None:
    given = found.get("language") if isinstance(found, dict) else None
    if not isinstance(given, str):
        return None
    given = _NAMED.get(given.lower(), given)
    return given.replace("_", "-") if _LANGUAGE.fullmatch(given) else None


def _cue(given: Any) -> Cue | None:
    if isinstance(given, str):
        return Cue(UNTIMED, UNTIMED, given)
    if not isinstance(given, dict) or (text := _text(given)) is None:
        return None
    speaker = given.get("speaker")
    timed = given
    if isinstance(span := given.get("timestamp"), list) and len(span) == 2:
        timed = {"start": span[0], "end": span[1]}
    starts = _moment(timed, _STARTS)
    if starts is None:
        return Cue(UNTIMED, UNTIMED, text, speaker if isinstance(speaker, str) else None)
    ends, lasts = _moment(timed, _ENDS), _moment(timed, _LENGTHS)
    if ends is None:
        ends = UNTIMED if lasts is None else starts + lasts
    return Cue(starts, ends, text, speaker if isinstance(speaker, str) else None)


def _text(given: Mapping[str, Any]) -> str | None:
    if isinstance(pieces := given.get("segs"), list):
        return "".join(str(one.get("utf8") or "") for one in pieces if isinstance(one, dict))
    return next((given[name] for name in _TEXTS if isinstance(given.get(name), str)), None)


def _moment(given: Mapping[str, Any], names: Mapping[str, int]) -> int | None:
    moments = (moment_ms(given[name], unit) for name, unit in names.items() if name in given)
    return next((one for one in moments if one is not None), None)
