"""Which words of a request are passwords, so that nobody reads them in MONITOR and SLOWLOG."""

from __future__ import annotations

from typing import Final

MASK: Final = b"(redacted)"


def mask(argv: list[bytes], name: bytes = b"") -> list[bytes]:
    """The request with its passwords replaced; the same list when it has none.

    ``name``: the command's original name in lower case, for one that goes by another name;
    otherwise the first word tells.
    """
    hidden = _hidden(name if name else argv[0].lower(), argv)
    if not hidden:
        return argv
    return [MASK if place in hidden else word for place, word in enumerate(argv)]


def _hidden(name: bytes, argv: list[bytes]) -> list[int]:
    """Where the passwords stand."""
    if name == b"auth":
        return list(range(1, len(argv)))
    if name == b"config":
        secret = [word.lower() for word in argv[1:3]] == [b"set", b"requirepass"]
        return list(range(3, len(argv))) if secret else []
    if name == b"hello":
        return _hidden_in_hello(argv)
    return []


def _hidden_in_hello(argv: list[bytes]) -> list[int]:
    """User and password behind every AUTH, even where the request is malformed."""
    places: list[int] = []
    for place in range(2, len(argv)):
        if argv[place].lower() == b"auth":
            places += [place + 1, place + 2]
    return places
