"""Clients that wait anywhere get jobs that are queued anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.core.queues.queues import PAUSE_OUT
from disque_tx.messages.bustypes import CAN_DEMAND
from disque_tx.messages.nodes import HANDSHAKE
from disque_tx.sim.stage.checker import WatchingChecker

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.core.queues.selector import Selector
    from disque_tx.sim.stage.stage import Stage

#: After a fault nothing is promised for so long: nodes notice it, connect, and meet again.
_CALM_US: Final = 8_000_000
#: Turns, and the ticks at which links are looked at.
_TURNS_US: Final = 300_000

#: Where a client waits, the client, where a job is queued, the job.
_Pair = tuple[bytes, int, bytes, bytes]


class WaitingClientsServed(WatchingChecker):
    """A client that waits for a queue, or for all that match, gets a job that is queued at another
    node.

    What is promised while no fault is under way, nor was for some seconds, between nodes that know
    DEMAND and have links to each other: no client waits for longer than messages need to travel to
    and fro twice, while the same job is at the front of its queue at another node. Excused: queues
    that are paused at either node, and those of which the client's node may deliver nothing by
    their policy, because it leaves, or because it is full.

    In the end of a run without faults: a node for whose clients others know no demand, or others
    that know a demand for which no client waits, break the promise as well. After faults, a demand
    that was not taken back is void some time later.
    """

    period_us = 250_000

    def __init__(self) -> None:
        self._seen: dict[_Pair, int] = {}
        self._breaches: dict[str, None] = {}

    def concerns(self, run: Stage) -> bool:
        """Clients may wait in any run."""
        return True

    def look(self, run: Stage) -> None:
        """See which clients wait for jobs that others have."""
        if run.over:
            return
        pairs = self._pairs(run) if _is_calm(run) else set()
        now_us = run.world.now_us
        self._seen = {pair: self._seen.get(pair, now_us) for pair in pairs}
        limit_us = 4 * run.world.longest_transit_us + _TURNS_US
        for (where, _, other, job_id), since_us in self._seen.items():
            if now_us - since_us > limit_us:
                self._breaches.setdefault(
                    f"{job_id.decode('latin-1')}: queued on {other.decode()}, and a client waits on"
                    f" {where.decode()}, since {since_us / 1e6:.3f} s"
                )

    def _pairs(self, run: Stage) -> set[_Pair]:
        nodes = [(machine.ip, node) for machine, node in run.nodes()]
        stocked = [
            (ip, node, queue)
            for ip, node in nodes
            for queue in node.queues.table.values()
            if queue.jobs.size > 0 and not queue.paused & PAUSE_OUT
        ]
        pairs: set[_Pair] = set()
        for ip, node in nodes:
            selectors = _selectors(node)
            for other_ip, other, stock in stocked:
                first = stock.jobs.first()
                if other is node or first is None or not linked(node, other):
                    continue
                if not _may_have(node, stock.name):
                    continue
                queue = node.queues.get(stock.name)
                clients = [next(iter(queue.waiters))] if queue is not None and queue.waiters else []
                clients += [next(iter(one.clients)) for one in selectors if one.matches(stock.name)]
                pairs |= {(ip, int(client.id), other_ip, first.id) for client in clients}
        return pairs

    def judge(self, run: Stage) -> list[str]:
        """Clients that waited for too long, and what nodes know wrongly in the end."""
        breaches = list(self._breaches)[:10]
        if run.plan.history:
            return breaches
        for machine, node in run.nodes():
            for other_machine, other in run.nodes():
                if node is not other and linked(node, other):
                    place = f"{machine.ip.decode()} at {other_machine.ip.decode()}"
                    breaches += [f"{what} of {place}" for what in _wrong(node, other)]
        return breaches


def _loses_messages(run: Stage) -> bool:
    """Whether single messages were lost, which connections do not do: what they told is told again
    later, or void after some time."""
    return any(name == "message_loss" for _, name, *_ in run.plan.history)


def _is_calm(run: Stage) -> bool:
    if _loses_messages(run):
        return False
    last_us = max((at_us for at_us, *_ in run.plan.history), default=0)
    return run.plan.is_quiet and run.world.now_us - max(last_us, run.plan.quiet_us) > _CALM_US


def linked(node: Node, other: Node) -> bool:
    """Whether both nodes have links to each other, on which each has shown that it knows DEMAND."""
    return _reaches(node, other) and _reaches(other, node)


def _reaches(node: Node, other: Node) -> bool:
    entry = node.membership.nodes.get(other.id)
    if entry is None or entry.link is None or entry.flags & HANDSHAKE:
        return False
    return bool(entry.link.features & node.membership.features & CAN_DEMAND)


def _selectors(node: Node) -> list[Selector]:
    """The selectors with which clients wait."""
    waiting = [client for client in node.waiters.blocked if client.blocked_selector]
    return list(dict.fromkeys(node.waiters.matching.of_client(client) for client in waiting))


def _may_have(node: Node, name: bytes) -> bool:
    membership = node.membership
    if membership.leaving or membership.identity.suspended or node.memory.is_full():
        return False
    queue = node.queues.get(name)
    if node.queues.paused(name) & PAUSE_OUT or (queue is not None and queue.jobs.size > 0):
        return False
    return not node.getting.limits.hold_back(name, node.now_ms)


def _wrong(node: Node, other: Node) -> list[str]:
    """What the other node knows wrongly of the demand of a node."""
    breaches: list[str] = []
    for queue in node.queues.table.values():
        peers = other.queues.wanted.get(queue.name)
        credit = peers.credits.get(node.id) if peers is not None else None
        name = queue.name.decode("latin-1")
        if queue.waiters and _may_have(node, queue.name) and (credit is None or credit.credit == 0):
            breaches.append(f"no demand of {name}, for which a client waits,")
    for wanted, peers in other.queues.wanted.items():
        credit = peers.credits.get(node.id)
        demanded = node.queues.get(wanted)
        # Demand lasts for a moment after the last client.
        stands = demanded is not None and demanded.standing is not None
        if credit is not None and not stands:
            name = wanted.decode("latin-1")
            breaches.append(f"demand of {name}, for which no client waits,")
    return breaches
