"""`nexus revisions`: the versions of an item, two of them compared, or another one chosen."""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

from nexus.app import App
from nexus.cli import say
from nexus.cli.context import acting_user, opened
from nexus.cli.failures import MISUSED, Refused
from nexus.errors import ApiError
from nexus.media import differences, queries, reader, versions
from nexus.media.differences import Span

SAME, REMOVED, ADDED = " ", "-", "+"


def show_revisions(
    data_dir: Path | None,
    user: UUID | None,
    media_id: UUID,
    *,
    use: int | None,
    enter: Path | None,
    diff: tuple[int, int] | None,
    as_json: bool,
) -> None:
    """List the versions of an item, after choosing one with `use` or entering one; or compare two."""
    if sum(one is not None for one in (use, enter, diff)) > 1:
        raise Refused("Give only one of --use, --enter and --diff.", MISUSED)
    with opened(data_dir) as app:
        viewer = acting_user(app.settings, user)
        try:
            if diff is not None:
                _compare(app, viewer, media_id, *diff, as_json=as_json)
                return
            if use is not None:
                versions.use_version(app.sessions, media_id, viewer, use)
            if enter is not None:
                versions.enter_own_text(app.sessions, media_id, viewer, "", _text_in(enter))
            _list(app, viewer, media_id, as_json=as_json)
        except ApiError as error:
            raise Refused(error.message) from error


def _text_in(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"This file can't be read as text: {path}. Save it in UTF-8, then try again."
        ) from error


def _list(app: App, viewer: UUID, media_id: UUID, *, as_json: bool) -> None:
    with app.sessions.read() as session:
        held = queries.get_media(session, media_id, viewer)
        found = versions.list_versions(session, held, viewer)
    for one in found:
        is_read = one.number == held.row.revision
        if as_json:
            whole = one._asdict() | {
                "origin": one.origin.value,
                "written_at": one.written_at.isoformat(),
                "seen_at": one.seen_at.isoformat(),
                "is_read": is_read,
            }
            say.as_json(whole)
            continue
        state = "yours" if is_read else "" if one.is_held or one.was_held else "newer"
        when = f"{one.written_at:%Y-%m-%d %H:%M}"
        say.line(one.number, state, when, f"{one.words:,} words", say.printable(one.title or ""))


def _compare(app: App, viewer: UUID, media_id: UUID, before: int, after: int, *, as_json: bool) -> None:
    with app.sessions.read() as session:
        texts = [reader.whole_text(session, media_id, viewer, number) for number in (before, after)]
    found = differences.compare(*texts)
    if as_json:
        say.as_json({"words_removed": found.words_removed, "words_added": found.words_added})
        return
    for row in found.rows:
        if row.left_out:
            say.line(f"… {row.left_out} paragraphs unchanged")
        elif row.before == row.after:
            say.line(f"{SAME} {_marked(row.before, SAME)}")
        else:
            for sign, spans in ((REMOVED, row.before), (ADDED, row.after)):
                if spans:
                    say.line(f"{sign} {_marked(spans, sign)}")


def _marked(spans: tuple[Span, ...], sign: str) -> str:
    """Like `git diff --word-diff`: [-removed-] and {+added+}."""
    marks = {REMOVED: ("[-", "-]"), ADDED: ("{+", "+}"), SAME: ("", "")}[sign]
    parts = (f"{marks[0]}{span.text.rstrip()}{marks[1]} " if span.is_marked else span.text for span in spans)
    return say.printable("".join(parts)).strip()
