"""A browser's name, from what it says about itself: enough to tell your own phone from a stranger's."""

from __future__ import annotations

#: A name, and what is in the `User-Agent` of the browsers that have it. The first that fits: many claim to be others.
_BROWSERS = (
    ("Edge", "Edg"),
    ("Opera", "OPR/"),
    ("Samsung Internet", "SamsungBrowser/"),
    ("Firefox", "Firefox/"),
    ("Firefox", "FxiOS/"),
    ("Chrome", "CriOS/"),
    ("Chrome", "Chrome/"),
    ("Safari", "Safari/"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("ChromeOS", "CrOS"),
    ("macOS", "Mac OS X"),
    ("Linux", "Linux"),
)
UNKNOWN = "An unknown browser"


def device_of(user_agent: str) -> str:
    """Return a name like `Firefox on Linux`."""
    browser = next((name for name, mark in _BROWSERS if mark in user_agent), None)
    system = next((name for name, mark in _SYSTEMS if mark in user_agent), None)
    if browser is None:
        return UNKNOWN if system is None else f"{UNKNOWN} on {system}"
    return browser if system is None else f"{browser} on {system}"
