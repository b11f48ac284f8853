"""Numbers of things, for people."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number and the noun, in the plural if need be; ``plural``: where it is not the noun with
    an s."""
    return f"{number} {named(number, noun, plural)}"


def named(number: float, noun: str, plural: str = "") -> str:
    """The noun alone, as it stands behind this number."""
    return noun if number == 1 else plural or f"{noun}s"
