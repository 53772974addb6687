"""Files that a page's form sends, with limits for each of them and for all together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import Request, UploadFile
from starlette.datastructures import Headers
from starlette.datastructures import UploadFile as PlainUploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from nexus.errors import FileTooLarge, InvalidRequest

MOST_FILES = 1000
MOST_FIELDS = 20
MOST_FIELD_BYTES = 64 * 1024
MOST_FORM_BYTES = 1024 * 1024 * 1024
#: A file up to this size is kept in memory, a larger one on disk.
IN_MEMORY = 16 * 1024
#: The header of one part, with the file's name.
MOST_PART_HEADER = 8 * 1024


class _FileForm(MultiPartParser):
    """Starlette limits the number of files, but neither their size nor the memory that all of them take."""

    spool_max_size = IN_MEMORY

    def __init__(self, headers: Headers, stream: AsyncGenerator[bytes, None], most_bytes: int) -> None:
        super().__init__(
            headers, stream, max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=MOST_FIELD_BYTES
        )
        self._most_bytes = most_bytes
        self._received = 0

    def on_part_begin(self) -> None:
        self._received = 0
        super().on_part_begin()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._received += end - start
        if self._received > self._most_bytes:
            raise FileTooLarge(f"A file is larger than {self._most_bytes // 2**20} MiB. Nexus can't add it.")
        super().on_part_data(data, start, end)

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        super().on_header_value(data, start, end)
        if len(self._current_partial_header_value) > MOST_PART_HEADER:
            raise InvalidRequest("The name of a file is too long.")


@asynccontextmanager
async def posted_files(
    request: Request, field: str, most_bytes: int, count: Callable[[int], None]
) -> AsyncIterator[list[UploadFile]]:
    """The files of a form's field, each of at most so many bytes; they are gone afterwards.

    Raises FileTooLarge, InvalidRequest for anything but a form with files, and what counting the pieces raises.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidRequest("Choose files in the form on this page.")
    try:
        form = await _FileForm(request.headers, _up_to(request, MOST_FORM_BYTES, count), most_bytes).parse()
    except MultiPartException as error:
        raise InvalidRequest("These files did not arrive correctly. Try again.") from error
    try:
        found = [part for part in form.getlist(field) if isinstance(part, PlainUploadFile)]
        if not found:
            raise InvalidRequest("Choose at least one file.")
        yield [UploadFile(part.file, size=part.size, filename=part.filename) for part in found]
    finally:
        await form.close()


async def _up_to(request: Request, most: int, count: Callable[[int], None]) -> AsyncGenerator[bytes, None]:
    received = 0
    async for piece in request.stream():
        received += len(piece)
        if received > most:
            raise FileTooLarge("These files are too large together. Send fewer at once.")
        count(len(piece))
        yield piece
