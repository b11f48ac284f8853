"""Tests of what workers say about themselves, and of what they are told."""
