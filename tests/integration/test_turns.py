"""Turns: one user's thousand URLs do not hold up another's one."""

from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.session import Row
from nexus.media.lifecycle import give_back, release
from nexus.media.turns import USERS, Turns
from nexus.states.media import Kind, Status
from tests.support import SetClock, new_media
from tests.walks import new_file, status_of

ARTICLES = [Kind.WEB_ARTICLE]


@pytest.fixture
def turns(app: App) -> Turns:
    return Turns(app.sessions, timedelta(seconds=60))


def users(claims: list[Row]) -> Counter[UUID]:
    return Counter(claim.created_by_user_id for claim in claims)


def test_a_batch_is_shared_out_among_those_who_wait(app: App, turns: Turns) -> None:
    greedy, modest = uuid4(), uuid4()
    for _ in range(10):
        new_media(app, greedy)
    for _ in range(2):
        new_media(app, modest)
    assert users(turns.claim(ARTICLES, 4)) == {greedy: 2, modest: 2}
    assert users(turns.claim(ARTICLES, 4)) == {greedy: 4}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_url_does_not_wait_behind_a_thousand(app: App, turns: Turns, most: int) -> None:
    for greedy in (UUID(int=1), UUID(int=2**128 - 1)):
        for _ in range(20):
            new_media(app, greedy)
    modest = uuid4()
    media_id = new_media(app, modest)
    for _ in range(3):
        turns.claim(ARTICLES, most)
    assert status_of(app.sessions, media_id) is Status.EXTRACTING


def test_single_claims_go_round(app: App, turns: Turns) -> None:
    people = sorted(uuid4() for _ in range(3))
    for user in people:
        for _ in range(3):
            new_media(app, user)
    served = [turns.claim(ARTICLES, 1)[0].created_by_user_id for _ in range(9)]
    assert served == people * 3


def test_more_users_than_one_look_finds_are_all_served(app: App, turns: Turns) -> None:
    people = {uuid4() for _ in range(USERS * 2 + 3)}
    for user in people:
        new_media(app, user)
    served: Counter[UUID] = Counter()
    for _ in range(3):
        served += users(turns.claim(ARTICLES, 50))
    assert set(served) == people
    assert sum(served.values()) == len(people)


def test_only_due_media_of_the_asked_kinds_are_claimed(app: App, turns: Turns, clock: SetClock) -> None:
    user = uuid4()
    video, waiting = new_media(app, user, kind="video"), new_file(app, user, None)
    article = new_media(app, user)
    assert [row.id for row in turns.claim([Kind.WEB_ARTICLE, Kind.PDF], 10)] == [article]
    with app.sessions.begin() as session:
        release(session, article, 1, "E_X", session.now + timedelta(seconds=10))
    assert turns.claim([Kind.WEB_ARTICLE, Kind.PDF], 10) == []
    clock.forward(seconds=10)
    assert {row.id for row in turns.claim(list(Kind), 10)} == {article, video}
    assert status_of(app.sessions, waiting) is Status.PENDING


def test_who_waits_for_a_later_try_does_not_hold_up_others(app: App, turns: Turns) -> None:
    """A turn may go to someone whose media is not due yet; the one after it goes on behind him."""
    for _ in range(3):
        new_media(app)
        [claim] = turns.claim(ARTICLES, 1) or turns.claim(ARTICLES, 1)
        with app.sessions.begin() as session:
            release(session, claim.id, 1, "E_X", session.now + timedelta(hours=1))
    due = new_media(app)
    claims = turns.claim(ARTICLES, 1) + turns.claim(ARTICLES, 1)
    assert [row.id for row in claims] == [due]


def test_nobody_waits_and_nothing_is_claimed(app: App, turns: Turns) -> None:
    assert turns.claim(list(Kind), 10) == []
    assert turns.claim([], 10) == []
    new_media(app)
    assert turns.claim(ARTICLES, 0) == []


def test_a_claim_given_back_comes_round_again(app: App, turns: Turns) -> None:
    new_media(app)
    [claim] = turns.claim(ARTICLES, 5)
    with app.sessions.begin() as session:
        give_back(session, claim.id, claim.processing_attempts)
    [again] = turns.claim(ARTICLES, 5)
    assert (again.id, again.processing_attempts) == (claim.id, 2)
