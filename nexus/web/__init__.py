"""The web's door: parse, call ingest, answer."""
