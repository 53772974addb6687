"""How the endpoints of jobs and stories answer: in the shape that editors' pages rely on."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Response

from nexus.web.api.job_schemas import JobRefusal
from nexus.web.http.envelope import JSON

_MEANINGS = {
    400: "The request is not well-formed; `error` says how.",
    401: "No valid token, or no internal secret.",
    403: "Visible, but not yours to change.",
    404: "No such job, or not visible to you.",
    409: "Not possible in the present state.",
    413: "The request is too large.",
    429: "The day's allowance is used up, or a draft was asked for a moment ago.",
    503: "A part of the server is away.",
}


def answers(model: object, *statuses: int) -> dict[int | str, dict[str, Any]]:
    refused: dict[int | str, dict[str, Any]] = {
        status: {"model": JobRefusal, "description": _MEANINGS[status]}
        for status in sorted({400, 401, 503, *statuses})
    }
    return {200: {"model": model, "description": "Done."}, **refused}


def answer(body: dict[str, Any]) -> Response:
    return Response(json.dumps(body, ensure_ascii=False), media_type=JSON)
