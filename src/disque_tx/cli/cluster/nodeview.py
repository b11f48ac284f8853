"""What each node of a cluster says of itself and of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

import attrs

from disque_tx.cli.verbs.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused
from disque_tx.client.values import ClusterNode

#: So many queues of a node are looked at for being paused.
QUEUES_MAX: Final = 1000
#: Rounds of asking those whom others named.
_ROUNDS: Final = 5
#: More than any cluster has; a stranger may name many.
_NODES_MAX: Final = 1000
_NOWHERE: Final = frozenset(("handshake", "noaddr"))


@attrs.frozen
class NodeView:
    """``address``: where it was asked. ``table``: ID → what it finds of each node. ``info``: INFO,
    with its sections Eventlog, Listening and Cluster where these exist. ``maxmemory``: in bytes, 0
    for no limit. ``paused``: how many of its first queues are. ``clock_s``: how far its clock is
    ahead of this machine's."""

    address: str
    id: str
    table: dict[str, ClusterNode]
    info: dict[str, str]
    maxmemory: int
    paused: int
    clock_s: float

    def number(self, name: str) -> int:
        """A figure of INFO; 0 where it is missing."""
        value = self.info.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0

    def listening(self, whom: str) -> list[str]:
        """Addresses at which it listens for ``clients`` or for the ``bus``; none when it does not
        say."""
        return [each for each in self.info.get(f"listening_{whom}", "").split(",") if each]

    @property
    def others(self) -> list[ClusterNode]:
        """What it finds of all nodes but itself."""
        return [node for node in self.table.values() if node.id != self.id]

    @property
    def flags(self) -> frozenset[str]:
        """What it says of itself."""
        own = self.table.get(self.id)
        return frozenset() if own is None else own.flags - {"myself"}

    @property
    def met(self) -> set[str]:
        """IDs of the nodes it knows, itself included, those in handshake not."""
        return {node.id for node in self.table.values() if "handshake" not in node.flags}


@attrs.frozen
class Survey:
    """``views``: ID → what the node says. ``silent``: address → why there is no answer."""

    views: dict[str, NodeView]
    silent: dict[str, str]


def glance(node: Disque) -> NodeView:
    """Who a node is and whom it knows, without its figures."""
    own = node.cluster_my_id()
    table = {other.id: other for other in node.cluster_nodes()}
    return NodeView(str(node.address()), own, table, node.info("server"), 0, 0, 0.0)


def view(node: Disque, now_s: Callable[[], float] = time.time) -> NodeView:
    """Everything that a node says."""
    clock_s = _ahead_s(node, now_s)
    return attrs.evolve(
        glance(node),
        info=_info(node),
        maxmemory=_maxmemory(node),
        paused=_paused(node),
        clock_s=clock_s,
    )


def _info(node: Disque) -> dict[str, str]:
    """INFO, and sections that are only shown when they are named."""
    sections = (None, "eventlog", "listening", "cluster")
    return {name: value for section in sections for name, value in node.info(section).items()}


def _ahead_s(node: Disque, now_s: Callable[[], float]) -> float:
    """How far its clock is ahead of ours, as if TIME was answered half-way."""
    before_s = now_s()
    try:
        seconds, microseconds = node.execute("TIME")
        return int(seconds) + int(microseconds) / 1e6 - (before_s + now_s()) / 2
    except (Refused, ValueError, TypeError, OverflowError):
        return 0.0


def _maxmemory(node: Disque) -> int:
    try:
        _, value = node.execute("CONFIG", "GET", "maxmemory")
        return int(value)
    except (Refused, ValueError, TypeError):
        # CONFIG may be renamed away.
        return 0


def _paused(node: Disque) -> int:
    stats = map(node.queue_stat, islice(node.queue_scan(), QUEUES_MAX))
    return sum(1 for stat in stats if stat is not None and stat.pause != "none")


def survey(
    members: Members,
    addresses: Iterable[str],
    look: Callable[[Disque], NodeView] = view,
    discover: bool = True,
) -> Survey:
    """Ask these nodes, and those whom they name, and so on.

    ``discover``: false for those given alone.

    :raises NobodyAnswers: not one did.
    """
    found = Survey({}, {})
    asked: set[str] = set()
    to_ask = set(addresses)
    for _ in range(_ROUNDS if discover else 1):
        answers = members.ask(to_ask, look) if not asked else members.try_to_ask(to_ask, look)
        asked |= to_ask
        for answer in answers.of.values():
            found.views.setdefault(answer.id, answer)
        found.silent.update(answers.silent)
        to_ask = _named(found.views.values(), set(found.views)) - asked
        if not to_ask or len(asked) > _NODES_MAX:
            break
    return found


def _named(views: Iterable[NodeView], known: set[str]) -> set[str]:
    """Where others say that nodes are that have not been asked yet."""
    return {
        place(node)
        for view in views
        for node in view.others
        if node.id not in known and not node.flags & _NOWHERE
    }


def place(node: ClusterNode) -> str:
    """Its address as ``host:port``: CLUSTER NODES has no brackets around IPv6."""
    host, _, port = node.address.rpartition(":")
    return f"[{host}]:{port}" if ":" in host else node.address
