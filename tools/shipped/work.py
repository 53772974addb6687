"""What a team does with Nexus, over HTTP alone, while its servers, workers and stores are killed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from tests.kit.documents import pdf
from tests.kit.servers.web_pages import Answer
from tests.kit.waiting import eventually
from tools.shipped.team import Process, Team

KEYS = "/.well-known/jwks.json"
#: As identity providers write it: no UUID.
SUBJECT = "auth0|5f7c8ec7c33c6c004bbafe82"
SENTENCES = [
    f"The {word} sentence of this article says something about the harbour, the boats and the weather of the year."
    for word in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
]
ARTICLE = (
    '<!doctype html><html lang="en"><head><title>The harbour</title></head><body><article><h1>The harbour</h1>'
    + "".join(f"<p>{sentence} Nobody there has seen anything like it before.</p>" for sentence in SENTENCES)
    + "</article></body></html>"
)
READABLE = {"ready_for_reading", "embedding", "ready"}


@dataclass
class Member:
    """Somebody of the team, with a token of its identity provider."""

    team: Team
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    def __post_init__(self) -> None:
        public = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        keys = {"keys": [{**public, "kid": "gate", "alg": "RS256", "use": "sig"}]}
        self.team.provider[KEYS] = Answer(json.dumps(keys).encode(), "application/json")

    @property
    def issuer(self) -> str:
        return self.team.setting("NEXUS_JWT_ISSUER")

    @property
    def user(self) -> str:
        """As the README says it."""
        return str(uuid5(uuid5(NAMESPACE_URL, self.issuer), SUBJECT))

    def ask(self, server: Process, method: str, path: str, **given: Any) -> Any:
        """The body of a good answer; a 503 is asked again, as it says. Raises AssertionError."""

        def answered() -> httpx2.Response | None:
            found = self.call(server, method, path, **given)
            return None if found.status_code == 503 else found

        answer: httpx2.Response = eventually(answered, f"{method} {path} is answered with more than 503")
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        body = answer.json()
        return body.get("data", body)

    def call(self, server: Process, method: str, path: str, **given: Any) -> httpx2.Response:
        return httpx2.request(
            method, f"{server.url}{path}", headers=self._headers(), timeout=60, trust_env=False, **given
        )

    @contextmanager
    def browser(self, server: Process) -> Iterator[httpx2.Client]:
        """Signed in to the pages by the link that `nexus token` prints."""
        public = self.team.setting("NEXUS_PUBLIC_URL")
        link = self.team.run(f"nexus token --link --user {self.user}").strip()
        assert link.startswith(f"{public}/sign-in?token="), "the link does not lead to NEXUS_PUBLIC_URL"
        headers = {"Sec-Fetch-Site": "same-origin"}
        with httpx2.Client(
            base_url=server.url, timeout=60, trust_env=False, headers=headers, follow_redirects=True
        ) as client:
            page = client.get(link.removeprefix(public))
            assert page.status_code == 200, f"the sign-in link answers {page.status_code}"
            signed_in = client.post("/sign-in", data={"token": link.partition("token=")[2]})
            assert signed_in.status_code == 200, f"its button answers {signed_in.status_code}"
            yield client

    def _headers(self) -> dict[str, str]:
        claims = {"iss": self.issuer, "aud": "nexus", "sub": SUBJECT, "exp": int(time.time()) + 600}
        token = jwt.encode(claims, self.key, "RS256", headers={"kid": "gate"})
        secret = self.team.setting("NEXUS_INTERNAL_SECRET")
        return {"Authorization": f"Bearer {token}", "X-Nexus-Internal": secret}


def add(member: Member, server: Process, path: str) -> str:
    """An address is taken in."""
    member.team.site[path] = Answer(ARTICLE.encode())
    given = {"kind": "web_article", "url": member.team.site.url(path)}
    return str(member.ask(server, "POST", "/media/url", json=given)["media_id"])


def wait_until_asked(member: Member, path: str) -> None:
    asked = member.team.site.asked
    eventually(lambda: [one for one, _ in asked if one == path], f"a worker fetches {path}")


def wait_until_readable(member: Member, server: Process, media_id: str) -> None:
    def readable() -> bool:
        found = member.ask(server, "GET", f"/media/{media_id}")
        assert found["processing_status"] != "failed", f"it failed: {found['last_error_code']}"
        return found["processing_status"] in READABLE

    eventually(readable, f"media {media_id} becomes readable")
    fragments = member.ask(server, "GET", f"/media/{media_id}/fragments")["items"]
    assert SENTENCES[0] in " ".join(one["text"].replace("\n", " ") for one in fragments), (
        "its text is not there"
    )


def upload(member: Member, begins: Process, meanwhile: Callable[[], None], ends: Process) -> str:
    """A PDF by signed link, straight into the store; another server confirms it."""
    body = pdf("\n".join(SENTENCES))
    wanted = {
        "kind": "pdf",
        "filename": "harbour.pdf",
        "content_type": "application/pdf",
        "size_bytes": len(body),
    }
    begun = member.ask(begins, "POST", "/media/upload/init", json=wanted)
    host = member.team.stores.objects.url
    assert begun["upload_url"].startswith(host), "the upload link does not lead to the store"
    put = httpx2.put(begun["upload_url"], content=body, headers=begun["upload_headers"], trust_env=False)
    assert put.status_code == 200, f"the store answers {put.status_code} to the upload: {put.text[:500]}"
    meanwhile()
    media_id = str(member.ask(ends, "POST", f"/media/{begun['media_id']}/ingest")["media_id"])
    link = member.ask(ends, "GET", f"/media/{media_id}/file")["url"]
    assert httpx2.get(link, trust_env=False).content == body, "what is downloaded is not what was uploaded"
    return media_id


def import_files(member: Member, server: Process) -> None:
    """Two files into a new library, at once."""
    batch = member.ask(server, "POST", "/imports/batches", json={"name": "Research"})["id"]
    files = {"boats.md": b"# Boats\n\nThey sail.\n", "weather.pdf": pdf("\n".join(SENTENCES[::-1]))}
    for name, body in files.items():
        member.ask(server, "POST", f"/imports/batches/{batch}/sources", params={"name": name}, content=body)
    member.ask(server, "POST", f"/imports/batches/{batch}/start")

    def complete() -> bool:
        found = member.ask(server, "GET", "/imports")
        assert found["status"] in {"RUNNING", "COMPLETE"}, (
            f"the import is {found['status']}: {found['lines']}"
        )
        return bool(found["status"] == "COMPLETE")

    eventually(complete, "the import is complete")
    library = member.ask(server, "GET", "/imports")["library_id"]
    items = member.ask(server, "GET", f"/libraries/{library}/media")["items"]
    assert len(items) == len(files), f"{len(items)} of {len(files)} files are in the library"


def begin_story(member: Member, server: Process, path: str) -> str:
    """On the Desk, whose steps are left to the workers."""
    member.team.site[path] = Answer(ARTICLE.encode())
    with member.browser(server) as browser:
        answer = browser.post("/admin/add-article", data={"url": member.team.site.url(path)})
    assert answer.status_code == 200, f"the Desk answers {answer.status_code}"
    return answer.url.path.rpartition("/")[2]


def end_story(member: Member, server: Process, job_id: str) -> None:
    def drafts() -> bool:
        job = member.ask(server, "GET", f"/api/ingestion-jobs/{job_id}")["job"]
        assert job["status"] != "FAILED", f"the job failed: {job['errorMessage']}"
        return bool(job["status"] == "READY_TO_GENERATE")

    eventually(drafts, f"job {job_id} has its text")
    job = member.ask(server, "POST", f"/api/ingestion-jobs/{job_id}/generate")["job"]
    assert job["status"] == "SAVED", f"the job is {job['status']}"
    story = member.ask(server, "GET", f"/api/stories/{job['storyId']}")["story"]
    claims = story["sections"]["whatHappened"]
    assert claims, "the story claims nothing"
    assert all(claim["supported"] for claim in claims), "the story claims what the article does not say"


def look_at_pages(member: Member, server: Process) -> None:
    """Templates and static files are installed too."""
    with member.browser(server) as browser:
        for path in ("/", "/import", "/admin/add-article", "/admin/jobs", "/docs", "/static/app.css"):
            answer = browser.get(path)
            assert answer.status_code == 200, f"{path} answers {answer.status_code}"
