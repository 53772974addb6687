"""Personal API tokens: made, listed and revoked by their owner."""

from __future__ import annotations

from uuid import UUID

from fastapi import Request, Response
from pydantic import BaseModel, Field

from nexus.libraries import tokens
from nexus.web.api.schemas import Done
from nexus.web.http.context import Nexus, Viewer, gate_of
from nexus.web.http.envelope import Answer, Data, Moment, answer, answers
from nexus.web.http.routing import Router
from nexus.web.http.scopes import is_for_people

router = Router(prefix="/tokens", tags=["tokens"])


class TokenBody(BaseModel):
    name: str = Field(examples=["My phone"])
    scope: str = Field(
        examples=["add"],
        description="`read`, `add` (adding items, and nothing else), `all`, or `feed` (the feed of published stories).",
    )


class TokenOut(Answer):
    id: UUID
    name: str
    scope: str
    created_at: Moment
    last_used_at: Moment | None = Field(description="To within ten minutes.")

    @classmethod
    def of(cls, token: tokens.Token) -> TokenOut:
        return cls(
            id=token.id,
            name=token.name,
            scope=token.scope.value,
            created_at=token.created_at,
            last_used_at=token.used_at,
        )


class TokenList(Answer):
    items: list[TokenOut]


class NewToken(TokenOut):
    token: str = Field(description="Send it as `Authorization: Bearer …`. It is shown only now.")


@router.get("", responses=answers(Data[TokenList], 403), summary="List your personal tokens")
@is_for_people
def list_tokens(nexus: Nexus, viewer: Viewer) -> Response:
    """Without the tokens themselves, which Nexus does not know."""
    with nexus.sessions.read() as session:
        found = tokens.list_tokens(session, viewer)
    return answer(TokenList(items=[TokenOut.of(token) for token in found]))


@router.post("", responses=answers(Data[NewToken], 403, 409, 413), summary="Make a personal token")
@is_for_people
def make_token(nexus: Nexus, viewer: Viewer, body: TokenBody) -> Response:
    """It acts as you within its scope, and calls with it need no `X-Nexus-Internal`."""
    with nexus.sessions.begin() as session:
        made, secret = tokens.make(session, viewer, body.name, body.scope)
    return answer(NewToken(**TokenOut.of(made).model_dump(), token=secret))


@router.delete("/{token_id}", responses=answers(Data[Done], 403, 404), summary="Revoke a personal token")
@is_for_people
def revoke_token(request: Request, nexus: Nexus, viewer: Viewer, token_id: UUID) -> Response:
    with nexus.sessions.begin() as session:
        tokens.revoke_token(session, viewer, token_id)
    gate_of(request).tokens.forget(lambda kept: kept.id == token_id)
    return answer(Done(done=True))
