"""What a browser may keep of what its user has read: nothing."""

from __future__ import annotations

from uuid import uuid4

from nexus.app import App
from nexus.states.media import MediaStatus
from nexus.web.application import ROUTERS
from nexus.web.http.routing import Route
from tests.kit.http import Site
from tests.kit.media import walk_media_to
from tests.kit.sign_ins import cookie_of

#: A stream has no end; its headers have a test of their own.
STREAMS = {"/events"}
READ = sorted(
    {
        route.path
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, Route) and "GET" in route.methods and route.path not in STREAMS
    }
)


def test_no_answer_to_a_user_may_be_kept_by_a_browser(site: Site, app: App) -> None:
    """Pages, pieces of pages, API answers and refusals alike, whatever the route. Pictures and files have tests of
    their own."""
    user = uuid4()
    media_id = site.caller(user).add()
    walk_media_to(app, media_id, MediaStatus.READY_FOR_READING)
    clients = {"page": site.anyone(Cookie=cookie_of(app.sessions, user)), "api": site.caller(user)}
    answers = {
        (who, path): client.get(path.replace("{media_id}", str(media_id)))
        for who, client in clients.items()
        for path in READ
    }
    assert {one for one, answer in answers.items() if answer.headers["cache-control"] != "no-store"} == set()
    shown = {path for (_, path), answer in answers.items() if answer.status_code == 200}
    assert {"/", "/account", "/items/{media_id}", "/media/{media_id}", "/media/{media_id}/fragments"} <= shown
