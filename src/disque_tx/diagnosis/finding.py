"""One thing that is wrong, or that an operator should know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from disque_tx.diagnosis.facts import Survey

PROBLEM: Final = "problem"
NOTE: Final = "note"


@attrs.frozen
class Finding:
    """``severity``: problem or note. ``node``: the address of the node, or ``cluster``. ``what``: a
    description, with its cause as far as it is known. ``advice``: what to do. ``since_s``: unix
    time at which it began; ``None`` if that is not known. ``link``: the page of the console about
    it, if there is one."""

    severity: str
    node: str
    what: str
    advice: str
    since_s: float | None = None
    link: str = ""


#: Looks for one kind of trouble.
Check = Callable[[Survey], Iterator[Finding]]
