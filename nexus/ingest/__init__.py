"""What we do: the verbs. They take a session and never commit; long ones take the session factory."""
