"""Makes nodes know each other, waits until they do, and finds out why they may not be able to.

Without TLS, and without ``cluster-insecure yes``, a node opens its bus to its own host only.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Final

import attrs

from disque_tx.cli.verbs.base.members import MemberAnswers, Members
from disque_tx.cli.verbs.base.survey import basic_view
from disque_tx.client import addresses
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused
from disque_tx.diagnosis.facts import SurveyedNode
from disque_tx.errors import DisqueError

#: Where other nodes must connect; the first that is not 0 counts.
_BUS_PORTS: Final = ("cluster-announce-bus-port", "cluster-bus-port")
_DIRECTIVES: Final = ("cluster-bus-tls", "cluster-insecure", "bind", *_BUS_PORTS)


@attrs.frozen
class BusConfig:
    """The configuration of one node's bus. ``open``: to the network; ``None`` if unknown, as with
    the original. ``bind``: the configured addresses to listen on. ``port``: where other nodes must
    connect, 0 for the port of clients + 10000."""

    open: bool | None
    bind: tuple[str, ...]
    port: int = 0

    def listens_at(self, ip: str) -> bool:
        """Whether its bus may listen on this address of its host."""
        if self.open is None or self.open:
            return True
        here = [host for host in self.bind if _is_loopback(host)] or ["127.0.0.1", "::1"]
        return ip in here


def bus_config(node: Disque) -> BusConfig:
    """Get the configuration of one node, by CONFIG GET."""
    values = {name: _value(node, name) for name in _DIRECTIVES}
    switches = [values["cluster-bus-tls"], values["cluster-insecure"]]
    known = all(switch in ("yes", "no") for switch in switches)
    ports = [int(port) for port in map(values.get, _BUS_PORTS) if port and port.isdecimal()]
    bind = tuple((values["bind"] or "").split())
    return BusConfig("yes" in switches if known else None, bind, next(filter(None, ports), 0))


def _value(node: Disque, name: str) -> str | None:
    try:
        _, value = node.execute("CONFIG", "GET", name)
    except (Refused, ValueError, TypeError):
        # The original does not have the directive; or CONFIG was renamed.
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def bus_configs(members: Members, nodes: Iterable[str]) -> dict[str, BusConfig]:
    """The configuration of each node that answers, by its address for clients."""
    return members.try_to_ask(nodes, bus_config).of


def causes(answers: Mapping[str, BusConfig], places: Mapping[str, str]) -> list[str]:
    """Why nodes cannot be met; ``places``: address for clients → IP address at which other nodes
    must reach the node."""
    return [
        f"The bus of {address} listens on loopback only, and other nodes must reach it at {ip}."
        " Enable TLS (cluster-bus-tls yes), or set cluster-insecure yes on a network that strangers"
        " cannot reach; then restart the node."
        for address, ip in places.items()
        if address in answers and not answers[address].listens_at(ip)
    ]


_CONNECT_S: Final = 3.0
_POLL_S: Final = 0.2
#: How long a node that was just started may take until it answers, on a busy machine.
_START_S: Final = 15.0
#: A MEET without success is repeated after this time.
_AGAIN_S: Final = 5.0


class NotJoined(DisqueError):
    """Nodes cannot be joined, or did not connect to each other in time; the text says which."""


@attrs.frozen
class MeetAddress:
    """The address of a node for MEET: an IP address, a port, and the port of its bus, 0 for the
    port + 10000."""

    ip: str
    port: int
    bus_port: int = 0


def resolve_for_meet(given: str) -> MeetAddress:
    """``host:port`` with the IP address at which the node is reached from here, for MEET.

    :raises NotJoined: it cannot be reached.
    """
    at = addresses.address(given)
    try:
        with socket.create_connection((at.host, at.port), _CONNECT_S) as connection:
            return MeetAddress(str(connection.getpeername()[0]), at.port)
    except OSError as error:
        raise NotJoined(f"{given} cannot be reached any more: {error}.") from error


class NodeJoining:
    """Sends MEET for the nodes at ``places`` to ``first``, then polls all at ``addresses`` until
    each knows all of ``ids``. ``causes``: why that may not succeed. ``sleep`` and ``now_s``: clock,
    in seconds, for tests."""

    def __init__(
        self,
        members: Members,
        first: str,
        addresses: list[str],
        places: list[MeetAddress],
        ids: set[str],
        *,
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
        """How many links there are when all nodes know each other."""
        return len(self._addresses) * len(self._ids)

    def run(self, timeout_s: float, advance: Callable[[int], None]) -> None:
        """Join the nodes.

        :raises NotJoined: they do not know each other within ``timeout_s``.
        """
        began_s = self._now_s()
        meet_s = known = 0.0
        while True:
            if self._now_s() - began_s >= meet_s:
                self._members.ask([self._first], self._meet)
                meet_s += _AGAIN_S
            found = self._members.try_to_ask(self._addresses, basic_view)
            now_known = sum(len(healthy(view) & self._ids) for view in found.of.values())
            advance(int(now_known - known))
            known = now_known
            if known == self.pairs:
                return
            if self._now_s() - began_s > timeout_s:
                raise NotJoined(self._report(found.of, found.silent, timeout_s))
            self._sleep(_POLL_S)

    def _meet(self, node: Disque) -> None:
        for place in self._places:
            node.cluster_meet(place.ip, place.port, place.bus_port)

    def _report(self, of: dict[str, SurveyedNode], silent: dict[str, str], timeout_s: float) -> str:
        lines = [f"{address} does not answer: {why}" for address, why in silent.items()]
        for address, view in of.items():
            missing = ", ".join(sorted(self._ids - healthy(view)))
            if missing:
                lines.append(f"{address} has no link to {missing}")
        return (
            f"After {timeout_s:g} s not all nodes know each other:\n  "
            + "\n  ".join(lines)
            + "".join(f"\nLikely cause: {cause}" for cause in self._causes)
            + "\nEach node must reach the bus port of every other: the port + 10000, or its"
            " cluster-bus-port. It is safe to run this again."
        )


def answering(
    members: Members,
    nodes: tuple[str, ...],
    timeout_s: float,
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
    now_s: Callable[[], float] = time.monotonic,
) -> MemberAnswers[SurveyedNode]:
    """The state of the nodes. Nodes that were just started have :data:`_START_S` to answer, or
    ``timeout_s`` if that is less."""
    patience_s = min(timeout_s, _START_S)
    began_s = now_s()
    said = False
    while True:
        found = members.try_to_ask(nodes, basic_view)
        if not found.silent or now_s() - began_s > patience_s:
            return found
        if not said:
            said = True
            say(f"Waiting for {', '.join(found.silent)} to answer, up to {patience_s:g} s")
        sleep(_POLL_S)


def healthy(view: SurveyedNode) -> set[str]:
    """The IDs of the nodes that it sees as healthy, itself included."""
    bad = {"handshake", "noaddr", "fail", "fail?"}
    return {node.id for node in view.table.values() if node.connected and not node.flags & bad}


def others(views: list[SurveyedNode]) -> list[str]:
    """Addresses of all other nodes that these see as healthy."""
    asked = {view.id for view in views}
    found = {
        node.id: node.address
        for view in views
        for node in view.table.values()
        if node.id in healthy(view) - asked
    }
    return sorted(found.values())


def is_joined(views: list[SurveyedNode], ids: set[str]) -> bool:
    """Whether each node already knows all of these."""
    return all(ids <= healthy(view) for view in views)
