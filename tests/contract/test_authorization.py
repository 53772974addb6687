"""Who may call what: every endpoint of the OpenAPI document, as every kind of caller."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import httpx2
import jwt
import pytest
from sqlalchemy import bindparam, text, update
from structlog.testing import capture_logs

from nexus.app import App
from nexus.db.editorial import jobs as jobs_table
from nexus.db.editorial import stories as stories_table
from nexus.db.feeds import feed_items, subscriptions
from nexus.db.session import Session, Statement, connect
from nexus.db.tables import invitations as invitations_table
from nexus.db.tables import libraries as libraries_table
from nexus.db.tables import media, memberships
from nexus.draft import Draft, Evidence, StoryClaim
from nexus.editorial import jobs, stories
from nexus.extract import Asset, Extraction, Fragment
from nexus.extract.feeds.results import FeedEntry, FeedReading
from nexus.libraries import access, catalog, invitations, members, tokens
from nexus.libraries.access import Role
from nexus.libraries.invitations import Invitee
from nexus.media import uploads
from nexus.media.feeds import arrivals
from nexus.media.feeds.reading import told_items
from nexus.media.feeds.subscribing import Wishes, subscribe_unseen
from nexus.media.lifecycle import mark_ready_for_reading
from nexus.media.texts import Found
from nexus.media.uploads import Expected
from nexus.settings import Settings
from nexus.states.media import MediaStatus
from nexus.web.http import cookies
from nexus.web.http.bearer import issue_token, user_of
from tests.kit.http import Site, headers_of, job_problem, problem
from tests.kit.media import everything_of, start_extraction, walk_media_to
from tests.kit.sign_ins import link_key, session_key, token_of


class May(NamedTuple):
    """What each caller is answered. A stranger belongs to no library that holds the media; the others do.

    The creator made the media and is a plain member; the admin did not make it.
    """

    stranger: int
    member: int
    admin: int
    creator: int


PUBLIC = None
EVERYONE = May(200, 200, 200, 200)
READERS = May(404, 200, 200, 200)
ADMINS = May(404, 403, 200, 403)
#: A job is its creator's, and of those who administer its library. This one has its text already.
OWNERS = May(404, 404, 200, 200)
OWNERS_BUT_LATE = May(404, 404, 409, 409)

#: Nothing is being imported here; a batch is visible only to its owner. A file has nothing to play.
BUT_NOT_NOW = May(409, 409, 409, 409)
NOBODYS = May(404, 404, 404, 404)

#: Everybody may ask, about an address that Nexus does not fetch from.
NOT_FETCHED = May(400, 400, 400, 400)

#: Every endpoint. A new one fails `test_every_endpoint_is_in_the_table_of_rights` until it says here who may call it.
TABLE: dict[str, May | None] = {
    "POST /media": EVERYONE,
    "POST /media/url": EVERYONE,
    "POST /media/upload/init": EVERYONE,
    "POST /media/{media_id}/ingest": May(404, 403, 403, 200),
    "GET /media/{media_id}/file": READERS,
    "GET /media": EVERYONE,
    "GET /search": EVERYONE,
    "GET /media/{media_id}/similar": READERS,
    "GET /media/{media_id}": READERS,
    "GET /media/{media_id}/fragments": READERS,
    "GET /media/{media_id}/document": READERS,
    "GET /media/{media_id}/assets/{name}": READERS,
    "GET /media/{media_id}/history": READERS,
    "GET /media/{media_id}/revisions": READERS,
    "GET /media/{media_id}/revisions/{number}": READERS,
    "GET /media/{media_id}/revisions/{number}/diff": READERS,
    "POST /media/{media_id}/revisions/{number}/use": ADMINS,
    "POST /media/{media_id}/refresh": ADMINS,
    "POST /media/{media_id}/text": May(404, 403, 403, 200),
    # It is neither a video nor an episode.
    "PUT /media/{media_id}/transcript": May(404, 400, 400, 400),
    "GET /media/{media_id}/changes": READERS,
    "POST /media/retry": EVERYONE,
    "POST /media/remove": EVERYONE,
    "POST /media/mark": EVERYONE,
    "GET /media/{media_id}/shelf": READERS,
    "PATCH /media/{media_id}/shelf": READERS,
    "PUT /media/{media_id}/progress": READERS,
    "GET /media/{media_id}/sound": NOBODYS,
    "GET /media/{media_id}/heard": READERS,
    "PUT /media/{media_id}/heard": READERS,
    "GET /listening": EVERYONE,
    "POST /listening": May(404, 409, 409, 409),
    "PUT /listening/{media_id}": NOBODYS,
    "DELETE /listening/{media_id}": EVERYONE,
    "POST /media/{media_id}/retry": May(404, 403, 200, 200),
    "DELETE /media/{media_id}": May(404, 403, 200, 200),
    "GET /libraries": EVERYONE,
    "POST /libraries": EVERYONE,
    "GET /libraries/{library_id}": READERS,
    "PATCH /libraries/{library_id}": ADMINS,
    "DELETE /libraries/{library_id}": ADMINS,
    "GET /libraries/{library_id}/media": READERS,
    "POST /libraries/{library_id}/media": May(404, 403, 403, 403),
    "DELETE /libraries/{library_id}/media/{media_id}": ADMINS,
    "GET /libraries/{library_id}/members": READERS,
    "POST /libraries/{library_id}/members": ADMINS,
    "DELETE /libraries/{library_id}/members/{user_id}": ADMINS,
    "POST /libraries/{library_id}/invitations": ADMINS,
    "GET /libraries/{library_id}/invitations": ADMINS,
    "DELETE /libraries/{library_id}/invitations/{invitation_id}": ADMINS,
    "GET /subscriptions": EVERYONE,
    "POST /subscriptions": NOT_FETCHED,
    "POST /feeds/preview": NOT_FETCHED,
    "GET /feeds/opml": EVERYONE,
    "POST /feeds/opml": EVERYONE,
    "GET /subscriptions/{subscription_id}": READERS,
    "PATCH /subscriptions/{subscription_id}": ADMINS,
    "DELETE /subscriptions/{subscription_id}": ADMINS,
    "GET /subscriptions/{subscription_id}/items": READERS,
    "GET /subscriptions/{subscription_id}/items/{item_id}": READERS,
    "POST /subscriptions/{subscription_id}/items/{item_id}/take": ADMINS,
    "POST /subscriptions/{subscription_id}/poll": READERS,
    "POST /subscriptions/{subscription_id}/take": ADMINS,
    "GET /invitations": EVERYONE,
    "POST /invitations/{invitation_id}/accept": NOBODYS,
    "POST /invitations/{invitation_id}/decline": NOBODYS,
    "GET /me": EVERYONE,
    "PATCH /me": EVERYONE,
    "GET /people": EVERYONE,
    "GET /audit": EVERYONE,
    "POST /api/ingestion-jobs": EVERYONE,
    "GET /api/ingestion-jobs": EVERYONE,
    "GET /api/ingestion-jobs/{job_id}": OWNERS,
    "DELETE /api/ingestion-jobs/{job_id}": OWNERS,
    "POST /api/ingestion-jobs/{job_id}/fetch": OWNERS_BUT_LATE,
    "POST /api/ingestion-jobs/{job_id}/extract": OWNERS,
    "POST /api/ingestion-jobs/{job_id}/manual-entry": OWNERS_BUT_LATE,
    "POST /api/ingestion-jobs/{job_id}/retry": OWNERS_BUT_LATE,
    "POST /api/ingestion-jobs/{job_id}/generate": OWNERS,
    "POST /api/ingestion-jobs/{job_id}/regenerate": OWNERS_BUT_LATE,
    "POST /api/ingestion-jobs/failed/retry": EVERYONE,
    "GET /api/stories": EVERYONE,
    "GET /api/stories.atom": EVERYONE,
    "GET /api/stories/{story_id}": OWNERS,
    "PATCH /api/stories/{story_id}": OWNERS,
    "GET /api/stories/{story_id}/export": OWNERS,
    "POST /api/stories/{story_id}/correct": OWNERS_BUT_LATE,
    "POST /api/stories/{story_id}/{verb}": OWNERS,
    "GET /imports": EVERYONE,
    "POST /imports/batches": EVERYONE,
    "POST /imports/attempt/pause": BUT_NOT_NOW,
    "POST /imports/attempt/resume": BUT_NOT_NOW,
    "POST /imports/batches/{batch_id}/sources": NOBODYS,
    "PUT /imports/batches/{batch_id}/sources/{source_id}": NOBODYS,
    "DELETE /imports/batches/{batch_id}/sources/{source_id}": NOBODYS,
    "PUT /imports/batches/{batch_id}/order": NOBODYS,
    "POST /imports/batches/{batch_id}/start": NOBODYS,
    "DELETE /imports/batches/{batch_id}": NOBODYS,
    "GET /imports/batches/{batch_id}/leave": NOBODYS,
    "GET /tokens": EVERYONE,
    "POST /tokens": EVERYONE,
    "DELETE /tokens/{token_id}": NOBODYS,
    "GET /events": EVERYONE,
    "GET /healthz": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": PUBLIC,
}
GUARDED = {call: may for call, may in TABLE.items() if may is not None}

#: Endpoints that need a readable media; the others get a failed one.
READABLE = {
    "GET /media/{media_id}/document",
    "GET /media/{media_id}/assets/{name}",
    "GET /media/{media_id}/revisions/{number}",
    "GET /media/{media_id}/revisions/{number}/diff",
    "POST /media/{media_id}/revisions/{number}/use",
    "POST /media/{media_id}/refresh",
}
PICTURE = Asset("picture.png", "image/png", b"\x89PNG")

URL = "https://example.com/guarded"
PRIVATE = "http://10.0.0.1/feed"
OPML = f'<opml version="2.0"><body><outline xmlUrl="{PRIVATE}"/></body></opml>'
STRANGER = Invitee(email="somebody.else@example.com")
ARTICLE = {"title": "A title", "text": "A sentence of this article. " * 10}
FILE = {"kind": "pdf", "filename": "a.pdf", "content_type": "application/pdf", "size_bytes": 21}


WORDING = {
    "revision": 1,
    "headline": "A title of a story",
    "summary": "What a reader must know of it, in one sentence or in two.",
    "whatHappened": [{"text": "Something happened here.", "quote": ""}],
    "background": [],
}
DRAFT = Draft(
    WORDING["headline"],
    WORDING["summary"],
    (StoryClaim("Something happened here.", Evidence("", None, None)),),
    (),
    "tests",
    "1",
    0,
)


_RENAME_STORY = Statement(
    update(stories_table).where(stories_table.c.id == bindparam("story_id")).values(id=bindparam("media_id"))
)
_RENAME_INVITATION = Statement(
    update(invitations_table)
    .where(invitations_table.c.id == bindparam("invitation_id"))
    .values(id=bindparam("media_id"))
)
_RENAME_SUBSCRIPTION = Statement(
    update(subscriptions)
    .where(subscriptions.c.id == bindparam("subscription_id"))
    .values(id=bindparam("media_id"))
)
_RENAME_FEED_ITEM = Statement(
    update(feed_items)
    .where(feed_items.c.subscription_id == bindparam("media_id"))
    .values(id=bindparam("media_id"))
)
_RENAME_JOB = Statement(
    update(jobs_table).where(jobs_table.c.id == bindparam("job_id")).values(id=bindparam("media_id"))
)


@dataclass(frozen=True)
class World:
    """A file of the creator, failed or readable, in a library of the admin's with a member and a guest in it.

    Beside it a job, a story and an invitation of somebody else, under the same id.
    """

    app: App
    stranger: UUID = field(default_factory=uuid4)
    member: UUID = field(default_factory=uuid4)
    admin: UUID = field(default_factory=uuid4)
    creator: UUID = field(default_factory=uuid4)
    guest: UUID = field(default_factory=uuid4)

    def build(self, *, readable: bool = False) -> tuple[UUID, UUID]:
        body = b"%PDF-" + uuid4().bytes
        media_id = uploads.take_in(
            self.app.sessions, self.app.files, self.creator, Expected(**FILE), [body]
        ).media_id
        if readable:
            found = Extraction("A title", (Fragment("text"),), assets=(PICTURE,))
            attempt = start_extraction(self.app, media_id)
            with self.app.sessions.begin() as session:
                mark_ready_for_reading(session, media_id, attempt, Found(found, "tests"))
        else:
            walk_media_to(self.app, media_id, MediaStatus.FAILED)
        with self.app.sessions.begin() as session:
            for user in (self.stranger, self.member, self.admin, self.guest):
                access.ensure_user(session, user)
            library = catalog.create_library(session, self.creator, "Shared")
            catalog.add_media(session, library, media_id, self.creator)
            job_id = jobs.queue_job(session, self.creator, library, None, {})
            jobs.mark_entered(session, job_id, ARTICLE["title"], ARTICLE["text"], str(self.creator))
            session.run(_RENAME_JOB, job_id=job_id, media_id=media_id)
            story_id = uuid4()
            stories.save_story(session, jobs.find_job(session, media_id), DRAFT, story_id, str(self.creator))
            session.run(_RENAME_STORY, story_id=story_id, media_id=media_id)
            catalog.remove_media(
                session, access.default_library(session, self.creator), media_id, self.creator
            )
            members.join(session, library, self.admin, Role.ADMIN)
            for user in (self.member, self.guest):
                members.join(session, library, user, Role.MEMBER)
            members.set_role(session, library, self.creator, Role.MEMBER, self.admin)
            made = invitations.invite(session, library, self.admin, STRANGER, Role.MEMBER, timedelta(days=1))
            session.run(_RENAME_INVITATION, invitation_id=made.id, media_id=media_id)
            self._subscribe(session, media_id, library)
        return media_id, library

    def _subscribe(self, session: Session, media_id: UUID, library: UUID) -> None:
        """To a feed with one item."""
        url = f"https://example.com/{media_id}/feed"
        found = subscribe_unseen(session, self.admin, url, Wishes(), library)
        assert found is not None
        reading = FeedReading(
            entries=(FeedEntry(guid="one", title="One", url=f"https://example.com/{media_id}"),)
        )
        session.run(_RENAME_SUBSCRIPTION, subscription_id=found.id, media_id=media_id)
        arrivals.write_arrivals(session, media_id, arrivals.sort_out([], told_items(reading, session.now)))
        session.run(_RENAME_FEED_ITEM, media_id=media_id)


def call(
    client: httpx2.Client,
    endpoint: str,
    headers: dict[str, str],
    media_id: UUID,
    library_id: UUID,
    user_id: UUID,
) -> httpx2.Response:
    """A valid request."""
    method, _, path = endpoint.partition(" ")
    path = path.format(
        media_id=media_id,
        job_id=media_id,
        story_id=media_id,
        verb="discard",
        batch_id=media_id,
        source_id=media_id,
        library_id=library_id,
        invitation_id=media_id,
        subscription_id=media_id,
        item_id=media_id,
        user_id=user_id,
        token_id=media_id,
        name=PICTURE.name,
        number=1,
    )
    path += "?with=1" if path.endswith("/diff") else ""
    bodies = {
        "POST /media": {"kind": "web_article", "url": URL},
        "POST /media/url": {"kind": "web_article", "url": URL},
        "POST /media/upload/init": FILE,
        "POST /media/{media_id}/text": {"text": "A text."},
        "POST /media/retry": {"media_ids": [str(media_id)]},
        "POST /media/remove": {"media_ids": [str(media_id)]},
        "POST /media/mark": {"media_ids": [str(media_id)], "read": True},
        "PATCH /media/{media_id}/shelf": {"title": "My own"},
        "PUT /media/{media_id}/progress": {"revision": 1, "fraction": 0.5},
        "PUT /media/{media_id}/heard": {"seconds": 12.5},
        "POST /listening": {"media_id": str(media_id)},
        "PUT /listening/{media_id}": {"position": 0},
        "PATCH /libraries/{library_id}": {"name": "Renamed"},
        "POST /libraries": {"name": "New"},
        "POST /tokens": {"name": "New", "scope": "read"},
        "POST /api/ingestion-jobs": ARTICLE,
        "POST /api/ingestion-jobs/{job_id}/manual-entry": ARTICLE,
        "POST /imports/batches": {"name": "New"},
        "PUT /imports/batches/{batch_id}/order": {"source_ids": []},
        "POST /api/ingestion-jobs/failed/retry": {"errorCode": "E_ANY"},
        "PATCH /api/stories/{story_id}": WORDING,
        "POST /api/stories/{story_id}/correct": WORDING,
        "POST /api/stories/{story_id}/{verb}": {"revision": 1},
        "POST /libraries/{library_id}/media": {"media_id": str(media_id)},
        "POST /libraries/{library_id}/invitations": {"email": "ben@example.com"},
        "PATCH /me": {"name": "Somebody"},
        "POST /subscriptions": {"url": PRIVATE},
        "POST /feeds/preview": {"url": PRIVATE},
        "POST /feeds/opml": {"opml": OPML},
        "PATCH /subscriptions/{subscription_id}": {"status": "paused"},
        "POST /libraries/{library_id}/members": {"user_id": str(user_id), "role": "member"},
    }
    params = {"name": "a.txt"} if endpoint.endswith(("/sources", "{source_id}")) else None
    with client.stream(method, path, headers=headers, params=params, json=bodies.get(endpoint)) as response:
        if response.headers["content-type"].startswith("text/event-stream"):
            return response  # which never ends
        response.read()
        return response


def test_every_endpoint_is_in_the_table_of_rights(site: Site) -> None:
    document = site.anyone().get("/openapi.json").json()
    found = {f"{method.upper()} {path}" for path, calls in document["paths"].items() for method in calls}
    assert found == set(TABLE)


def test_the_openapi_document_says_which_endpoints_are_public(site: Site) -> None:
    document = site.anyone().get("/openapi.json").json()
    for endpoint, may in TABLE.items():
        method, _, path = endpoint.partition(" ")
        wanted = document["paths"][path][method.lower()]["security"]
        assert (wanted == []) == (may is PUBLIC), endpoint


def test_public_endpoints_answer_without_a_token(site: Site) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
        assert site.anyone().get(path).status_code == 200, path


def test_every_role_gets_the_answer_that_the_table_of_rights_says(site: Site) -> None:
    """The whole table; whatever may have changed its world gets a new one."""
    client, seen = site.anyone(), {}
    unchanged: dict[bool, tuple[World, UUID, UUID]] = {}
    for endpoint in GUARDED:
        statuses, readable = [], endpoint in READABLE
        for role in May._fields:
            if readable not in unchanged:
                world = World(site.app)
                unchanged[readable] = (world, *world.build(readable=readable))
            world, media_id, library_id = unchanged[readable]
            viewer = getattr(world, role)
            headers = headers_of(site.app.settings, viewer)
            answer = call(client, endpoint, headers, media_id, library_id, world.guest)
            statuses.append(answer.status_code)
            expect_code(endpoint, answer)
            if answer.status_code == 200 and not endpoint.startswith("GET"):
                del unchanged[readable]
            if role == "stranger" and endpoint.startswith("GET") and endpoint != "GET /events":
                assert str(media_id) not in answer.text
                assert str(library_id) not in answer.text
        seen[endpoint] = May(*statuses)
    assert seen == GUARDED


def expect_code(endpoint: str, answer: httpx2.Response) -> None:
    codes = {403: "E_FORBIDDEN", 404: "E_NOT_FOUND", 409: "E_INVALID_STATE", 400: "E_FEED_UNREACHABLE"}
    if endpoint.endswith("/transcript"):
        codes[400] = "E_INVALID_REQUEST"
    if answer.status_code != 200:
        said = job_problem if "/api/" in endpoint else problem
        assert said(answer) == (answer.status_code, codes[answer.status_code]), endpoint


def test_an_invisible_item_answers_like_a_missing_one(site: Site) -> None:
    """The same answer to the letter, but for the request id, which is given here."""
    client = site.anyone()
    world = World(site.app)
    media_id, library_id = world.build()
    headers = {**headers_of(site.app.settings, world.stranger), "X-Request-ID": "the-same"}
    for endpoint, may in GUARDED.items():
        if may.stranger == 404:
            hidden = call(client, endpoint, headers, media_id, library_id, world.guest)
            missing = call(client, endpoint, headers, uuid4(), uuid4(), uuid4())
            assert (hidden.status_code, hidden.content) == (missing.status_code, missing.content), endpoint
            assert sorted(hidden.headers) == sorted(missing.headers)


@pytest.mark.parametrize(
    "endpoint", ["POST /libraries/{library_id}/media", "DELETE /libraries/{library_id}/media/{media_id}"]
)
def test_an_admin_can_not_find_out_which_media_exist(site: Site, endpoint: str) -> None:
    """Their own library does not let them look into others."""
    world = World(site.app)
    media_id, _ = world.build()
    with site.app.sessions.begin() as session:
        own = catalog.create_library(session, world.stranger, "Own")
    headers = {**headers_of(site.app.settings, world.stranger), "X-Request-ID": "the-same"}
    hidden = call(site.anyone(), endpoint, headers, media_id, own, world.guest)
    missing = call(site.anyone(), endpoint, headers, uuid4(), own, world.guest)
    assert problem(hidden) == (404, "E_NOT_FOUND")
    assert hidden.content == missing.content


def test_malformed_ids_answer_like_missing_items(site: Site) -> None:
    caller = site.caller()
    for path in ("/media/rubbish", "/media/1", "/libraries/rubbish", "/libraries/%00/members"):
        assert problem(caller.get(path)) == (404, "E_NOT_FOUND")


Forge = Callable[[Settings, UUID], dict[str, str]]


def claims(settings: Settings, user: UUID, **changes: object) -> dict[str, Any]:
    """The claims of a good token, but for these; None leaves one out."""
    good = {
        "iss": settings.jwt_issuer,
        "aud": settings.jwt_audience,
        "sub": str(user),
        "exp": int(time.time()) + 3600,
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def signed(**changes: object) -> Forge:
    def forge(settings: Settings, user: UUID) -> dict[str, str]:
        return bearer(settings, jwt.encode(claims(settings, user, **changes), settings.jwt_secret, "HS256"))

    return forge


def bearer(settings: Settings, token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "X-Nexus-Internal": settings.internal_secret}


def without(name: str) -> Forge:
    return lambda settings, user: {k: v for k, v in headers_of(settings, user).items() if k != name}


def replaced(name: str, value: str) -> Forge:
    return lambda settings, user: {**headers_of(settings, user), name: value}


def unsigned(settings: Settings, user: UUID) -> dict[str, str]:
    return bearer(settings, jwt.encode(claims(settings, user), None, "none"))


def stripped(settings: Settings, user: UUID) -> dict[str, str]:
    """A good token whose signature is cut off."""
    return bearer(settings, issue_token(settings, user).rpartition(".")[0] + ".")


def of_another_secret(settings: Settings, user: UUID) -> dict[str, str]:
    return bearer(settings, jwt.encode(claims(settings, user), "another secret, as long as ours is", "HS256"))


def of_another_length(settings: Settings, user: UUID) -> dict[str, str]:
    """Signed with the right secret by an algorithm that nobody chose."""
    key = settings.jwt_secret.encode()
    return bearer(settings, by_hand({"alg": "HS384"}, claims(settings, user), key, "sha384"))


def of_the_pages(settings: Settings, user: UUID) -> dict[str, str]:
    sessions = connect(settings.database)
    key = session_key(sessions, user)
    sessions.dispose()
    return bearer(settings, key)


def of_a_feed(settings: Settings, user: UUID) -> dict[str, str]:
    sessions = connect(settings.database)
    token = token_of(sessions, user, "feed")
    sessions.dispose()
    return bearer(settings, token)


def nested(settings: Settings, user: UUID) -> dict[str, str]:
    """A header that is too deep to be parsed."""
    return bearer(settings, f"{encoded(b'[' * 20_000)}.{encoded(b'{}')}.x")


def by_hand(header: dict[str, str], payload: dict[str, Any], key: bytes, digest: str = "sha256") -> str:
    """A token that PyJWT would refuse to make."""
    message = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(payload).encode())}"
    return f"{message}.{encoded(hmac.new(key, message.encode(), digest).digest())}"


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


BAD: dict[str, Forge] = {
    "nothing at all": lambda *_: {},
    "no token": without("Authorization"),
    "no scheme": replaced("Authorization", "abc"),
    "another scheme": replaced("Authorization", "Basic bmV4dXM6bmV4dXM="),
    "an empty token": replaced("Authorization", "Bearer"),
    "a bad token": replaced("Authorization", "Bearer rubbish"),
    "a bad token of three parts": replaced("Authorization", "Bearer a.b.c"),
    "a token with an accent": replaced("Authorization", "Bearer é.é.é".encode().decode("latin-1")),
    "a deep token": nested,
    "a wrong issuer": signed(iss="somebody else"),
    "no issuer": signed(iss=None),
    "a wrong audience": signed(aud="somebody else"),
    "no audience": signed(aud=None),
    "expired": signed(exp=1),
    "no expiry": signed(exp=None),
    "not yet": signed(nbf=2**32),
    "no user": signed(sub=None),
    "an empty user": signed(sub=""),
    "a blank user": signed(sub=" \t"),
    "an endless user": signed(sub="x" * 256),
    "a user who can't be written": lambda settings, user: bearer(
        settings,
        by_hand({"alg": "HS256"}, claims(settings, user, sub="\ud800"), settings.jwt_secret.encode()),
    ),
    "a user who is a number": lambda settings, user: bearer(
        settings, by_hand({"alg": "HS256"}, claims(settings, user, sub=42), settings.jwt_secret.encode())
    ),
    "alg none": unsigned,
    "no signature": stripped,
    "another algorithm": of_another_length,
    "a wrong secret": of_another_secret,
    "a session of the pages": of_the_pages,
    "the token of a feed": of_a_feed,
    "a personal token that was never made": replaced("Authorization", f"Bearer {tokens.PREFIX}{'x' * 43}"),
    "a time that is no number": signed(exp=10**400),
    "no internal header": without("X-Nexus-Internal"),
    "a wrong internal header": replaced("X-Nexus-Internal", "rubbish"),
    "an empty internal header": replaced("X-Nexus-Internal", ""),
    "an internal header with an accent": replaced("X-Nexus-Internal", "é"),
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_bad_credentials_open_nothing(site: Site) -> None:
    """Every kind of bad credentials, on every endpoint; none of it gets as far as a database."""
    world = World(site.app)
    media_id, library_id = world.build()
    before, rows = everything_of(site.app.sessions, media_id), counts(site.app)
    client, seen = site.anyone(), set()
    for name, forge in BAD.items():
        headers = {
            key: value.encode("latin-1") for key, value in forge(site.app.settings, world.admin).items()
        }
        for endpoint in GUARDED:
            answer = call(client, endpoint, headers, media_id, library_id, world.guest)
            said = job_problem if "/api/" in endpoint else problem
            seen.add((name, endpoint, *said(answer)))
    assert seen == {(name, endpoint, 401, "E_UNAUTHORIZED") for name in BAD for endpoint in GUARDED}
    assert (everything_of(site.app.sessions, media_id), counts(site.app)) == (before, rows)


def counts(app: App) -> list[int]:
    with app.sessions.engine.connect() as connection:
        return [
            connection.exec_driver_sql(f"SELECT count(*) FROM {table.name}").scalar_one() for table in TABLES
        ]


TABLES = (media, libraries_table, memberships)


def test_every_bad_token_gets_the_same_refusal(site: Site) -> None:
    """A caller does not learn which of the two it was."""
    client = site.anyone()
    bodies = {
        client.get(
            "/media",
            headers={
                **{key: value.encode("latin-1") for key, value in forge(site.app.settings, uuid4()).items()},
                "X-Request-ID": "the-same",
            },
        ).content
        for forge in BAD.values()
    }
    assert len(bodies) == 1


def test_every_refusal_says_its_reason_in_the_log_and_never_the_token(site: Site) -> None:
    """One line each, with words that tell the operator what to look at."""
    client, settings = site.anyone(), site.app.settings
    with capture_logs() as lines:
        for name, forge in BAD.items():
            sent = {key: value.encode("latin-1") for key, value in forge(settings, uuid4()).items()}
            lines.clear()
            client.get("/media", headers=sent)
            (line,) = [one for one in lines if one["event"] == "token_refused"]
            assert REASONS[name] in line["reason"], name
            token = sent.get("Authorization", b"").decode("latin-1").rpartition(" ")[2]
            parts = [part for part in token.split(".") if len(part) > 1]
            assert not [part for part in parts if part in str(line)], name


OF_THE_TOKEN = "no bearer token"
OF_THE_HEADER = "X-Nexus-Internal"
REASONS = {
    "nothing at all": OF_THE_HEADER,
    "no token": OF_THE_TOKEN,
    "no scheme": OF_THE_TOKEN,
    "another scheme": OF_THE_TOKEN,
    "an empty token": OF_THE_TOKEN,
    "a bad token": "well-formed",
    "a bad token of three parts": "well-formed",
    "a token with an accent": "well-formed",
    "a deep token": "well-formed",
    "a wrong issuer": "NEXUS_JWT_ISSUER",
    "no issuer": "iss is missing",
    "a wrong audience": "NEXUS_JWT_AUDIENCE",
    "no audience": "aud is missing",
    "expired": "expired",
    "no expiry": "exp is missing",
    "not yet": "not valid yet",
    "no user": "sub is missing",
    "an empty user": "Its sub",
    "a blank user": "Its sub",
    "an endless user": "Its sub",
    "a user who can't be written": "well-formed",
    "a user who is a number": "Its sub",
    "alg none": "algorithm",
    "no signature": "signature",
    "another algorithm": "algorithm",
    "a wrong secret": "signature",
    "a session of the pages": "well-formed",
    "the token of a feed": "revoked",
    "a personal token that was never made": "revoked",
    "a time that is no number": "well-formed",
    "no internal header": OF_THE_HEADER,
    "a wrong internal header": OF_THE_HEADER,
    "an empty internal header": OF_THE_HEADER,
    "an internal header with an accent": OF_THE_HEADER,
}


def test_an_old_link_and_a_broken_session_say_their_reason_in_the_log_once(site: Site) -> None:
    user, sessions = uuid4(), site.app.sessions
    link, feed = link_key(sessions, user), token_of(sessions, user, "feed")
    asked = [
        ("/", {"Cookie": f"{cookies.SESSION}={link}"}, "session"),
        (f"/sign-in?token={feed}", {}, "sign-in"),
        (f"/api/stories.atom?token={link}", {}, "feed"),
    ]
    with capture_logs() as lines:
        for path, headers, purpose in asked:
            lines.clear()
            assert site.anyone().get(path, headers=headers).status_code == 401
            (line,) = [one for one in lines if one["event"] == "token_refused"]
            assert line["purpose"] == purpose
            assert "has expired" in line["reason"]
            assert not {link, feed} & set(str(line).split("'"))
        lines.clear()
        site.anyone().get("/")
        assert [one for one in lines if one["event"] == "token_refused"] == []


def user_behind(site: Site, **changes: object) -> str:
    """The user whom a token with these claims signs in."""
    headers = signed(**changes)(site.app.settings, uuid4())
    made = site.anyone().post("/libraries", headers=headers, json={"name": "Mine"})
    with site.app.sessions.engine.connect() as connection:
        library = UUID(made.json()["data"]["id"])
        value = library.hex if connection.dialect.name == "sqlite" else library
        found = connection.execute(
            text("SELECT user_id FROM memberships WHERE library_id = :id"), {"id": value}
        )
        return str(UUID(str(found.scalar_one())))


def test_any_subject_is_a_user_and_always_the_same_one(site: Site) -> None:
    """What a UUIDv5 of issuer and subject is, worked out from RFC 9562 and not by the code."""
    issuer = site.app.settings.jwt_issuer
    for subject in ("root", "auth0|5f7c8ec7c33c6c004bbafe82", "ann@example.com", "ü" * 255, "0" * 32):
        assert user_behind(site, sub=subject) == name_based(name_based(URLS, issuer), subject)
    mine = "0F8FAD5B-D9CB-469F-A165-70867728950E"
    assert user_behind(site, sub=mine) == user_behind(site, sub=mine.lower()) == mine.lower()


#: The namespace of URLs, from RFC 9562.
URLS = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"


def name_based(namespace: str, name: str) -> str:
    digest = bytearray(hashlib.sha1(bytes.fromhex(namespace.replace("-", "")) + name.encode()).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(digest)))


def test_two_issuers_never_mean_the_same_user() -> None:
    """Wherever issuer ends and subject begins."""
    pairs = [
        ("https://a/", "b"),
        ("https://a", "/b"),
        ("https://a/b", "c"),
        ("https://a/bc", "d"),
        ("x", "b"),
    ]
    assert len({user_of(issuer, subject) for issuer, subject in pairs}) == len(pairs)
    assert user_of("https://a/", "b") == user_of("https://a/", "b")


def test_nobody_becomes_somebody_else_by_taking_their_id_as_a_subject() -> None:
    theirs = user_of("https://a/", "b")
    assert user_of("https://a/", str(theirs)) != theirs
    own = uuid4()
    assert user_of("https://a/", str(own)) == own


def test_the_authorization_scheme_is_accepted_in_any_case(site: Site) -> None:
    headers = headers_of(site.app.settings, uuid4())
    headers["Authorization"] = headers["Authorization"].replace("Bearer", "bEARER")
    assert site.anyone().get("/media", headers=headers).status_code == 200
