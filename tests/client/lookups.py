"""A name whose addresses the test sets, in place of the lookups of clients."""

from __future__ import annotations

from collections.abc import Iterable

from disque_tx.client.addresses import Address, address
from disque_tx.client.errors import NameNotFound

NAME = "dns:n.example:7711"


class Lookups:
    """To be called instead of ``resolve``. ``listed``: addresses as text, none: the name does not
    exist. ``count``: how often the name was looked up."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self.count = 0

    def __call__(self, lookups: Iterable[Address]) -> tuple[list[Address], NameNotFound | None]:
        self.count += 1
        if not self.listed:
            return [], NameNotFound(NAME, "there is no such name")
        return [address(text) for text in self.listed], None
