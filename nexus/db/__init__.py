"""What is remembered: tables, sessions, the guarded move with its history, migrations."""
