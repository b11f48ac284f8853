"""What is asked of all processes of the daemon, or of all nodes of the cluster: each answers for
itself, by ASK."""

from __future__ import annotations

from typing import Any, Final

import attrs

from disque_tx.errors import CommandError
from disque_tx.protocols.http.server.exchange import Exchange, Parameter

NODE: Final = b"NODE"
PROCESSES: Final = b"PROCESSES"
CLUSTER: Final = b"CLUSTER"
_SCOPES: Final = {"node": NODE, "daemon": PROCESSES, "cluster": CLUSTER}
#: Whose figures are wanted, by most lists.
SCOPE: Final = Parameter(
    "scope",
    "Of all processes of this daemon, of the node that answers, or of all nodes of the cluster",
    default="daemon",
    choices=tuple(_SCOPES),
)
#: A process that has just started does not know its figures yet.
_LOADING: Final = "LOADING"
#: How the error of a node of an earlier version begins that does not know the question.
_UNKNOWN: Final = "ASK knows no such question"


@attrs.define
class Asked:
    """``answers``: by the ID of the node, in the order of the processes. ``missing``: nodes without
    one."""

    answers: dict[bytes, Any] = attrs.Factory(dict)
    missing: list[bytes] = attrs.Factory(list)

    def miss(self, other: Asked) -> None:
        """Nodes that did not answer another question are missing here, too."""
        self.missing = sorted({*self.missing, *other.missing})

    def sources(self) -> dict[str, Any]:
        """Which nodes are in an answer, as members of it."""
        counted = [node for node in self.answers if node not in self.missing]
        return {"nodes": len(counted), "nodes_missing": [one.decode() for one in self.missing]}


def scope_of(exchange: Exchange) -> bytes:
    """Who is to be asked, by the parameter ``scope``."""
    return _SCOPES[str(exchange.word(SCOPE.name))]


def chosen_scope(exchange: Exchange) -> bytes:
    """The same, and all processes of this daemon where the operation has no such parameter."""
    return scope_of(exchange) if SCOPE in exchange.parameters else PROCESSES


def several(exchange: Exchange) -> bool:
    """Whether the request may be about more nodes than this one."""
    scope = chosen_scope(exchange)
    return scope != NODE and (scope != PROCESSES or exchange.host.processes is not None)


def process_numbers(exchange: Exchange) -> dict[bytes, int]:
    """The processes of this daemon, which are nodes, by their IDs; empty if it has one only."""
    processes = exchange.host.processes
    return {} if processes is None else processes.numbers()


def source(exchange: Exchange, node: bytes) -> dict[str, Any]:
    """Whose a row is: the ID of the node, and its number if it is a process of this daemon."""
    number = process_numbers(exchange).get(node)
    return {"node": node.decode()} | ({} if number is None else {"process": number})


async def ask(exchange: Exchange, scope: bytes, *words: bytes) -> Asked:
    """Ask a question of the nodes of this scope, or of the one with this ID. A node of an earlier
    version that does not know the question is missing. Raises ``CommandError`` if a node refuses
    it."""
    reply = await exchange.call(b"ASK", scope, *words)
    numbers = process_numbers(exchange)
    found = Asked({}, list(reply[b"nodes-missing"]))
    for node, value in sorted(
        reply[b"answers"], key=lambda row: (numbers.get(row[0], len(numbers) + 1), row[0])
    ):
        line = getattr(value, "line", None)
        if line is None:
            found.answers[node] = value
            continue
        code, _, text = line.decode("latin-1").partition(" ")
        if code != _LOADING and not text.startswith(_UNKNOWN):
            raise CommandError(code, text)
        found.missing.append(node)
    return found
