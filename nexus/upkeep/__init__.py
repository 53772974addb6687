"""Is all well: the doctor and what it checks, the sweep, what crashes leave behind, counts and events."""
