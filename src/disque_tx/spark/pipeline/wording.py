"""Numbers, times and names as a report shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from disque_tx.text.counts import named

#: Characters of a name; of longer ones the ends are shown.
NAME_CHARACTERS_MAX: Final = 60
_SENTENCE_CHARACTERS_MAX: Final = 400
_NODE_CHARACTERS: Final = 8
#: From which value on a unit is used, its length, and its name; 100 s is not 1.67 min.
_SPANS: Final = (
    (48 * 3_600_000, 86_400_000, "d"),
    (2 * 3_600_000, 3_600_000, "h"),
    (120_000, 60_000, "min"),
    (1000, 1000, "s"),
    (0, 1, "ms"),
)
_SIZES: Final = tuple(
    (1 << bits if bits else 0, 1 << bits, unit)
    for bits, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B"))
)
NOTHING: Final = "–"  # noqa: RUF001


def count(value: float | None) -> str:
    """A number of things, or things per second: three digits are enough if it is not a whole
    number."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:,.3g}"


def counted(value: float, noun: str, plural: str = "") -> str:
    """A number of things, with their name; ``plural``: where it is not the noun with an s."""
    return f"{count(value)} {named(value, noun, plural)}"


def span(value_ms: float | None) -> str:
    """A duration."""
    return _in_units(value_ms, _SPANS)


def size(value: float | None) -> str:
    """A number of bytes."""
    return _in_units(value, _SIZES)


def _in_units(value: float | None, units: tuple[tuple[int, int, str], ...]) -> str:
    if value is None:
        return NOTHING
    _, scale, unit = next((each for each in units if value >= each[0]), units[-1])
    return f"{count(value / scale)} {unit}"


def share(part: float, whole: float) -> str:
    """A part of a whole, in percent."""
    return f"{100 * part / whole:.3g} %" if whole else NOTHING


def change(value: float | None, before: float | None) -> str:
    """How much a number grew since before, in percent of that."""
    if value is None or not before:
        return NOTHING
    return f"{100 * (value - before) / before:+.3g} %"


def moment(at_s: float) -> str:
    """A time of day in UTC."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def since(at_s: float) -> str:
    """The begin of a step of time in UTC, with the day of the week."""
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at:%a %Y-%m-%d %H:%M}{f'{at::%S}' if at.second else ''} UTC"


def node(node_id: str | None) -> str:
    """A node by the first characters of its ID, as in job IDs."""
    return name(node_id)[:_NODE_CHARACTERS]


def name(text: str | None) -> str:
    """A name that strangers chose. Characters that are not printable, or change the direction of
    text, become question marks; the template escapes markup."""
    if text is None:
        return NOTHING
    seen = _seen(text)
    if len(seen) <= NAME_CHARACTERS_MAX:
        return seen
    half = (NAME_CHARACTERS_MAX - 1) // 2
    return f"{seen[:half]}…{seen[-half:]}"


def sentence(text: str) -> str:
    """A text that may contain such names."""
    return _seen(text[:_SENTENCE_CHARACTERS_MAX])


def code(text: str) -> str:
    """Lines of a program that may contain such names, of any length."""
    return "\n".join(map(_seen, text.split("\n")))


def _seen(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
