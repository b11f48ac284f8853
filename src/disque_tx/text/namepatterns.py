"""Glob patterns for names of queues, as HTTP takes them: as in shells, of characters, not bytes."""

from __future__ import annotations

from fnmatch import translate
from re import compile as compiled

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class NamePattern:
    """``longest``: bytes of names that it may match; longer ones are none."""

    def __init__(self, pattern: str, longest: int) -> None:
        self.size = len(pattern.encode())
        self.everything = pattern == "*"
        self._longest = longest
        self._match = compiled(translate(pattern)).match

    def matches(self, name: bytes) -> bool:
        """Whether a name is meant."""
        if len(name) > self._longest:
            return False
        return self.everything or self._match(name.decode("utf-8", "backslashreplace")) is not None
