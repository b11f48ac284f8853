"""What INFO says at each of several nodes: asked for once a second, however many pages show it."""

from __future__ import annotations

from typing import Final

from disque_tx.protocols.http.api.base.kept import KeptAnswers
from disque_tx.protocols.http.api.base.values import text
from disque_tx.protocols.http.server.asking import Asked, ask, scope_of
from disque_tx.protocols.http.server.exchange import Exchange

_KEPT_S: Final = 1.0

Fields = dict[str, str]


class NodeInfos:
    """The answers of the last second, by scope; one of these belongs to each listener."""

    def __init__(self) -> None:
        self._kept: KeptAnswers[Asked] = KeptAnswers(_KEPT_S)

    async def get(self, exchange: Exchange) -> Asked:
        """The fields of INFO ALL of the nodes of the request's scope: a dictionary for each."""
        scope = scope_of(exchange)

        async def made() -> Asked:
            found = await ask(exchange, scope, b"INFO", b"all")
            answers = {node: fields_of(text(reply)) for node, reply in found.answers.items()}
            return Asked(answers, found.missing)

        return await self._kept.get(exchange, scope, made)


def fields_of(listing: str) -> Fields:
    """The fields in the text of INFO."""
    pairs = (line.partition(":") for line in listing.splitlines())
    return {name: value for name, colon, value in pairs if colon}


def number(fields: Fields, name: str) -> int:
    """A field as a whole number; 0 where it is missing."""
    value = fields.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 20 else 0
