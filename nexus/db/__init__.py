"""What is remembered: tables, sessions with typed rows, the guarded move and its history, migrations."""
