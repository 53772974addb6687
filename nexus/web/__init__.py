"""The web's door: parse, call one verb, answer."""
