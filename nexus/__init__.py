"""Nexus takes in what people read and watch, and never loses, duplicates or half-finishes any of it."""

from importlib.metadata import version

__version__ = version("nexus")
