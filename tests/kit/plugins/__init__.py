"""Modules that processes of Nexus load by name: NEXUS_PLUGINS=tests.kit.plugins.…"""

#: The file that opens every gate of a folder, for when the test is over.
EVERY_GATE = "every-gate"
