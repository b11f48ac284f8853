"""Bytes from strangers: what must hold whatever they are, and fuzzers that look for exceptions."""
