"""Everything goes wrong, on purpose and by a seed: kills, freezes, cut connections, full disks. Then: what was kept?"""
