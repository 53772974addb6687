"""How long another machine may ask to wait, and its Retry-After header."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

#: The longest wait that a Retry-After header may ask for, in seconds.
LONGEST_WAIT = 3600.0
#: The longest wait for a provider that blocks this address.
LONGEST_BLOCK = timedelta(days=1)


def parse_retry_after(header: str, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, or None if it can't be read."""
    if header.isascii() and header.isdigit():
        return min(float(header), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((aware - now).total_seconds(), 0.0), LONGEST_WAIT)
