"""How fast Nexus is, as ratios against hand-written code and against its peers."""
