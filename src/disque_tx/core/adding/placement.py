"""Which nodes get the copies of a job: random ones, on other hosts where there are any.

A host that fails takes all its nodes with it, so copies on one host protect from little. Hosts are
told apart by the addresses of their nodes. Where every node has a host of its own, and where all
share one, any choice is as good as any other.

1. Nodes are drawn at random: first one on each host that has no copy yet, then others that are not
   on this node's host, then the rest.
2. A job with REPLICATE 2 or more has enough copies only when they are on two hosts, as long as a
   node on another host can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mypy_extensions import i64

from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.nodes import NodeEntry


class Placement:
    """``random``: a number in [0, 1) per call."""

    __slots__ = ("_membership", "_random")

    def __init__(self, membership: Membership, random: Callable[[], float]) -> None:
        self._membership: Membership = membership
        self._random: Callable[[], float] = random

    def draw(
        self,
        nodes: tuple[bytes, ...],
        count: i64,
        avoid: bytes = b"",
        alive: list[bytes] | None = None,
    ) -> list[bytes]:
        """Up to ``count`` nodes that can take a copy of a job and are none of its holders
        ``nodes``. ``avoid``: a host on which there are copies enough. ``alive``: those of the
        holders that have not lost their copies, ``None`` for all."""
        membership = self._membership
        able = [e for e in membership.reachable if e.ready and e.id not in nodes]
        if not membership.hosts_differ:
            added = min(count, i64(len(able)))
            if added < len(able):
                self._shuffle(able, added)
            return [entry.id for entry in able[:added]]
        self._shuffle(able, len(able))
        with_copy = list(nodes) if alive is None else alive
        return [entry.id for entry in self._by_host(able, with_copy, avoid)[:count]]

    def _by_host(self, able: list[NodeEntry], nodes: list[bytes], avoid: bytes) -> list[NodeEntry]:
        """In the order of preference, without those on the host ``avoid``."""
        membership = self._membership
        mine = membership.host(membership.myself)
        used = {mine}
        for node in nodes:
            entry = membership.nodes.get(node)
            if entry is not None:
                used.add(membership.host(entry))
        first: list[NodeEntry] = []
        second: list[NodeEntry] = []
        last: list[NodeEntry] = []
        for entry in able:
            host = membership.host(entry)
            if avoid and host == avoid:
                continue
            if host not in used:
                used.add(host)
                first.append(entry)
            elif host != mine:
                second.append(entry)
            else:
                last.append(entry)
        return first + second + last

    def _shuffle(self, entries: list[NodeEntry], count: i64) -> None:
        """Put ``count`` random ones first."""
        size: i64 = len(entries)
        for place in range(count):
            other = place + int(self._random() * int(size - place))
            entries[place], entries[other] = entries[other], entries[place]

    def only_host(self, nodes: Iterable[bytes]) -> bytes:
        """The host that all of these nodes are on, although a node on another one can be reached;
        empty when it is not so."""
        membership = self._membership
        if not membership.hosts_differ:
            return b""
        only = b""
        for node in nodes:
            entry = membership.nodes.get(node)
            host = membership.host(entry) if entry is not None else b""
            if not only:
                only = host
            elif host and host != only:
                return b""
        for entry in membership.reachable:
            # One that is not ready is waited for.
            if entry.link is not None and membership.host(entry) != only:
                return only
        return b""
