from uuid import uuid4
from tests.support import *
from nexus.extract import *
from nexus.states.media import *
from nexus.ingest import pipeline, read, events, libraries, sweep
from nexus.ingest.turns import Turns
from datetime import timedelta


def test_smoke(app, clock):
    u = uuid4()
    m = new_media(app, u)
    AVAILABLE_EXTRACTORS[Kind.WEB_ARTICLE] = lambda s: Extraction("t", ("a", "b"))
    assert pipeline.run(app.tools, m) is pipeline.Outcome.READABLE
    with app.sessions.read() as s:
        v = read.get(s, m, u)
        assert v.capabilities.can_read
        print(v)
    ms = [new_media(app, u) for _ in range(5)]
    with app.sessions.begin() as s:
        lib = libraries.create(s, u, "x")
        libraries.add_media(s, lib, ms[0], u)
    got = []
    c = None
    while True:
        with app.sessions.read() as s:
            p = read.newest(s, u, cursor=c, most=2)
        got += [x.row.id for x in p.items]
        c = p.next_cursor
        if not c:
            break
    assert len(got) == 6 == len(set(got))
    with app.sessions.read() as s:
        p = read.newest(s, u, status=Status.PENDING)
        assert len(p.items) == 5
        ev = events.after(s, u, events.Place(0, 0))
        assert len(ev) == 8
        assert events.last(s) == events.Place(ev[-1].tx, ev[-1].id)
        assert len(read.text(s, m, u).items) == 2
        assert len(read.events(s, m, u).items) == 3
    t = Turns(app.sessions, timedelta(seconds=5))
    assert len(t.claim([Kind.WEB_ARTICLE], 3)) == 3
    clock.forward(seconds=10)
    assert sweep.run(app.tools, app.queue).released == 3
    with app.sessions.begin() as s:
        libraries.delete_media(s, m, u)
    assert row_of(app.sessions, m) is None
