"""Modules that processes of Nexus load by name: NEXUS_PLUGINS=tests.kit.plugins.…"""
