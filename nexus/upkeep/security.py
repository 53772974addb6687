"""`nexus doctor --security`: what protects this Nexus. Changes nothing.

A section is a function that returns findings, each named `section.subject`.
"""

from __future__ import annotations

from collections.abc import Callable

from nexus.settings import Settings
from nexus.upkeep.confinement import check_sandbox
from nexus.upkeep.findings import Finding
from nexus.upkeep.security_settings import (
    check_files,
    check_hosts,
    check_permissions,
    check_secrets,
    check_tls,
    check_versions,
)
from nexus.upkeep.standing_keys import check_standing_keys

Section = Callable[[Settings], list[Finding]]
SECTIONS: tuple[Section, ...] = (
    check_secrets,
    check_standing_keys,
    check_tls,
    check_hosts,
    check_permissions,
    check_sandbox,
    check_files,
    check_versions,
)


def examine_security(settings: Settings) -> list[Finding]:
    """Run every section."""
    return [finding for section in SECTIONS for finding in section(settings)]
