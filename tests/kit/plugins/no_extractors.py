"""A plugin that leaves nothing registered: NEXUS_PLUGINS=tests.kit.plugins.no_extractors."""

from nexus.extract import AVAILABLE_EXTRACTORS

AVAILABLE_EXTRACTORS.clear()
