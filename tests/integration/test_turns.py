"""Turns: one user's thousand URLs do not hold up another's one."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from nexus.app import App
from nexus.db.rows import MediaRow
from nexus.editorial.steps import Stepping
from nexus.media.lifecycle import BACKLOG, release
from nexus.media.runner import Extracting
from nexus.states.media import Kind, MediaStatus
from nexus.work.backlog import FIRST, USERS
from nexus.work.turns import Turns
from tests.kit.clock import SetClock
from tests.kit.databases import plan_of
from tests.kit.media import good_extractor, new_file, new_media, status_of


@pytest.fixture
def turns(app: App) -> Turns:
    return Turns(app.sessions, timedelta(seconds=60))


def claim(app: App, turns: Turns, kinds: list[Kind], most: int) -> list[MediaRow]:
    """What a process takes that can work on these kinds."""
    handler = Extracting(replace(app.tools, extractors=dict.fromkeys(kinds, good_extractor)))
    return [claim.subject for claim in turns.claim(handler, most)]


def users(claims: list[MediaRow]) -> Counter[UUID]:
    return Counter(claim.created_by_user_id for claim in claims)


def test_a_batch_is_shared_among_waiting_users(app: App, turns: Turns) -> None:
    greedy, modest = uuid4(), uuid4()
    for _ in range(10):
        new_media(app, greedy)
    for _ in range(2):
        new_media(app, modest)
    assert users(claim(app, turns, [Kind.WEB_ARTICLE], 4)) == {greedy: 2, modest: 2}
    assert users(claim(app, turns, [Kind.WEB_ARTICLE], 4)) == {greedy: 4}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_url_does_not_wait_behind_a_thousand_of_another_user(app: App, turns: Turns, most: int) -> None:
    for greedy in (UUID(int=1), UUID(int=2**128 - 1)):
        for _ in range(20):
            new_media(app, greedy)
    modest = uuid4()
    media_id = new_media(app, modest)
    for _ in range(3):
        claim(app, turns, [Kind.WEB_ARTICLE], most)
    assert status_of(app.sessions, media_id) is MediaStatus.EXTRACTING


def test_single_claims_alternate_between_users(app: App, turns: Turns) -> None:
    people = sorted(uuid4() for _ in range(3))
    for user in people:
        for _ in range(3):
            new_media(app, user)
    served = [claim(app, turns, [Kind.WEB_ARTICLE], 1)[0].created_by_user_id for _ in range(9)]
    assert served == people * 3


def test_more_users_than_one_query_finds_are_all_served(app: App, turns: Turns) -> None:
    people = {uuid4() for _ in range(USERS * 2 + 3)}
    for user in people:
        new_media(app, user)
    served: Counter[UUID] = Counter()
    for _ in range(3):
        served += users(claim(app, turns, [Kind.WEB_ARTICLE], 50))
    assert set(served) == people
    assert sum(served.values()) == len(people)


def test_only_due_media_of_the_asked_kinds_are_claimed(app: App, turns: Turns, clock: SetClock) -> None:
    user = uuid4()
    video, waiting = new_media(app, user, kind="video"), new_file(app, user, None)
    article = new_media(app, user)
    assert [row.id for row in claim(app, turns, [Kind.WEB_ARTICLE, Kind.PDF], 10)] == [article]
    with app.sessions.begin() as session:
        release(session, article, 1, "E_X", session.now + timedelta(seconds=10))
    assert claim(app, turns, [Kind.WEB_ARTICLE, Kind.PDF], 10) == []
    clock.forward(seconds=10)
    claimed = claim(app, turns, list(Kind), 10) + claim(app, turns, list(Kind), 10)
    assert {row.id for row in claimed} == {article, video}
    assert status_of(app.sessions, waiting) is MediaStatus.PENDING


def test_nothing_waits_behind_a_recording_that_may_have_to_be_transcribed(app: App, turns: Turns) -> None:
    for _ in range(2):
        new_media(app, kind="video")
        new_media(app)
    batches = []
    while batch := claim(app, turns, [Kind.VIDEO, Kind.WEB_ARTICLE], 10):
        batches.append(sorted(row.kind for row in batch))
    assert sum(map(len, batches)) == 4
    assert all(batch == [Kind.VIDEO] for batch in batches if Kind.VIDEO in batch)


def test_a_user_who_waits_for_a_later_try_does_not_block_others(app: App, turns: Turns) -> None:
    """A turn may go to someone whose media is not due yet; the one after it goes on behind them."""
    for _ in range(3):
        new_media(app)
        [claimed] = claim(app, turns, [Kind.WEB_ARTICLE], 1) or claim(app, turns, [Kind.WEB_ARTICLE], 1)
        with app.sessions.begin() as session:
            release(session, claimed.id, 1, "E_X", session.now + timedelta(hours=1))
    due = new_media(app)
    claims = claim(app, turns, [Kind.WEB_ARTICLE], 1) + claim(app, turns, [Kind.WEB_ARTICLE], 1)
    assert [row.id for row in claims] == [due]


def test_a_kind_takes_its_turn_although_other_work_is_looked_for_in_between(app: App, turns: Turns) -> None:
    """A worker asks for steps, which have three lanes, before it asks for items, which have four."""
    kinds = [Kind.EPUB, Kind.PDF, Kind.TEXT, Kind.WEB_ARTICLE]
    for _ in range(10):
        new_media(app)
    for number, kind in enumerate([Kind.EPUB, Kind.PDF]):
        new_file(app, uuid4(), str(number) * 64, kind=kind)
    tools = replace(app.tools, extractors=dict.fromkeys(kinds, good_extractor))
    claimed = []
    for _ in range(len(kinds)):
        assert turns.claim(Stepping(tools), 1) == []
        claimed += [one.subject.kind for one in turns.claim(Extracting(tools), 1)]
    assert {Kind.EPUB, Kind.PDF, Kind.WEB_ARTICLE} <= set(claimed)


def test_a_look_at_who_waits_reads_no_more_if_one_user_has_more_work(app: App) -> None:
    """A join of users and their work would read all of it."""
    new_media(app)
    with app.sessions.read() as session:
        values = {"lane": Kind.WEB_ARTICLE.value, "start": FIRST, "now": session.now, "most": USERS}
        plan = plan_of(session, BACKLOG._users, **values)
    assert "ix_media_waiting" in plan
    assert "Join" not in plan


def test_nothing_is_claimed_if_nobody_waits(app: App, turns: Turns) -> None:
    assert claim(app, turns, list(Kind), 10) == []
    assert claim(app, turns, [], 10) == []
    new_media(app)
    assert claim(app, turns, [Kind.WEB_ARTICLE], 0) == []


def test_a_claim_that_is_given_back_is_claimed_again(app: App, turns: Turns) -> None:
    new_media(app)
    [claimed] = claim(app, turns, [Kind.WEB_ARTICLE], 5)
    with app.sessions.begin() as session:
        release(session, claimed.id, claimed.processing_attempts, None, session.now, counted=False)
    [again] = claim(app, turns, [Kind.WEB_ARTICLE], 5)
    assert (again.id, again.processing_attempts) == (claimed.id, 2)
