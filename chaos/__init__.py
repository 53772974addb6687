"""Breaks a whole Nexus on purpose, from a seed: kills, freezes, cut connections, full disks. Then: what was kept?"""
