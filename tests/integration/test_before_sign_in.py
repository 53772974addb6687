"""What strangers get and cost before they are known: bodies, hosts, headers, and pages about Nexus itself."""

import json
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import pytest

from nexus.app import App, build
from nexus.settings import Settings
from nexus.web import application
from nexus.web.http import forms
from nexus.web.http.routing import MOST_BODY, Route
from tests.kit.http import Caller, Site, problem, serve
from tests.kit.settings import make_settings
from tests.kit.sign_ins import cookie_of
from tests.kit.wire import Wire, request, wire

BOUNDARY = "a-boundary"
FORM = f"Content-Type: multipart/form-data; boundary={BOUNDARY}"
SAME_ORIGIN = "Sec-Fetch-Site: same-origin"
MIB = 2**20
#: Everyone may send these a body, of at most 1 MiB.
OPEN = {"POST /sign-in"}


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """One is enough: this is about what comes before a database."""
    return sqlite_url


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def file_part(name: str, size: int) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    return head.encode() + b"x" * size + b"\r\n"


def cookie(app: App) -> str:
    return f"Cookie: {cookie_of(app.sessions, uuid4())}"


# --- bodies ---


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pieces of forms that were parsed."""
    pieces: list[int] = []
    for parser in (forms.MultiPartParser,):
        real = parser.on_part_data

        def counted(self: Any, piece: bytes, start: int, end: int, real: Any = real) -> None:
            pieces.append(end - start)
            real(self, piece, start, end)

        monkeypatch.setattr(parser, "on_part_data", counted)
    return pieces


@pytest.mark.parametrize("path", ["/import/files", "/items", "/import/batch"])
def test_no_form_of_a_stranger_is_read(path: str, site: Site, temporary: Path, parsed: list[int]) -> None:
    """300 MB of it were in temporary files before the answer."""
    body = b"".join(file_part(f"{number}.txt", MIB // 2) for number in range(6)) + file_part(
        "large.pdf", 4 * MIB
    )
    with wire(site) as line:
        line.send(request(f"POST {path}", FORM, SAME_ORIGIN, f"Content-Length: {10 * len(body)}"))
        line.send(body)
        assert line.answer().status == 401
        assert parsed == []
        assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "call", ["POST /media", "POST /media/url", "POST /media/upload/init", "POST /api/ingestion-jobs"]
)
def test_a_stranger_is_refused_before_the_body_arrives(call: str, site: Site) -> None:
    for _ in range(2):  # a route is made at its first request, and again for the documentation
        with wire(site) as line:
            line.send(request(call, "Content-Type: application/json", "Content-Length: 1000"))
            assert line.answer().status == 401
        site.anyone().get("/openapi.json")


def test_every_call_with_a_body_knows_its_caller_first(app: App) -> None:
    """But for the few that are open to all, which take 1 MiB at most."""
    unknown = set()
    for route in application.create_application(app).routes:
        if isinstance(route, Route):
            route.complete()
            if route.takes_body and route.caller is None:
                unknown |= {f"{method} {route.path}" for method in route.methods}
                assert route.most_body == MOST_BODY
    assert unknown == OPEN


def send_form(line: Wire, app: App, *parts: bytes) -> None:
    body = b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()
    head = request("POST /import/files", FORM, SAME_ORIGIN, cookie(app), f"Content-Length: {len(body)}")
    line.send(head + body)


def test_a_form_with_files_is_taken(app: App, site: Site) -> None:
    with wire(site) as line:
        send_form(line, app, file_part("a.txt", 2000), file_part("b.txt", 3 * MIB))
        assert line.answer().status == 303


def test_small_files_of_a_form_are_not_kept_in_memory(
    app: App, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of them, each below 1 MiB, filled it."""
    on_disk: list[bool] = []
    real = forms.PlainUploadFile.close

    async def looked_at(self: forms.PlainUploadFile) -> None:
        on_disk.append(getattr(self.file, "_rolled", False))
        await real(self)

    monkeypatch.setattr(forms.PlainUploadFile, "close", looked_at)
    with wire(site) as line:
        send_form(line, app, *(file_part(f"{number}.txt", MIB // 2) for number in range(4)))
        assert line.answer().status == 303
    assert on_disk == [True] * 4


@pytest.mark.parametrize(
    ("limit", "parts", "status"),
    [
        ({"MOST_FORM_BYTES": MIB}, [file_part(f"{number}.txt", MIB // 2) for number in range(3)], 413),
        ({"MOST_FILES": 2}, [file_part(f"{number}.txt", 10) for number in range(3)], 400),
        ({}, [file_part("large.txt", 2 * MIB)], 413),
        ({}, [file_part("x" * 9000, 10)], 400),
        ({}, [file_part("a.txt", 10).replace(b"filename", b"other")], 400),
    ],
    ids=["all together", "too many", "one of them", "a long name", "no file"],
)
def test_a_form_with_too_much_is_refused(
    limit: dict[str, int],
    parts: list[bytes],
    status: int,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in limit.items():
        monkeypatch.setattr(forms, name, value)
    app = build(settings.model_copy(update={"max_pdf_mib": 1, "max_epub_mib": 1}))
    with serve(app) as site, wire(site) as line:
        send_form(line, app, *parts)
        assert line.answer().status == status
    app.close()


# --- hosts ---


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8000", 200),
        ("LOCALHOST:8000", 200),
        ("localhost.", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("localhost.evil.example:8000", 400),
        ("evil.example:127.0.0.1", 400),
        ("[::1].evil.example", 400),
        ("127.0.0.1:8000@evil.example", 400),
        ("192.0.2.7", 400),
        ("", 400),
    ],
)
def test_only_our_own_names_are_answered(host: str, status: int, site: Site) -> None:
    """A page whose name was made to lead here sends that name."""
    with wire(site) as line:
        line.send(request("GET /healthz", host=host))
        assert line.answer().status == status


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/events", "/nowhere", "/media"])
def test_every_address_asks_for_the_host(path: str, site: Site, me: Caller) -> None:
    assert me.get(path, headers={"Host": "evil.example"}).status_code == 400
    with wire(site) as line:
        line.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n")
        assert line.answer().status == 400
        line.send(b"GET / HTTP/1.1\r\n\r\n")
        assert line.answer().status == 400


@pytest.mark.parametrize(
    ("chosen", "host", "status"),
    [
        ({"public_url": "https://read.example/"}, "read.example", 200),
        ({"public_url": "https://read.example/"}, "localhost", 200),
        ({"public_url": "https://read.example/"}, "other.example", 400),
        ({"host": "192.0.2.7"}, "192.0.2.7:8000", 200),
        ({"host": "0.0.0.0"}, "0.0.0.0", 400),
        ({"hosts": "a.example,*.b.example"}, "a.example", 200),
        ({"hosts": "a.example,*.b.example"}, "x.b.example:80", 200),
        ({"hosts": "a.example,*.b.example"}, "b.example", 400),
        ({"hosts": "a.example,*.b.example"}, "127.0.0.1", 400),
        ({"hosts": "*"}, "anything.example", 200),
    ],
)
def test_hosts_are_chosen(
    chosen: dict[str, str], host: str, status: int, database_url: str, tmp_path: Path
) -> None:
    app = build(make_settings(database_url, tmp_path, **chosen))
    with serve(app) as site, wire(site) as line:
        line.send(request("GET /healthz", host=host))
        assert line.answer().status == status
    app.close()


# --- headers of answers ---

NEEDED = {
    "x-content-type-options",
    "referrer-policy",
    "x-frame-options",
    "content-security-policy",
    "cache-control",
    "x-request-id",
}
ANSWERS = [
    ("GET /", 401),
    ("GET /healthz", 200),
    ("GET /metrics", 200),
    ("GET /docs", 200),
    ("GET /openapi.json", 200),
    ("GET /sign-in", 200),
    ("GET /static/app.js", 200),
    ("GET /static/nothing.js", 404),
    ("GET /nowhere", 404),
    ("GET /media", 401),
    ("GET /events", 401),
    ("PATCH /media", 405),
    ("POST /import/files", 403),
    ("GET /objects/x?expires=1&signature=x&type=a&filename=b", 404),
]


@pytest.mark.parametrize(("call", "status"), ANSWERS)
def test_every_answer_says_how_it_may_be_shown_and_kept(call: str, status: int, site: Site) -> None:
    with wire(site) as line:
        line.send(request(call, "Content-Length: 0"))
        answer = line.answer()
    assert (answer.status, NEEDED - set(answer.headers)) == (status, set())
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = set(answer.headers["content-security-policy"].split("; "))
    assert {"base-uri 'none'", "frame-ancestors 'none'", "object-src 'none'"} <= policy
    assert "strict-transport-security" not in answer.headers


def test_streams_and_wrong_hosts_say_so_too(me: Caller) -> None:
    with me.stream("GET", "/events") as stream:
        assert NEEDED - set(stream.headers) == set()
    assert NEEDED - set(me.get("/", headers={"Host": "evil.example"}).headers) == set()


def test_no_header_is_sent_twice(site: Site) -> None:
    """Pages and files have their own rules, and browsers apply both of two."""
    for path in ("/sign-in", "/static/app.js", "/healthz"):
        sent = [name.lower() for name, _ in site.anyone().get(path).headers.multi_items()]
        assert len(sent) == len(set(sent)), path


def test_https_is_promised_for_a_public_address_with_https(database_url: str, tmp_path: Path) -> None:
    app = build(make_settings(database_url, tmp_path, public_url="https://read.example"))
    with serve(app) as site:
        for path in ("/healthz", "/", "/static/app.js"):
            answer = site.anyone().get(path, headers={"Host": "read.example"})
            assert answer.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
        with wire(site) as line:
            line.send(b"rubbish\r\n\r\n")
            refused = line.answer()
    app.close()
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, "E_INVALID_REQUEST")
    assert NEEDED | {"strict-transport-security"} <= set(refused.headers)


# --- about Nexus itself ---

ABOUT = ("/metrics", "/docs", "/openapi.json")


def test_in_prod_strangers_learn_nothing_about_nexus(database_url: str, tmp_path: Path) -> None:
    app = build(make_settings(database_url, tmp_path, env="prod"))
    with serve(app) as site:
        internal = {"X-Nexus-Internal": app.settings.internal_secret}
        signed_in = {"Cookie": cookie_of(app.sessions, uuid4())}
        wrong = {"X-Nexus-Internal": "wrong"}
        for path in ABOUT:
            assert site.anyone().get(path).status_code == 401, path
            assert site.anyone(**wrong).get(path).status_code == 401, path
            assert site.anyone(**internal).get(path).status_code == 200, path
            assert site.anyone(**signed_in).get(path).status_code == 200, path
            assert site.caller().get(path).status_code == 200, path
        for path in ("/healthz", "/readyz"):
            assert site.anyone().get(path).status_code == 200
    app.close()


# --- tokens ---


@pytest.mark.parametrize("expires", [10**400, -(10**400), 1e400], ids=["10^400", "-10^400", "infinity"])
def test_a_token_that_expires_after_all_time_is_refused(expires: float, app: App, site: Site) -> None:
    chosen = app.settings
    claims = {"iss": chosen.jwt_issuer, "aud": chosen.jwt_audience, "sub": str(uuid4()), "exp": expires}
    token = jwt.encode(claims, chosen.jwt_secret, "HS256")
    headers = {"Authorization": f"Bearer {token}", "X-Nexus-Internal": chosen.internal_secret}
    assert problem(site.anyone(**headers).get("/media")) == (401, "E_UNAUTHORIZED")
