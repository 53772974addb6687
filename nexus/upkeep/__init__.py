"""Is all well: the doctor and its promises, the sweep, what crashes leave behind, counts and events."""
