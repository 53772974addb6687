"""Who sees what: users, libraries, members, access, and how much each user may use per day."""
