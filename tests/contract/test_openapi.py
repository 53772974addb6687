"""The OpenAPI document is true: whatever is sent, the answer is one that it describes."""

import base64
import copy
import json
import shutil
from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks

from nexus.app import build
from nexus.web import application
from nexus.web.http.routing import Route
from tests.kit.http import Caller, Site, headers_of, job_problem, problem, serve
from tests.kit.settings import make_settings
from tools.reference import openapi_document

ME = UUID("6f1c9a52-7d0e-4d8e-9d7c-0a7e3a1b2c3d")
EXAMPLES = 10


def described() -> schemathesis.BaseSchema:
    schema = schemathesis.openapi.from_dict(copy.deepcopy(openapi_document()))
    # Query parameters that nobody knows are ignored, as everywhere on the web.
    schema.config.generation.update(allow_extra_parameters=False)
    return schema


@schemathesis.serializer("text/vtt", "application/x-subrip")
def as_text(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


schema = described()
load_all_checks()
#: What a schema can't say: which strings are valid URLs, kinds, names or cursors.
NOT_SAID = [CHECKS.get_one("positive_data_acceptance")]
#: Asks each time again without a token. Which tokens are good does not depend on the database.
UNSIGNED = [CHECKS.get_one("ignored_auth")]
#: `GET /media/url` asks for the media whose id is "url".
SHADOWED = [CHECKS.get_one("unsupported_method")]


@pytest.fixture(scope="module")
def sqlite_site(migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all of these tests: none of them depends on what others leave in the database."""
    folder = tmp_path_factory.mktemp("openapi")
    shutil.copy(migrated_sqlite, folder / "nexus.sqlite3")
    yield from served(f"sqlite:///{folder / 'nexus.sqlite3'}", folder)


@pytest.fixture(scope="module")
def postgres_site(migrated_postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from served(migrated_postgres, tmp_path_factory.mktemp("openapi"))


def served(url: str, folder: Path) -> Iterator[Site]:
    app = build(make_settings(url, folder))
    with serve(app) as running:
        yield running
    app.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def module_site(request: pytest.FixtureRequest) -> Site:
    running: Site = request.getfixturevalue(f"{request.param}_site")
    return running


@pytest.fixture(scope="module", params=["both databases"])
def both_sites(sqlite_site: Site, postgres_site: Site) -> tuple[Site, Site]:
    """With a parameter, because pytest shows the call of a test only if the test has one."""
    return sqlite_site, postgres_site


@pytest.fixture(scope="module")
def kept_open() -> Iterator[requests.Session]:
    """Connections that stay open, which saves work. No cookie goes from one call to the next."""
    with requests.Session() as session:
        session.trust_env = False  # else it looks for a .netrc at each call
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        yield session


@pytest.fixture
def schema_user(module_site: Site) -> Caller:
    return module_site.caller(ME)


@schema.exclude(path="/events").parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_answers_match_the_openapi_document(
    case: Case, both_sites: tuple[Site, Site], kept_open: requests.Session
) -> None:
    """On both databases at once, because it takes longer to think of a case than to answer it."""
    for site in both_sites:
        headers = headers_of(site.app.settings, ME)
        excluded = (
            NOT_SAID
            + (UNSIGNED if site is not both_sites[0] else [])
            + (
                SHADOWED
                if case.path in {"/media/url", "/media/retry", "/media/remove", "/media/mark"}
                else []
            )
        )
        response = case.call_and_validate(
            base_url=site.url, session=kept_open, headers=headers, excluded_checks=excluded
        )
        assert response.headers["x-request-id"]
        assert response.status_code < 500
        if response.status_code >= 400 and response.request.method != "HEAD":
            check_refusal(case.path, response.json(), response.headers["x-request-id"][0])


def check_refusal(path: str, body: dict[str, Any], request_id: str) -> None:
    """Jobs have a shape of their own."""
    if path.startswith("/api/"):
        assert set(body) == {"success", "error", "message", "requestId"}
        assert (body["success"], body["requestId"]) == (False, request_id)
    else:
        assert set(body) == {"error"}
        assert set(body["error"]) == {"code", "message", "request_id"}
        assert body["error"]["request_id"] == request_id


def test_every_refusal_has_the_documented_shape() -> None:
    """FastAPI would document its own 422; ours is 400 in the envelope."""
    for path, method, call in calls():
        assert "422" not in call["responses"], (method, path)
        for status, answer in call["responses"].items():
            if int(status) >= 400:
                shape = answer["content"]["application/json"]["schema"]
                name = "EditorialRefusal" if path.startswith("/api/") else "Refusal"
                assert shape == {"$ref": f"#/components/schemas/{name}"}, (method, path, status)


def test_every_endpoint_with_a_body_documents_that_it_may_be_too_large() -> None:
    for path, method, call in calls():
        assert "requestBody" not in call or "413" in call["responses"], (method, path)


def calls() -> Iterator[tuple[str, str, dict]]:
    for path, methods in schema.raw_schema["paths"].items():
        for method, call in methods.items():
            yield path, method, call


HOSTILE = {
    "empty": "",
    "nul": "a\x00b",
    "nul alone": "\x00",
    "surrogate": "\ud800",
    "swapped surrogates": "\udc00\ud800",
    "right to left": "\u202eevil\u202c \u05d0\u05d1",
    "long": "x" * 100_000,
    "long in bytes": "\U0001f600" * 20_000,
    "not a character": "\uffff\ufffe",
    "line breaks": "a\r\nX-Injected: 1\r\n\r\n\u2028",
    "escape": "\x1b[31m",
    "sql": "'; DROP TABLE media; --",
    "template": "{{7*7}}${7*7}%s%n{0}",
    "path": "../../../../etc/passwd",
    "number": "9" * 400,
    "not a number": "NaN",
    "combining": "e" + "\u0301" * 500,
}
BODIES = {
    "/media/url": ("kind", "url"),
    "/media": ("kind", "url"),
    "/libraries": ("name",),
    "/api/ingestion-jobs": ("url", "title", "text"),
    f"/api/ingestion-jobs/{ME}/manual-entry": ("title", "text"),
    "/api/ingestion-jobs/failed/retry": ("errorCode",),
    f"/libraries/{ME}/media": ("media_id",),
    f"/libraries/{ME}/members": ("user_id", "role"),
}
GOOD = {
    "kind": "web_article",
    "url": "https://example.com/",
    "name": "Good",
    "title": "A title",
    "text": "A sentence of an article. " * 10,
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_strings_in_bodies_get_documented_answers(schema_user: Caller, hostile: str) -> None:
    for path, fields in BODIES.items():
        for field in fields:
            given = {name: GOOD.get(name, str(ME)) for name in fields} | {field: hostile}
            is_fine(post(schema_user, path, given))
            is_refused(post(schema_user, path, {**given, hostile or "unknown": 1}))
        is_refused(post(schema_user, path, hostile))
        is_refused(post(schema_user, path, [hostile]))


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["web_article", "video"])
def test_hostile_strings_in_urls_get_documented_answers(schema_user: Caller, hostile: str, kind: str) -> None:
    places = (
        "https://example.com/{}",
        "https://{}/",
        "https://example.com/?q={}",
        "https://youtu.be/{}",
        "{}://a/",
    )
    for place in places:
        is_fine(post(schema_user, "/media/url", {"kind": kind, "url": place.replace("{}", hostile)}))


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_strings_in_submitted_addresses_get_documented_answers(
    schema_user: Caller, hostile: str
) -> None:
    text = quote((hostile or " ")[:2000].encode("utf-8", "surrogatepass"))
    for path in (f"/media/{text}", f"/libraries/{text}/members/{text}", f"/{text}"):
        is_fine(schema_user.get(path))
    for query in ("cursor", "status", "library_id", "limit"):
        is_fine(schema_user.get(f"/media?{query}={text}"))
    for path in listings(schema_user):
        is_fine(schema_user.get(f"{path}?cursor={text}"))


MOMENT = "2026-01-01T00:00:00+00:00"
CURSORS = {
    "nothing": [],
    "no list": {},
    "null": None,
    "numbers": [1, 2],
    "no time": ["x", ME.hex],
    "no id": [MOMENT, "x"],
    "no zone": ["2026-01-01T00:00:00", ME.hex],
    "three": [MOMENT, ME.hex, 1],
    "nul": [MOMENT, "\x00"],
    "surrogate": [MOMENT, "\ud800"],
    "negative": [-1],
    "huge": [2**63],
    "not whole": [1.5],
    "infinite": [float("inf")],
    "deep": [[[[[[[[]]]]]]]],
}


@pytest.mark.parametrize("parts", CURSORS.values(), ids=CURSORS)
def test_forged_cursors_are_refused(schema_user: Caller, parts: object) -> None:
    for path in listings(schema_user):
        is_refused(schema_user.get(path, params={"cursor": encoded(parts)}))


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_cursors_at_the_ends_of_time_are_accepted(schema_user: Caller, moment: str) -> None:
    for path in ("/media", f"/libraries/{schema_user.default_library()}/media"):
        is_fine(schema_user.get(path, params={"cursor": encoded([moment, ME.hex])}))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"nul\x00", b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"\xef\xbb\xbf{}"],
    ids=["empty", "open", "no UTF-8", "nul", "deep list", "deep object", "long number", "byte order mark"],
)
def test_bodies_that_are_not_json_are_refused(schema_user: Caller, body: bytes) -> None:
    for path in BODIES:
        answer = schema_user.post(path, content=body, headers={"Content-Type": "application/json"})
        assert said(answer) == (400, "E_INVALID_REQUEST")
        assert "method" not in answer.text


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "nonsense", "application/xml"]
)
def test_bodies_of_another_content_type_are_refused(schema_user: Caller, kind: str) -> None:
    for path in BODIES:
        answer = schema_user.post(path, content=b'{"kind": "web_article"}', headers={"Content-Type": kind})
        assert said(answer) == (400, "E_INVALID_REQUEST")


def test_a_405_names_every_method_of_the_address(schema_user: Caller) -> None:
    answer = schema_user.put("/media")
    assert said(answer) == (405, "E_INVALID_REQUEST")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}


def test_the_openapi_document_is_generated_once(module_site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may ask for it, and a 405 needs it too."""
    api = application.create_application(module_site.app)
    first = api.openapi()
    monkeypatch.delattr(Route, "document")
    assert api.openapi() is first


def test_an_unknown_path_is_not_found(module_site: Site) -> None:
    assert problem(module_site.anyone().get("/no/such/address")) == (404, "E_NOT_FOUND")


def listings(me: Caller) -> list[str]:
    media = me.add("https://example.com/for-cursors")
    return [
        "/media",
        f"/libraries/{me.default_library()}/media",
        f"/media/{media}/fragments",
        f"/media/{media}/history",
    ]


def encoded(parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def post(me: Caller, path: str, body: object) -> httpx2.Response:
    """JSON with escapes, which can carry what UTF-8 can't."""
    return me.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def said(answer: httpx2.Response) -> tuple[int, str]:
    return (job_problem if answer.url.path.startswith("/api/") else problem)(answer)


def is_fine(answer: httpx2.Response) -> None:
    """It may be accepted or refused, but must not break."""
    if answer.status_code != 200:
        status, code = said(answer)
        assert status in {400, 404, 405, 431}, (status, code)


def is_refused(answer: httpx2.Response) -> None:
    status, code = said(answer)
    assert (status, code) == (400, "E_INVALID_REQUEST")
