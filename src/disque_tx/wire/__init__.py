"""Bytes from and to values: the client protocol, the log, identifiers. Knows no state."""
