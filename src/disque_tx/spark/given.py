"""The options of a format as they were given: texts by name, to be checked one by one.

Spark hands them over with names in lower case; messages show them as they are documented.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from disque_tx.client.errors import shown
from disque_tx.spark.errors import BadOption

#: What Spark itself puts among the options of a format.
_SPARKS: Final = frozenset(("checkpointlocation", "queryname"))
_TRUTHS: Final = {"true": True, "yes": True, "false": False, "no": False}


class Given:
    """``form``: the name of the format. ``known``: the names it has.

    :raises BadOption: when another one was given.
    """

    def __init__(self, form: str, options: Mapping[str, str], known: Iterable[str]) -> None:
        self._form = form
        self._options = {name.lower(): value for name, value in options.items()}
        names = sorted(known, key=str.lower)
        strange = set(self._options) - {name.lower() for name in names} - _SPARKS
        if strange:
            raise BadOption(
                f"The format {form} has no option {', '.join(map(repr, sorted(strange)))} here."
                f" It has: {', '.join(names)}."
            )

    def text(self, name: str) -> str | None:
        """As it was given; ``None`` if it was not, or is empty."""
        return self._options.get(name.lower()) or None

    def needed(self, name: str, example: str) -> str:
        """As it was given.

        :raises BadOption: when it was not.
        """
        value = self.text(name)
        if value is None:
            raise BadOption(
                f"The format {self._form} needs the option {name}, as in"
                f" .option({name!r}, {example!r})."
            )
        return value

    def number(self, name: str, least: int, most: int) -> int | None:
        """A whole number.

        :raises BadOption: when it is none, or is out of its range.
        """
        value = self.text(name)
        if value is None:
            return None
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
            raise self.bad(name, f"a whole number from {least} to {most}")
        if not least <= int(digits) <= most:
            raise self.bad(name, f"a whole number from {least} to {most}")
        return int(digits)

    def truth(self, name: str, otherwise: bool) -> bool:
        """True or false.

        :raises BadOption: when it is neither.
        """
        value = self.text(name)
        if value is None:
            return otherwise
        if value.strip().lower() not in _TRUTHS:
            raise self.bad(name, "true or false")
        return _TRUTHS[value.strip().lower()]

    def choice(self, name: str, values: Sequence[str]) -> str:
        """One of some words, by default the first.

        :raises BadOption: when it is another one.
        """
        value = (self.text(name) or values[0]).strip().lower()
        if value not in values:
            raise self.bad(name, " or ".join(values))
        return value

    def bad(self, name: str, wanted: str) -> BadOption:
        """The error for a value that cannot be."""
        value = shown(self._options.get(name.lower(), ""))
        return BadOption(f"The option {name} must be {wanted}, not {value!r}.")
