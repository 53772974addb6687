"""Checks what a model answered, and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sized
from json import JSONDecoder
from typing import Annotated, Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from nexus.draft import BACKGROUND, CLAIM, HEADLINE, QUOTE, SUMMARY, SUMMARY_QUOTES, WHAT_HAPPENED

#: Some models think aloud before they answer.
THOUGHTS = "</think>"
#: How many faults the model is told about at once.
MOST_FAULTS = 8


class UnusableAnswer(Exception):
    """The answer can't be used. The message tells the model why."""


def _printable(value: object) -> object:
    """Drop what nobody sees and databases refuse: control characters and halves of surrogate pairs."""
    if not isinstance(value, str):
        return value
    return "".join(char for char in value if char in "\n\t" or category(char) not in {"Cc", "Cs"}).strip()


def _on_one_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def _sized(sizes: tuple[int, int], what: str) -> AfterValidator:
    """Check the size here: several servers refuse such keywords in the schema."""
    least, most = sizes

    def check(value: Sized) -> Sized:
        if not least <= len(value) <= most:
            raise ValueError(f"has {len(value)} {what}, must have {least} to {most}")
        return value

    return AfterValidator(check)


CLEAN = BeforeValidator(_printable)
ONE_LINE = BeforeValidator(_on_one_line)


def _forbid_others(schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = False
    schema["required"] = list(schema["properties"])
    for part in schema["properties"].values():
        part.pop("default", None)


class _Strict(BaseModel):
    """Other fields are ignored and some may be missing, but the schema that is sent allows neither: strict servers
    insist on that."""

    model_config = ConfigDict(json_schema_extra=_forbid_others)


class AnsweredClaim(_Strict):
    text: Annotated[str, _sized(CLAIM, "characters"), ONE_LINE, CLEAN]
    quote: Annotated[str, _sized(QUOTE, "characters"), CLEAN]


class StoryAnswer(_Strict):
    headline: Annotated[str, _sized(HEADLINE, "characters"), ONE_LINE, CLEAN]
    headline_quote: Annotated[str, _sized((0, QUOTE[1]), "characters"), CLEAN] = ""
    summary: Annotated[str, _sized(SUMMARY, "characters"), ONE_LINE, CLEAN]
    summary_quotes: Annotated[
        list[Annotated[str, _sized((0, QUOTE[1]), "characters"), CLEAN]],
        _sized((0, SUMMARY_QUOTES), "quotes"),
    ] = []
    what_happened: Annotated[list[AnsweredClaim], _sized(WHAT_HAPPENED, "claims")]
    background: Annotated[list[AnsweredClaim], _sized(BACKGROUND, "claims")]


SCHEMA: dict[str, Any] = StoryAnswer.model_json_schema()


def parse_answer(said: str) -> StoryAnswer:
    """Raises UnusableAnswer."""
    try:
        return StoryAnswer.model_validate(_json(said))
    except ValidationError as error:
        faults = [_fault(fault["loc"], fault["msg"]) for fault in error.errors()[:MOST_FAULTS]]
        raise UnusableAnswer("; ".join(faults) + ".") from error


def _fault(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place)) or 'the object'}: {message.removeprefix('Value error, ')}"


def _json(said: str) -> object:
    """Return the first object in an answer, even if it is fenced or has words around it."""
    spoken = said.rpartition(THOUGHTS)[2]
    try:
        return JSONDecoder().raw_decode(spoken, max(spoken.find("{"), 0))[0]
    except (ValueError, RecursionError) as error:
        raise UnusableAnswer("it is not JSON.") from error
