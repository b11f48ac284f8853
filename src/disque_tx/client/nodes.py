"""Which nodes there are, which of them to turn to, and for how long to look for one.

1. At first, any of the addresses that were given: clients spread over the nodes.
2. Then, by what HELLO said: the best priority; among equals any.
3. A node that failed is left alone for a time that doubles, up to a limit, with jitter: clients
   that lost the same node do not come to the next one, or come back, all at once.
4. A node that neither was given nor is in the latest HELLO is forgotten.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.errors import CannotConnect, ClientError, ConnectionLost, Refused
from disque_tx.client.values import Hello, Job, NodeInfo

_BACKOFF_MIN_S: Final = 0.05
_BACKOFF_MAX_S: Final = 5.0
_DOUBLINGS_MAX: Final = 10
#: From this priority on a node is failing or leaving (client protocol, section 11).
UNUSABLE_PRIORITY: Final = 100
#: More than any cluster has; a stranger may name many.
_NODES_MAX: Final = 1000
#: So many jobs are looked at before a consumer moves to the node that makes them.
_WINDOW_JOBS: Final = 100
#: Where a job ID names the node that made it.
_PREFIX: Final = slice(2, 10)


class Node:
    """A node and what is known of it.

    ``id``: empty until it has said so or others have. ``given``: by the user, so never forgotten.
    ``failures``: in a row; a success resets them. ``retry_at_s``: when to try again.
    """

    __slots__ = ("address", "failures", "given", "id", "priority", "retry_at_s")

    def __init__(self, address: Address, given: bool) -> None:
        self.address = address
        self.given = given
        self.id = ""
        self.priority = 1
        self.failures = 0
        self.retry_at_s = 0.0


class Nodes:
    """The nodes a client knows. ``learning``: whether those that HELLO names are added."""

    def __init__(self, given: Iterable[Address], random: Random, learning: bool = True) -> None:
        self._nodes = {address: Node(address, True) for address in given}
        self._random = random
        self._learning = learning

    def __len__(self) -> int:
        return len(self._nodes)

    def addresses(self) -> list[Address]:
        """All that are known, the best first."""
        return [node.address for node in sorted(self._nodes.values(), key=_priority)]

    def pick(self, now_s: float) -> tuple[Address, float]:
        """Whom to try next, and how many seconds to wait before."""
        ready = [node for node in self._nodes.values() if node.retry_at_s <= now_s]
        if not ready:
            soonest = min(self._nodes.values(), key=_retry_at_s)
            return soonest.address, soonest.retry_at_s - now_s
        best = min(node.priority for node in ready)
        chosen = self._random.choice([node for node in ready if node.priority == best])
        return chosen.address, 0.0

    def failed(self, address: Address, now_s: float) -> None:
        """It did not serve: leave it alone for a while."""
        node = self._nodes.get(address)
        if node is None:
            return
        longest_s = min(_BACKOFF_MAX_S, _BACKOFF_MIN_S * 2 ** min(node.failures, _DOUBLINGS_MAX))
        node.failures += 1
        node.retry_at_s = now_s + longest_s * (0.5 + self._random.random() / 2)

    def served(self, address: Address) -> None:
        """It is well."""
        node = self._nodes.get(address)
        if node is not None and node.failures:
            node.failures, node.retry_at_s = 0, 0.0

    def learn(self, address: Address, said: Hello) -> None:
        """Take in the answer to HELLO of the node at this address."""
        speaker = self._nodes.setdefault(address, Node(address, False))
        speaker.id = said.id
        heard = {info.id: info for info in said.nodes[:_NODES_MAX]}
        for node in list(self._nodes.values()):
            if node.id in heard:
                node.priority = heard[node.id].priority
            elif not node.given:
                del self._nodes[node.address]
        if self._learning:
            self._add(heard.values())

    def _add(self, heard: Iterable[NodeInfo]) -> None:
        known = {node.id for node in self._nodes.values()}
        for info in heard:
            address = _address(info)
            if info.id not in known and address is not None:
                node = self._nodes.setdefault(address, Node(address, False))
                node.id, node.priority = info.id, info.priority

    def is_usable(self, address: Address) -> bool:
        """Whether it is neither failing nor leaving, as far as is known."""
        node = self._nodes.get(address)
        return node is not None and node.priority < UNUSABLE_PRIORITY

    def has_better(self, address: Address, now_s: float) -> bool:
        """Whether another one should be used instead of this one, which is to be left."""
        if self.is_usable(address):
            return False
        return any(
            node.priority < UNUSABLE_PRIORITY and node.retry_at_s <= now_s
            for node in self._nodes.values()
        )

    def made(self, id_prefix: str, now_s: float) -> Address | None:
        """The usable node whose ID begins like this, if there is exactly one."""
        found = [
            node.address
            for node in self._nodes.values()
            if node.id.startswith(id_prefix)
            and node.priority < UNUSABLE_PRIORITY
            and node.retry_at_s <= now_s
        ]
        return found[0] if len(found) == 1 else None


class Origins:
    """Where jobs come from, so that a consumer can go there.

    A job ID tells the node that made it. When most of the jobs of late were made by one other
    node, it is cheaper to fetch them there than to have the nodes pass them on.
    """

    def __init__(self) -> None:
        self._jobs: Counter[str] = Counter()
        self._total = 0

    def saw(self, jobs: Iterable[Job]) -> str | None:
        """Count delivered jobs. At the end of a window: the first 8 characters of the ID of the
        node that made more than half of them."""
        for job in jobs:
            self._jobs[job.id[_PREFIX]] += 1
            self._total += 1
        if self._total < _WINDOW_JOBS:
            return None
        maker, number = self._jobs.most_common(1)[0]
        decided = maker if number * 2 > self._total else None
        self._jobs.clear()
        self._total = 0
        return decided


class Search:
    """How long one request has looked for a node that serves, and what it met.

    ``patience_s``: how long it looks, from its first failure on. ``notice``: is told, for people,
    when it begins to look.
    """

    __slots__ = ("_deadline_s", "_notice", "_now_s", "_patience_s", "_tried")

    def __init__(
        self,
        now_s: Callable[[], float],
        patience_s: float,
        notice: Callable[[str], object] | None = None,
    ) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._notice = notice
        self._deadline_s: float | None = None
        self._tried: dict[str, str] = {}

    def failed(self, address: str, error: ClientError) -> None:
        """Note a failure; raise when there were enough.

        :raises CannotConnect, Refused: when patience is over.
        """
        self._tried[address] = error.reason if isinstance(error, ConnectionLost) else str(error)
        if self._deadline_s is None:
            self._deadline_s = self._now_s() + self._patience_s
            if self._notice is not None and self._patience_s > 0:
                self._notice(
                    f"{address} does not serve ({self._tried[address].rstrip('.')}). Looking for a"
                    f" node that does, for up to {self._patience_s:g} s."
                )
        if self._now_s() >= self._deadline_s:
            if isinstance(error, Refused):
                raise error
            raise CannotConnect(self._tried) from error


def _address(info: NodeInfo) -> Address | None:
    """Where a node that somebody else names can be reached, if that can be right."""
    try:
        ipaddress.ip_address(info.ip)
    except ValueError:
        return None
    return Address(info.ip, info.port) if 0 < info.port < 65536 else None


def _priority(node: Node) -> int:
    return node.priority


def _retry_at_s(node: Node) -> float:
    return node.retry_at_s
