"""Making nodes know each other, and waiting until they do."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Final

import attrs

from disque_tx.cli.cluster.nodeview import NodeView, glance
from disque_tx.cli.verbs.members import Answers, Members
from disque_tx.client import addresses
from disque_tx.client.blocking import Disque
from disque_tx.errors import DisqueError

_CONNECT_S: Final = 3.0
_POLL_S: Final = 0.2
#: A node that was just started may take so long until it answers.
_START_S: Final = 5.0
#: A MEET that led to nothing is made again after so long.
_AGAIN_S: Final = 5.0


class NotJoined(DisqueError):
    """Nodes cannot be joined, or did not get to know each other in time; the text says which."""


@attrs.frozen
class Place:
    """Where MEET is to look for a node: an IP address and a port."""

    ip: str
    port: int


def reached(given: str) -> Place:
    """``host:port`` as MEET wants it: the IP address at which it is reached from here.

    :raises NotJoined: it is not.
    """
    at = addresses.address(given)
    try:
        with socket.create_connection((at.host, at.port), _CONNECT_S) as connection:
            return Place(str(connection.getpeername()[0]), at.port)
    except OSError as error:
        raise NotJoined(f"{given} cannot be reached any more: {error}.") from error


class Joining:
    """``first`` is told to meet the nodes at ``places``; then all at ``addresses`` are asked until
    each knows all of ``ids``. ``causes``: why that may not succeed. ``sleep`` and ``now_s``: rest
    and clock, in seconds."""

    def __init__(
        self,
        members: Members,
        first: str,
        addresses: list[str],
        places: list[Place],
        ids: set[str],
        causes: list[str],
        sleep: Callable[[float], object] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = members
        self._first = first
        self._addresses = addresses
        self._places = places
        self._ids = ids
        self._causes = causes
        self._sleep = sleep
        self._now_s = now_s

    @property
    def pairs(self) -> int:
        """How often a node has to know a node."""
        return len(self._addresses) * len(self._ids)

    def run(self, timeout_s: float, advance: Callable[[int], None]) -> None:
        """Join them.

        :raises NotJoined: not within ``timeout_s``.
        """
        began_s = self._now_s()
        meet_s = known = 0.0
        while True:
            if self._now_s() - began_s >= meet_s:
                self._members.ask([self._first], self._meet)
                meet_s += _AGAIN_S
            found = self._members.try_to_ask(self._addresses, glance)
            now_known = sum(len(well(view) & self._ids) for view in found.of.values())
            advance(int(now_known - known))
            known = now_known
            if known == self.pairs:
                return
            if self._now_s() - began_s > timeout_s:
                raise NotJoined(self._report(found.of, found.silent, timeout_s))
            self._sleep(_POLL_S)

    def _meet(self, node: Disque) -> None:
        for place in self._places:
            node.cluster_meet(place.ip, place.port)

    def _report(self, of: dict[str, NodeView], silent: dict[str, str], timeout_s: float) -> str:
        lines = [f"{address} does not answer: {why}" for address, why in silent.items()]
        for address, view in of.items():
            missing = ", ".join(sorted(self._ids - well(view)))
            if missing:
                lines.append(f"{address} has no link to {missing}")
        return (
            f"After {timeout_s:g} s not all nodes know all:\n  "
            + "\n  ".join(lines)
            + "".join(f"\nLikely cause: {cause}" for cause in self._causes)
            + "\nEach node must reach the bus port (the port + 10000) of every other. It is safe to"
            " run this again."
        )


def answering(
    members: Members,
    nodes: tuple[str, ...],
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
    now_s: Callable[[], float] = time.monotonic,
) -> Answers[NodeView]:
    """What the nodes know. Those that were just started get :data:`_START_S` to answer."""
    began_s = now_s()
    said = False
    while True:
        found = members.try_to_ask(nodes, glance)
        if not found.silent or now_s() - began_s > _START_S:
            return found
        if not said:
            said = True
            say(f"Waiting for {', '.join(found.silent)} to answer, up to {_START_S:g} s")
        sleep(_POLL_S)


def well(view: NodeView) -> set[str]:
    """The nodes it knows and finds well, itself included."""
    bad = {"handshake", "noaddr", "fail", "fail?"}
    return {node.id for node in view.table.values() if node.connected and not node.flags & bad}


def others(views: list[NodeView]) -> list[str]:
    """Addresses of the nodes that these find well, without these."""
    asked = {view.id for view in views}
    found = {
        node.id: node.address
        for view in views
        for node in view.table.values()
        if node.id in well(view) - asked
    }
    return sorted(found.values())


def is_joined(views: list[NodeView], ids: set[str]) -> bool:
    """Whether each knows all already."""
    return all(ids <= well(view) for view in views)
