"""What can go wrong around Nexus, on demand: lines that are cut, disks that are full, processes that die."""
