"""Glob patterns: ``*``, ``?``, ``[a-z]``, ``[^a]`` and ``\\`` (client protocol, section 6.6)."""

from __future__ import annotations

from typing import Final

_SPECIAL: Final = b"*?["


def is_glob(text: bytes) -> bool:
    """Whether the text has a character that makes it match more than itself."""
    return any(byte in text for byte in _SPECIAL)


def escaped(text: bytes) -> bytes:
    """The pattern that matches this text only."""
    for byte in (b"\\", b"*", b"?", b"["):
        text = text.replace(byte, b"\\" + byte)
    return text


def glob_match(pattern: bytes, text: bytes) -> bool:
    """Whether all of ``text`` matches ``pattern`` (client protocol, section 6.6); case matters.

    Takes at most ``len(pattern) * len(text)`` steps: it backtracks to the last star only.
    """
    pos = at = 0
    star = star_at = -1
    while at < len(text):
        if pos < len(pattern) and pattern[pos] == ord("*"):
            star, star_at = pos, at
            pos += 1
            continue
        following = _match_one(pattern, pos, text[at])
        if following >= 0:
            pos, at = following, at + 1
        elif star >= 0:
            star_at += 1
            pos, at = star + 1, star_at
        else:
            return False
    return not pattern[pos:].strip(b"*")


def _match_one(pattern: bytes, pos: int, byte: int) -> int:
    """The position after matching ``byte`` at ``pos`` of the pattern; -1 if it does not match."""
    if pos >= len(pattern):
        return -1
    wanted = pattern[pos]
    if wanted == ord("?"):
        return pos + 1
    if wanted == ord("["):
        return _match_class(pattern, pos + 1, byte)
    if wanted == ord("\\") and pos + 1 < len(pattern):
        pos += 1
        wanted = pattern[pos]
    return pos + 1 if wanted == byte else -1


def _match_class(pattern: bytes, pos: int, byte: int) -> int:
    """Like :func:`_match_one`, after the ``[``; a class that is never closed ends the pattern."""
    negated = pattern[pos : pos + 1] == b"^"
    pos += negated
    found = False
    while pos < len(pattern) and pattern[pos] != ord("]"):
        if pattern[pos] == ord("\\") and pos + 1 < len(pattern):
            pos += 1
            low = high = pattern[pos]
        elif pattern[pos + 1 : pos + 2] == b"-" and pos + 2 < len(pattern):
            low, high = sorted((pattern[pos], pattern[pos + 2]))
            pos += 2
        else:
            low = high = pattern[pos]
        found = found or low <= byte <= high
        pos += 1
    return min(pos + 1, len(pattern)) if found != negated else -1
