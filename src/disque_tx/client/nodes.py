"""The nodes a client knows, which of them it uses, and for how long it looks for one.

1. At first, any of the configured addresses: clients spread over the nodes.
2. Then, by the answer to HELLO: the best priority; among equals any.
3. A node that failed is not tried for a time that doubles, up to a limit, with jitter: clients
   that lost the same node do not move to the next one, or come back, all at once.
4. A node that is neither configured nor in the latest HELLO is forgotten.
5. Names that stand for nodes are looked up when a node is to be chosen, every ten seconds, or every
   second while no node can be used. What a name gave last counts as configured.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    NameNotFound,
    Refused,
)
from disque_tx.client.values import Hello, Job, NodeInfo

_BACKOFF_MIN_S: Final = 0.05
_BACKOFF_MAX_S: Final = 5.0
_DOUBLINGS_MAX: Final = 10
#: How often names are looked up, with nodes that can be used and without.
_LOOKUP_S: Final = 10.0
_LOOKUP_MIN_S: Final = 1.0
#: How long a client without any address waits before it asks again for one.
LOOKUP_PAUSE_S: Final = 0.2
#: From this priority on a node is failing or leaving (client protocol, section 11).
UNUSABLE_PRIORITY: Final = 100
#: More than any cluster has. A server that is no Disque node might list any number.
_NODES_MAX: Final = 1000
#: How many delivered jobs are counted before a consumer moves to the node that created them.
_JOBS_PER_DECISION: Final = 100
_WITH_REASON: Final = (ConnectionLost, NameNotFound)
#: The part of a job ID that names the node that created the job.
_PREFIX: Final = slice(2, 10)


class Node:
    """A node and what is known of it.

    ``id``: empty until a HELLO has named it. ``configured``: by the user, so never forgotten.
    ``failures``: in a row; a success resets them. ``retry_at_s``: when to try again.
    """

    __slots__ = ("address", "configured", "failures", "id", "priority", "retry_at_s")

    def __init__(self, address: Address, configured: bool) -> None:
        self.address = address
        self.configured = configured
        self.id = ""
        self.priority = 1
        self.failures = 0
        self.retry_at_s = 0.0


class Nodes:
    """The nodes a client knows. ``discover``: whether nodes listed by HELLO are added."""

    def __init__(
        self, configured: Iterable[Address], random: Random, discover: bool = True
    ) -> None:
        given = list(configured)
        self._nodes = {address: Node(address, True) for address in given if not address.kind}
        self._fixed = set(self._nodes)
        self._lookups = tuple(address for address in given if address.kind)
        self._looked_up_s: float | None = None
        self._why: NameNotFound | None = None
        self._random = random
        self._discover = discover

    def __len__(self) -> int:
        return len(self._nodes)

    def due(self, now_s: float) -> tuple[Address, ...]:
        """The names that are to be looked up now; whoever asks does so, and reports by
        :meth:`resolved`."""
        if not self._lookups:
            return ()
        ready = any(node.retry_at_s <= now_s for node in self._nodes.values())
        pause_s = _LOOKUP_S if ready else _LOOKUP_MIN_S
        if self._looked_up_s is not None and now_s - self._looked_up_s < pause_s:
            return ()
        self._looked_up_s = now_s
        return self._lookups

    def resolved(self, found: Iterable[Address], why: NameNotFound | None) -> None:
        """The names gave these addresses, or none of some, and ``why``; without any, those of the
        last time stay."""
        given = set(found)
        self._why = why
        if not given:
            return
        for address in given:
            self._nodes.setdefault(address, Node(address, True)).configured = True
        for address, node in list(self._nodes.items()):
            if address not in given and address not in self._fixed:
                node.configured = False
                if not node.id:  # no node has ever answered there
                    del self._nodes[address]

    def shown(self) -> str:
        """An address for messages: the best one that is known, or a name."""
        return str(next(iter(self.addresses() or self._lookups), "no node"))

    def addresses(self) -> list[Address]:
        """The addresses of all known nodes, the best first."""
        return [node.address for node in sorted(self._nodes.values(), key=_priority)]

    def pick(self, now_s: float) -> tuple[Address, float]:
        """The node to try next, and how many seconds to wait before that.

        :raises NameNotFound: no name has given an address yet.
        """
        if not self._nodes:
            raise self._why or NameNotFound(self.shown(), "it is being looked up")
        ready = [node for node in self._nodes.values() if node.retry_at_s <= now_s]
        if not ready:
            soonest = min(self._nodes.values(), key=_retry_at_s)
            return soonest.address, soonest.retry_at_s - now_s
        best = min(node.priority for node in ready)
        chosen = self._random.choice([node for node in ready if node.priority == best])
        return chosen.address, 0.0

    def failed(self, address: Address, now_s: float) -> None:
        """The node did not answer, leaves or loads: do not try it for a while."""
        node = self._nodes.get(address)
        if node is None:
            return
        longest_s = min(_BACKOFF_MAX_S, _BACKOFF_MIN_S * 2 ** min(node.failures, _DOUBLINGS_MAX))
        node.failures += 1
        node.retry_at_s = now_s + longest_s * (0.5 + self._random.random() / 2)

    def recovered(self, address: Address) -> None:
        """The node has answered: reset its backoff."""
        node = self._nodes.get(address)
        if node is not None and node.failures:
            node.failures, node.retry_at_s = 0, 0.0

    def learn(self, address: Address, hello: Hello) -> None:
        """Take in the answer to HELLO of the node at this address."""
        responder = self._nodes.setdefault(address, Node(address, False))
        responder.id = hello.id
        reported = {info.id: info for info in hello.nodes[:_NODES_MAX]}
        for node in list(self._nodes.values()):
            if node.id in reported:
                node.priority = reported[node.id].priority
            elif not node.configured:
                del self._nodes[node.address]
        if self._discover:
            self._add(reported.values())

    def _add(self, reported: Iterable[NodeInfo]) -> None:
        known = {node.id for node in self._nodes.values()}
        for info in reported:
            address = _address(info)
            if info.id not in known and address is not None:
                node = self._nodes.setdefault(address, Node(address, False))
                node.id, node.priority = info.id, info.priority

    def is_usable(self, address: Address) -> bool:
        """Whether the node is known, and neither failing nor leaving."""
        node = self._nodes.get(address)
        return node is not None and node.priority < UNUSABLE_PRIORITY

    def has_better(self, address: Address, now_s: float) -> bool:
        """Whether this node should not be used, and another one can be."""
        if self.is_usable(address):
            return False
        return any(
            node.priority < UNUSABLE_PRIORITY and node.retry_at_s <= now_s
            for node in self._nodes.values()
        )

    def with_id_prefix(self, id_prefix: str, now_s: float) -> Address | None:
        """The usable node whose ID begins with this, if there is exactly one."""
        found = [
            node.address
            for node in self._nodes.values()
            if node.id.startswith(id_prefix)
            and node.priority < UNUSABLE_PRIORITY
            and node.retry_at_s <= now_s
        ]
        return found[0] if len(found) == 1 else None


class Origins:
    """Which node creates most of the delivered jobs, so that a consumer can connect to it.

    A job ID names the node that created it. When most of the latest jobs were created by another
    node, it is cheaper to fetch them there than to have the nodes pass them on.
    """

    def __init__(self) -> None:
        self._jobs: Counter[str] = Counter()
        self._total = 0

    def count(self, jobs: Iterable[Job]) -> str | None:
        """Count delivered jobs. After each :data:`_JOBS_PER_DECISION` jobs, returns the first 8
        characters of the ID of the node that created more than half of them."""
        for job in jobs:
            self._jobs[job.id[_PREFIX]] += 1
            self._total += 1
        if self._total < _JOBS_PER_DECISION:
            return None
        id_prefix, number = self._jobs.most_common(1)[0]
        decided = id_prefix if number * 2 > self._total else None
        self._jobs.clear()
        self._total = 0
        return decided


class Search:
    """One request's search for a node that answers: its deadline, and the failures so far.

    ``patience_s``: how long it searches, from its first failure on. ``notify``: called with a
    message for people when the search begins.
    """

    __slots__ = ("_deadline_s", "_notify", "_now_s", "_patience_s", "_tried")

    def __init__(
        self,
        now_s: Callable[[], float],
        patience_s: float,
        notify: Callable[[str], object] | None = None,
    ) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._notify = notify
        self._deadline_s: float | None = None
        self._tried: dict[str, str] = {}

    def failed(self, address: str, error: ClientError) -> None:
        """Record a failure.

        :raises CannotConnect, Refused: when ``patience_s`` is over.
        """
        self._tried[address] = error.reason if isinstance(error, _WITH_REASON) else str(error)
        if self._deadline_s is None:
            self._deadline_s = self._now_s() + self._patience_s
            if self._notify is not None and self._patience_s > 0:
                self._notify(
                    f"{address} does not serve ({self._tried[address].rstrip('.')}). Looking for a"
                    f" node that does, for up to {self._patience_s:g} s."
                )
        if self._now_s() >= self._deadline_s:
            if isinstance(error, Refused):
                raise error
            raise CannotConnect(self._tried) from error


def _address(info: NodeInfo) -> Address | None:
    """The address of a node that another one lists, if it is valid."""
    try:
        ipaddress.ip_address(info.ip)
    except ValueError:
        return None
    return Address(info.ip, info.port) if 0 < info.port < 65536 else None


def _priority(node: Node) -> int:
    return node.priority


def _retry_at_s(node: Node) -> float:
    return node.retry_at_s
