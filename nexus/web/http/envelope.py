"""The shapes of every answer: a result or a refusal. Each is serialized from the model that documents it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Request, Response
from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from nexus.errors import ApiError, RateLimited

T = TypeVar("T")
JSON = "application/json"
#: A moment as the API writes it. Pydantic alone would write `Z` for `+00:00`.
Moment = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
#: Turns an error into an answer with this status.
Refuse = Callable[[Request, ApiError, int], Response]


class Answer(BaseModel):
    """Made from whatever has attributes of these names. Its schema is built at its first use, not at the start."""

    model_config = ConfigDict(defer_build=True, from_attributes=True)


class CamelAnswer(Answer):
    """An answer about jobs and stories, with the camelCase names that editors' tools expect."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(serialization_alias=to_camel), serialize_by_alias=True
    )


class Data(Answer, Generic[T]):
    data: T


class Problem(Answer):
    code: str = Field(examples=["E_NOT_FOUND"])
    message: str = Field(examples=["Not found, or you don't have access."])
    request_id: str


class Refusal(Answer):
    error: Problem


class EditorialRefusal(CamelAnswer):
    success: Literal[False]
    error: str = Field(examples=["NOT_READY"])
    message: str
    request_id: str


def answer(data: Answer) -> Response:
    """A result in the envelope of the API: `{"data": …}`."""
    return answer_bare(Data(data=data))


def answer_bare(body: Answer) -> Response:
    """A result as it stands. What was not set is left out, not null."""
    return Response(body.model_dump_json(exclude_unset=True), media_type=JSON)


def refuse_in_envelope(request: Request, error: ApiError, status: int) -> Response:
    problem = Problem(code=error.code, message=error.message, request_id=request_id(request))
    return _refusal(Refusal(error=problem), error, status)


def refuse_editorially(request: Request, error: ApiError, status: int) -> Response:
    body = EditorialRefusal(
        success=False, error=error.code, message=error.message, request_id=request_id(request)
    )
    return _refusal(body, error, status)


def _refusal(body: Answer, error: ApiError, status: int) -> Response:
    headers = retry_after(error)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body.model_dump_json(), status, headers, media_type=JSON)


def retry_after(error: ApiError) -> dict[str, str]:
    """The header that says when to ask again, if that is known."""
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return {"Retry-After": str(error.retry_after)}
    return {}


def request_id(request: Request) -> str:
    found: str = request.scope["nexus.request_id"]
    return found


_MEANINGS = {
    400: "The request is not valid; the code says why.",
    401: "No valid token; or a JWT without the internal secret.",
    403: "Visible to you, but not yours to change; or your token has too small a scope.",
    404: "It does not exist, or is not visible to you.",
    409: "Not possible in its present state.",
    413: "The request is too large.",
    429: "Too many requests, too much at once, an allowance that is used up, or a draft requested a moment ago.",
    502: "The file store gave no upload link.",
    503: "A part of the server is unavailable.",
    504: "The file store was too slow.",
    507: "The disk is full, or your files take up as much space as they may.",
}


def refusals(*statuses: int, refusal: type[Answer] = Refusal) -> dict[int | str, dict[str, Any]]:
    """The documented refusals of an endpoint. Every API call may also be refused with 400, 401, 403, 429 or 503."""
    return {
        status: {"model": refusal, "description": _MEANINGS[status]}
        for status in sorted({400, 401, 403, 429, 503, *statuses})
    }


def answers(
    model: object, *statuses: int, refusal: type[Answer] = Refusal
) -> dict[int | str, dict[str, Any]]:
    """What an endpoint may answer: the model, or one of the refusals."""
    return {200: {"model": model, "description": "Done."}, **refusals(*statuses, refusal=refusal)}


def editorial_answers(model: object, *statuses: int) -> dict[int | str, dict[str, Any]]:
    return answers(model, *statuses, refusal=EditorialRefusal)
