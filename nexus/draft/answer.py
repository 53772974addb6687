"""What a model must have answered to be taken seriously."""

from __future__ import annotations

from collections.abc import Sized
from json import JSONDecoder
from typing import Annotated, Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from nexus.draft import BACKGROUND, CLAIM, HEADLINE, QUOTE, SUMMARY, WHAT_HAPPENED

#: Some models think aloud before they answer.
THOUGHTS = "</think>"
#: How many faults the model is told at once.
MOST_FAULTS = 8


class Wrong(Exception):
    """The answer can't be used. The message says why, to the model."""


def _printable(value: object) -> object:
    """Without what no database takes and nobody sees: control characters and halves of characters."""
    if not isinstance(value, str):
        return value
    return "".join(char for char in value if char in "\n\t" or category(char) not in {"Cc", "Cs"}).strip()


def _on_one_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def _sized(sizes: tuple[int, int], what: str) -> AfterValidator:
    """Checked here and not in the schema on the wire, where several servers refuse such keywords."""
    least, most = sizes

    def check(value: Sized) -> Sized:
        if not least <= len(value) <= most:
            raise ValueError(f"has {len(value)} {what}, must have {least} to {most}")
        return value

    return AfterValidator(check)


CLEAN = BeforeValidator(_printable)
ONE_LINE = BeforeValidator(_on_one_line)


class _Strict(BaseModel):
    """Other fields are passed over, but the schema that goes out forbids them: strict servers insist."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})


class SaidClaim(_Strict):
    text: Annotated[str, _sized(CLAIM, "characters"), ONE_LINE, CLEAN]
    quote: Annotated[str, _sized(QUOTE, "characters"), CLEAN]


class Answer(_Strict):
    headline: Annotated[str, _sized(HEADLINE, "characters"), ONE_LINE, CLEAN]
    summary: Annotated[str, _sized(SUMMARY, "characters"), ONE_LINE, CLEAN]
    what_happened: Annotated[list[SaidClaim], _sized(WHAT_HAPPENED, "claims")]
    background: Annotated[list[SaidClaim], _sized(BACKGROUND, "claims")]


SCHEMA: dict[str, Any] = Answer.model_json_schema()


def read(said: str) -> Answer:
    """Raises Wrong."""
    try:
        return Answer.model_validate(_json(said))
    except ValidationError as error:
        faults = [_fault(fault["loc"], fault["msg"]) for fault in error.errors()[:MOST_FAULTS]]
        raise Wrong("; ".join(faults) + ".") from error


def _fault(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place)) or 'the object'}: {message.removeprefix('Value error, ')}"


def _json(said: str) -> object:
    """The first object in an answer, also where it is fenced or has words around it."""
    spoken = said.rpartition(THOUGHTS)[2]
    try:
        return JSONDecoder().raw_decode(spoken, max(spoken.find("{"), 0))[0]
    except (ValueError, RecursionError) as error:
        raise Wrong("it is not JSON.") from error
