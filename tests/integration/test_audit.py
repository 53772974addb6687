"""The audit log: what is recorded, who reads it, and how long it is kept."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from nexus.app import App
from nexus.errors import Conflict
from nexus.libraries import audit, catalog, members, sign_ins
from nexus.libraries.access import Role
from nexus.libraries.audit import AuditEvent
from nexus.libraries.sign_ins import Method
from nexus.upkeep import doctor, retention
from nexus.upkeep.doctor import CheckVerdict, Patient
from nexus.worker.threads import Forgetting
from tests.kit.clock import SetClock
from tests.kit.http import Caller, Site, data, problem
from tests.kit.http_imports import TEXT, open_batch, stage_file, wait_for_import
from tests.kit.job_calls import enter_job
from tests.kit.media import new_file
from tests.kit.users import new_user

HERE = "127.0.0.1"


def read(caller: Caller, **params: object) -> list[dict[str, Any]]:
    return list(data(caller.get("/audit", params=params))["items"])


def told(caller: Caller, **params: object) -> list[tuple[str, str | None]]:
    """Event and subject, the oldest first."""
    return [(entry["event"], entry["subject_id"]) for entry in reversed(read(caller, **params))]


def put(caller: Caller, library: str, media_id: UUID) -> None:
    data(caller.post(f"/libraries/{library}/media", json={"media_id": str(media_id)}))


def test_what_happens_in_a_library_is_recorded(app: App, me: Caller, you: Caller, clock: SetClock) -> None:
    you.get("/libraries")
    library, media_id = me.library("Research"), me.add()
    put(me, library, media_id)
    put(me, library, media_id)  # which changes nothing
    made = data(me.post(f"/libraries/{library}/invitations", json={"user_id": str(you.user)}))
    data(you.post(f"/invitations/{made['id']}/accept"))
    data(me.let_in(library, you.user, "admin"))
    data(you.delete(f"/libraries/{library}/media/{media_id}"))
    data(me.delete(f"/libraries/{library}/members/{you.user}"))
    assert told(me, library_id=library) == [
        ("item_shared", str(media_id)),
        ("invited", made["id"]),
        ("invitation_accepted", made["id"]),
        ("role_changed", str(you.user)),
        ("item_removed", str(media_id)),
        ("member_removed", str(you.user)),
    ]
    entry = read(me, event="item_removed")[0]
    assert (entry["user_id"], entry["address"], entry["at"]) == (str(you.user), HERE, clock().isoformat())


def test_answers_and_settings_are_recorded(me: Caller, you: Caller) -> None:
    library = me.library()
    made = [
        data(me.post(f"/libraries/{library}/invitations", json=whom))["id"]
        for whom in ({"user_id": str(you.user)}, {"email": "ann@example.com"})
    ]
    data(you.post(f"/invitations/{made[0]}/decline"))
    data(me.delete(f"/libraries/{library}/invitations/{made[1]}"))
    data(you.patch("/me", json={"name": "Ann"}))
    assert told(me)[2:] == [("invitation_revoked", made[1])]
    assert told(you) == [("invitation_declined", made[0]), ("setting_changed", str(you.user))]


@pytest.mark.usefixtures("installed_extractors")
def test_sign_ins_and_tokens_are_recorded(app: App, me: Caller) -> None:
    made = data(me.post("/tokens", json={"name": "script", "scope": "read"}))
    data(me.delete(f"/tokens/{made['id']}"))
    lives = app.settings.sign_in_lives
    with app.sessions.begin() as session:
        for _ in range(3):
            sign_ins.begin_sign_in(session, me.user, Method.LINK, "Firefox on Linux", lives, session.now)
        first, *_ = sign_ins.list_sign_ins(session, me.user)
        sign_ins.end(session, me.user, first.id)
        sign_ins.end(session, me.user, first.id)  # which changes nothing
        assert sign_ins.end_all(session, me.user) == 2
    assert [event for event, _ in told(me)] == [
        "token_created",
        "token_revoked",
        *["signed_in"] * 3,
        *["signed_out"] * 2,
    ]
    assert made["token"] not in str(read(me))


@pytest.mark.usefixtures("installed_extractors")
def test_an_import_into_a_library_is_one_entry(me: Caller) -> None:
    batch = open_batch(me, "Research")
    for name in ("one.txt", "two.txt"):
        stage_file(me, batch, name, name.encode() + TEXT)
    data(me.post(f"/imports/batches/{batch}/start"))
    wait_for_import(me, "COMPLETE")
    [entry] = read(me, event="item_shared")
    assert (entry["about"], entry["address"]) == ("2 imported", HERE)


def test_deletions_are_recorded_where_they_happen(app: App, me: Caller, you: Caller) -> None:
    """The uploader deletes a file: the admin of a library that held it can see what became of it."""
    you.get("/libraries")
    media_id, library = new_file(app, me.user, "a" * 64, stored=True), me.library()
    put(me, library, media_id)
    data(me.let_in(library, you.user, "admin"))
    data(me.delete(f"/media/{media_id}"))
    assert told(you, library_id=library, event="item_removed") == [("item_removed", str(media_id))]
    assert told(me, event="item_deleted") == [("item_deleted", str(media_id))]
    data(me.delete(f"/libraries/{library}"))
    [entry] = read(me, event="library_deleted")
    assert (entry["library_id"], entry["about"]) == (library, "Shared")


def test_who_removed_a_job_is_recorded(me: Caller) -> None:
    job_id = enter_job(me)
    me.delete(f"/api/ingestion-jobs/{job_id}").raise_for_status()
    assert told(me, event="job_removed") == [("job_removed", job_id)]
    assert read(me, event="job_removed")[0]["library_id"] is not None


def test_an_entry_is_there_only_with_the_change(app: App) -> None:
    owner = new_user(app)
    with app.sessions.begin() as session:
        library = catalog.create_library(session, owner, "Shared")
    with pytest.raises(Conflict), app.sessions.begin() as session:
        members.set_role(session, library, owner, Role.MEMBER, owner)
    with app.sessions.read() as session:
        assert audit.extent(session).entries == 0


def test_a_reader_sees_their_own_doings_and_those_in_libraries_they_administer(
    me: Caller, you: Caller, site: Site
) -> None:
    stranger, library = site.caller(), me.library()
    data(me.let_in(library, you.user))
    mine = told(me)
    assert len(mine) == 2
    assert told(you) == mine[1:]  # a plain member: what they did
    assert told(stranger) == []
    assert told(stranger, library_id=library) == []
    assert told(stranger, user_id=str(me.user)) == []
    data(me.let_in(library, you.user, "admin"))
    assert told(you)[:2] == mine


def test_names_in_the_log_are_for_those_who_share_a_library(me: Caller, you: Caller) -> None:
    library = me.library()
    data(you.patch("/me", json={"name": "Ann"}))
    data(me.let_in(library, you.user))
    assert read(me, event="invitation_accepted")[0]["user_name"] == "Ann"
    data(you.delete(f"/libraries/{library}/members/{you.user}"))
    assert read(me, event="invitation_accepted")[0]["user_name"] is None


@pytest.mark.parametrize("how", ["operators", "local_owner"])
def test_an_operator_sees_everything(app: App, site: Site, me: Caller, how: str) -> None:
    library = me.library()
    data(me.post(f"/libraries/{library}/invitations", json={"email": "ann@example.com"}))
    boss = site.caller()
    assert told(boss) == []
    chosen: Any = (boss.user,) if how == "operators" else boss.user
    object.__setattr__(app, "settings", app.settings.model_copy(update={how: chosen}))
    assert [event for event, _ in told(boss)] == ["invited"]


def test_the_log_is_read_page_by_page(me: Caller) -> None:
    for number in range(5):
        data(me.patch("/me", json={"name": f"Name {number}"}))
    seen, cursor = [], None
    while True:
        place = {} if cursor is None else {"cursor": cursor}
        page = data(me.get("/audit", params={"limit": 2, **place}))
        seen += [entry["id"] for entry in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (len(seen), seen) == (5, sorted(seen, reverse=True))


@pytest.mark.parametrize(
    "params",
    [{"event": "x"}, {"cursor": "x"}, {"cursor": 0}, {"limit": 0}, {"limit": 1000}, {"library_id": "x"}],
)
def test_bad_questions_are_refused(me: Caller, params: dict[str, object]) -> None:
    assert problem(me.get("/audit", params=params)) == (400, "E_INVALID_REQUEST")


def test_an_entry_needs_nobody_who_is_signed_in(app: App) -> None:
    """For what happens by itself."""
    with app.sessions.begin() as session, audit.called_from("192.0.2.7"):
        audit.record(session, AuditEvent.SETTING_CHANGED, None, about="a new key")
    with app.sessions.read() as session:
        [entry] = audit.entries(session, uuid4(), audit.AuditFilter(), everything=True)
    assert (entry.user_id, entry.address, entry.about) == (None, "192.0.2.7", "a new key")


def test_old_entries_are_forgotten(app: App, me: Caller, clock: SetClock) -> None:
    data(me.patch("/me", json={"name": "Old"}))
    clock.forward(days=1)
    data(me.patch("/me", json={"name": "New"}))
    clock.forward(days=app.settings.audit_days - 1, seconds=1)
    assert retention.forget_old(app.sessions, app.settings.audit_days)["audit_entries"] == 1
    assert len(read(me)) == 1


def test_workers_forget_what_is_past_its_time(app: App, me: Caller, clock: SetClock) -> None:
    library = me.library()
    data(me.post(f"/libraries/{library}/invitations", json={"email": "ann@example.com"}))
    clock.forward(days=app.settings.audit_days + 1)
    with capture_logs() as logs:
        Forgetting(app)._forget()
        Forgetting(app)._forget()
    assert [{key: line[key] for key in ("audit_entries", "invitations")} for line in logs] == [
        {"audit_entries": 1, "invitations": 1}
    ]


def test_the_doctor_notes_a_log_that_is_never_shortened(app: App, me: Caller, clock: SetClock) -> None:
    data(me.patch("/me", json={"name": "Old"}))

    def look() -> doctor.Finding:
        patient = Patient(app.settings, app.sessions, app.tools.extractors, app.files)
        return next(found for found in doctor.examine(patient) if found.name == "audit.retention")

    assert look().verdict is CheckVerdict.OK
    clock.forward(days=app.settings.audit_days + 3)
    assert look().verdict is CheckVerdict.NOTE


def test_request_log_lines_name_the_user(site: Site, me: Caller) -> None:
    with capture_logs() as logs:
        me.library()
        site.anyone().post("/libraries", json={"name": "x"})
    lines = {line.get("status"): line.get("user") for line in logs if line["event"] == "request"}
    assert lines == {200: str(me.user), 401: None}
