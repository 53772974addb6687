"""How work survives: leases that are renewed while it runs, and lost with the process that held them."""
