"""Nexus takes in what people read and watch, and never loses, duplicates or half-finishes any of it."""

__version__: str


def __getattr__(name: str) -> str:
    """The version is read when somebody asks for it: few commands do, and looking it up takes long."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415

    return version("nexus")
