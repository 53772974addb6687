"""Files as a person gives them to a page: made, dragged, chosen, held back on their way."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID, uuid4

from playwright.sync_api import FilePayload, Locator, Page, Route
from sqlalchemy import bindparam, update

from nexus.app import build
from nexus.db.session import Statement
from nexus.db.tables import uploads
from tests.kit.browser import LiveSite

PDF, EPUB = "application/pdf", "application/epub+zip"
STORE = "**/storage/**"
DRAG = """({ files, kinds, onto }) => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  for (const { name, mimeType, text } of files) {
    dataTransfer.items.add(new File([bytes(text)], name, { type: mimeType }));
  }
  for (const kind of kinds) {
    document.querySelector(onto).dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  }
}"""
_LINK_IS_OVER = Statement(
    update(uploads)
    .where(uploads.c.media_id == bindparam("media"))
    .values(expires_at=datetime(2020, 1, 1, tzinfo=UTC))
)


def pdf(name: str = "tides.pdf", length: int = 0) -> FilePayload:
    """A unique PDF with one empty page."""
    body = (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\n"
        b"trailer<</Root 1 0 R>>\n%" + uuid4().hex.encode() + b"\n%%EOF\n"
    )
    return {"name": name, "mimeType": PDF, "buffer": body.ljust(length)}


def epub(name: str = "lighthouse.epub") -> FilePayload:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as book:
        book.writestr("mimetype", EPUB)
        book.writestr("META-INF/container.xml", f"<container><!-- {uuid4().hex} --></container>")
    return {"name": name, "mimeType": EPUB, "buffer": whole.getvalue()}


def drag(page: Page, files: list[FilePayload], *kinds: str, onto: str = "body") -> None:
    """Send the events of a user who drags files over the page, or over an element of it."""
    given = [
        {
            "name": file["name"],
            "mimeType": file["mimeType"],
            "text": base64.b64encode(file["buffer"]).decode(),
        }
        for file in files
    ]
    page.evaluate(DRAG, {"files": given, "kinds": kinds, "onto": onto})


def drop(page: Page, *files: FilePayload, onto: str = "body") -> None:
    drag(page, list(files), "dragenter", "dragover", "drop", onto=onto)


def choose(page: Page, *files: FilePayload) -> None:
    page.locator("#files").set_input_files(list(files))


def item(page: Page, name: str) -> Locator:
    """A file's row in the list, once its upload is done."""
    return page.locator(".item").filter(has_text=name)


def upload(page: Page, name: str) -> Locator:
    """A file's row while it is being uploaded."""
    return page.locator(".upload").filter(has_text=name)


@contextmanager
def held_back(page: Page, address: str = STORE) -> Iterator[list[Route]]:
    """Hold requests back, such as uploads to the store, until each is continued or the block ends."""
    held: list[Route] = []
    page.route(address, lambda route: held.append(route))  # noqa: PLW0108 - playwright marks what it is given
    yield held
    page.unroute(address)


def is_sent(page: Page, file: FilePayload, address: str = STORE) -> None:
    """Choose a file, and wait until the page sends a request to this address."""
    with page.expect_request(address):
        choose(page, file)
    page.evaluate("0")  # by its answer, earlier events of the browser have arrived


def end_link(site: LiveSite, media: str) -> None:
    app = build(site.settings())
    with app.sessions.begin() as session:
        session.run(_LINK_IS_OVER, media=UUID(media))
    app.close()
