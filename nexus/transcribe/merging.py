"""Puts together what several sources know about a recording."""

from __future__ import annotations

import msgspec

from nexus.extract.recording import Recording


def fill_in(known: Recording, more: Recording) -> Recording:
    """Return what is known, with whatever is missing in it taken from elsewhere."""
    missing = {
        name: value
        for name in Recording.__struct_fields__
        if not getattr(known, name) and (value := getattr(more, name))
    }
    return msgspec.structs.replace(known, **missing)
