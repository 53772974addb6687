"""Who sees what: users, their libraries, who belongs to them, and what each may use per day."""
