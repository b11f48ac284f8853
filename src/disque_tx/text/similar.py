"""Texts that differ by numbers and names only, such as reasons of failures, counted as one."""

from __future__ import annotations

import re
from typing import Final

#: Stands for what was taken out.
GAP: Final = "…"
#: A word with a digit in it, with all that names and addresses are made of: 4711, 0x7f,
#: D-dcb833cf-…, 10.0.0.7:7711, order_12. What an address of e-mail looks like.
_NAMED: Final = re.compile(r"[\w.+/:@#%-]*\d[\w.+/:@#%-]*|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
#: What ends a sentence or a clause belongs to it, not to the name in front.
_END: Final = re.compile(r"[.:,/-]+\Z")
_GAPS: Final = re.compile(rf"{GAP}(?:[ ,]+{GAP})+")
#: Longer texts are compared by their beginning: the cost of one is bounded.
_LOOKED_AT: Final = 200


def similar(text: str) -> str:
    """The text on one line, with ``…`` in place of each number, identifier and address of e-mail.
    Texts for which this is the same have one cause, as a rule."""
    line = " ".join(text[:_LOOKED_AT].split())
    return _GAPS.sub(GAP, _NAMED.sub(_gap, line))


def _gap(found: re.Match[str]) -> str:
    end = _END.search(found.group())
    return GAP + (end.group() if end else "")
