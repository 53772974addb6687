"""Scripts and styles: small on the wire, kept by browsers for good, and never an outdated one."""

from __future__ import annotations

import gzip
import re

import pytest

from nexus.web.http.static_files import FOLDER, static_file, takes_gzip
from tests.kit.http import Site

SCRIPT = (FOLDER / "app.js").read_bytes()


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.5", "GZIP", "*", "gzip; q=1.0"])
def test_a_browser_that_takes_gzip_gets_it(accepted: str, site: Site) -> None:
    with site.anyone().stream("GET", "/static/app.js", headers={"Accept-Encoding": accepted}) as answer:
        sent = b"".join(answer.iter_raw())
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(sent) == SCRIPT
    assert len(sent) < len(SCRIPT) / 2
    assert answer.headers["content-length"] == str(len(sent))


@pytest.mark.parametrize("accepted", ["identity", "br", "gzip;q=0", "*;q=0", "gzip;q=0.000, *", ""])
def test_a_client_that_does_not_take_gzip_gets_plain_bytes(accepted: str, site: Site) -> None:
    answer = site.anyone().get("/static/app.js", headers={"Accept-Encoding": accepted})
    assert (answer.content, answer.headers["vary"]) == (SCRIPT, "Accept-Encoding")
    assert "content-encoding" not in answer.headers
    assert not takes_gzip(accepted)


def test_an_address_with_the_digest_is_kept_for_good(site: Site) -> None:
    page = site.anyone().get("/sign-in").text
    linked = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert {address.partition("?")[0] for address in linked} >= {"/static/app.js", "/static/app.css"}
    for address in linked:
        assert site.anyone().get(address).headers["cache-control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("query", ["", "?v=0123456789", "?v=", "?w=1"])
def test_another_address_of_a_file_is_asked_for_again(query: str, site: Site) -> None:
    """Otherwise a page of an older version would be kept together with a newer script, for a year."""
    assert site.anyone().get(f"/static/app.js{query}").headers["cache-control"] == "no-cache"


def test_the_address_changes_with_the_content() -> None:
    shown = static_file("app.js")
    assert (
        type(shown)("app.js", SCRIPT + b"\n").address
        != shown.address
        == type(shown)("app.js", SCRIPT).address
    )


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_a_file_that_a_browser_has_is_not_sent_again(accepted: str, site: Site) -> None:
    client = site.anyone(**{"Accept-Encoding": accepted})
    tag = client.get("/static/app.css").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get("/static/app.css", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert client.get("/static/app.css", headers={"If-None-Match": '"other"'}).status_code == 200


def test_packed_and_plain_bytes_have_tags_of_their_own(site: Site) -> None:
    tags = [
        site.anyone().get("/static/app.css", headers={"Accept-Encoding": accepted}).headers["etag"]
        for accepted in ("gzip", "identity")
    ]
    assert tags[0] != tags[1]


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "", "vendor", "../application.py", "%2e%2e/application.py", "//etc/passwd", "a%00b"],
)
def test_only_our_own_files_are_served(path: str, site: Site) -> None:
    assert site.anyone().get(f"/static/{path}").status_code == 404


def test_files_have_their_types_and_can_only_be_read(site: Site) -> None:
    types = {
        name: site.anyone().head(f"/static/{name}").headers["content-type"]
        for name in ("app.js", "app.css", "icon.svg")
    }
    assert types == {
        "app.js": "text/javascript; charset=utf-8",
        "app.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
    }
    assert site.anyone().post("/static/app.js").status_code == 405
