"""Fuzzing of input from strangers: properties that hold for any bytes, and fuzzers that look for
exceptions."""
