"""Numbers of things, for people."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number and the noun, in the plural if need be; ``plural``: where it is not the noun with
    an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
