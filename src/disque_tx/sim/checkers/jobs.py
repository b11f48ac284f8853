"""No job is lost, changed, confused with another one, or accepted with too few copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checkers.tables.keys import ended_by_key
from disque_tx.sim.stage.checker import Checker
from disque_tx.sim.stage.workleft import letter_without_place

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.history import Added
    from disque_tx.sim.stage.stage import Stage


class NothingLost(Checker):
    """Nothing accepted is lost, as long as one of the nodes that had a copy lived.

    A job with RETRY 0 is at most once: it may be lost by a fault, and is judged only in runs
    without. On disk stands the time of day at which a job ends: who restarts with a clock that was
    set to a time after that drops it, and cannot know better.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were never delivered."""
        delivered = {*run.history.by_body(), *(letter.body for letter in run.history.letters)}
        return [
            f"{added.job_id.decode()}: accepted at {added.accepted_us / 1e6:.3f} s by"
            f" {added.node.decode()}, never delivered; copies at"
            f" {b' '.join(sorted(added.holders)).decode() or 'no node'}"
            for added in run.history.accepted()
            if added.body not in delivered and not may_be_lost(run, added)
        ]


def may_be_lost(run: Stage, added: Added) -> bool:
    """Whether nobody promised that the job is delivered: its life is over, its queue was emptied,
    two jobs with its key were alive, it may be delivered once at the most, its dead letter still
    waits for nodes, or no node that had a copy lived on."""
    if added.accepted_us + (added.ttl_s + 1) * 1_000_000 < run.world.now_us:
        return True
    if flushed_since(run, added, run.world.now_us) or ended_by_key(run, added):
        return True
    if letter_without_place(run, added.job_id, added.replicate):
        return True
    if added.retry_s == 0:
        return bool(run.plan.history) or run.evicts
    if (run.workload.moves or run.workload.policies) and _broken(run, added) >= added.replicate:
        return True  # the copies of the job in its place may have been there
    if added.outside and added.asynchronous:
        return bool(run.plan.history)  # no copy is known of
    if run.workload.losses and added.replicate > 1:
        if run.shape.bulk == "all":
            return False  # copies are made again before another one is lost
        if run.workload.mixed and _held_by_ours(run, added):
            return False
    return not any(
        run.plan.alive_since(machine.ip) <= added.asked_us
        and not ended_by_clock(run, added, machine)
        for machine in run.machines
        if machine.ip in added.holders
    )


def _held_by_ours(run: Stage, added: Added) -> bool:
    """Whether there was always a node of ours that made the copies of the job again."""
    ours = {machine.ip for machine in run.machines if machine.settings.features}
    return not ours.isdisjoint(added.holders) and added.job_id not in run.plan.left_to_originals


def flushed_since(run: Stage, added: Added, until_us: int) -> bool:
    """Whether the queue of the job may have been emptied after it was added, and by then."""
    return any(
        one.queue == added.queue
        and one.asked_us <= until_us
        and (one.answered_us < 0 or one.answered_us >= added.asked_us)
        for one in run.history.flushes
    )


def _broken(run: Stage, added: Added) -> int:
    """How many nodes lost their memory since the job was added."""
    return sum(run.plan.alive_since(machine.ip) > added.asked_us for machine in run.machines)


def ended_by_clock(run: Stage, added: Added, machine: Machine) -> bool:
    """Whether the life of the job was ever over by the wall clock of the machine."""
    left_us = added.asked_us + added.ttl_s * 1_000_000 - run.world.now_us
    return run.shape.appendonly and max(machine.clocks.shifts_us, default=0) >= left_us


class NothingUnexpected(Checker):
    """Nothing is delivered that was not added, and every job arrives as it was added."""

    def judge(self, run: Stage) -> list[str]:
        """Deliveries that fit no ADDJOB."""
        breaches: list[str] = []
        for delivery in run.history.delivered:
            added = run.history.added.get(delivery.body)
            name = delivery.job_id.decode("latin-1")
            if added is None:
                breaches.append(f"{name}: delivered with a body that was never added")
            elif run.workload.moves or run.workload.keys:
                # Moved, it is in another queue, under another ID; see OneJobPerKey for keys.
                continue
            elif added.queue != delivery.queue:
                breaches.append(f"{name}: delivered from another queue than it was added to")
            elif added.job_id and added.job_id != delivery.job_id:
                breaches.append(f"{name}: added as {added.job_id.decode('latin-1')}")
        return breaches


class CopiesAdded(Checker):
    """A job that was accepted in a queue with ``copy-to`` is in the other queue, too: all of them
    are acknowledged to the producer, or none. Excused is what may be lost anyway."""

    def judge(self, run: Stage) -> list[str]:
        """Jobs that are in one queue only."""
        copied = set(run.history.copied)
        queues = {queue for queue, name, _ in run.workload.policies if name == b"copy-to"}
        return [
            f"{added.job_id.decode()}: accepted by {added.node.decode()} at"
            f" {added.accepted_us / 1e6:.3f} s without the job in the other queue"
            for added in run.history.accepted()
            if added.queue in queues and added.body not in copied and not may_be_lost(run, added)
        ]


class UniqueIds(Checker):
    """No two jobs have the same ID."""

    def judge(self, run: Stage) -> list[str]:
        """IDs that were assigned twice."""
        bodies: dict[bytes, bytes] = {}
        breaches: list[str] = []
        pairs = [(added.job_id, added.body) for added in run.history.accepted()]
        pairs += [(delivery.job_id, delivery.body) for delivery in run.history.delivered]
        for job_id, body in pairs:
            if bodies.setdefault(job_id, body) != body:
                breaches.append(f"{job_id.decode('latin-1')}: the ID of two jobs")
        return breaches


class EnoughCopies(Checker):
    """When a client learns that its job is accepted, at least REPLICATE nodes have a copy.

    Looked at in the moment in which the node lets the answer go: at the end of its turn. A node
    whose memory was lost since it was asked to keep a copy had one, and so may one that is down
    then, or one that has ended the job because its queue was emptied meanwhile.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were accepted with too few copies."""
        breaches: list[str] = []
        early = run.delivered_early()
        for added in run.history.accepted():
            holders = run.copies.seen.get(added.job_id)
            if added.asynchronous or added.known or holders is None or added.job_id in early:
                continue
            excused = sum(
                (machine.ip in run.copies.down[added.job_id] and machine.ip not in holders)
                # It may have come back as another node, and keep a copy again.
                or run.plan.alive_since(machine.ip) > added.asked_us
                for machine in run.machines
            )
            short = len(holders) + excused < added.replicate
            if short and not flushed_since(run, added, added.accepted_us):
                breaches.append(
                    f"{added.job_id.decode()}: accepted with {len(holders)} copies of"
                    f" {added.replicate}"
                )
        return breaches


class HostsDiffer(Checker):
    """When a client learns that its job with REPLICATE 2 or more is accepted, the copies are not
    all on one host, unless no other could be reached.

    A host counts when the node that answered could reach it before the turn of its answer, and
    after it. Excused are jobs a holder of which is down by then, or was when it was looked at.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were accepted with copies on one host."""
        breaches: list[str] = []
        early = run.delivered_early()
        host_of = {machine.ip: machine.host for machine in run.machines}
        for added in run.history.accepted():
            holders = run.copies.seen.get(added.job_id)
            if added.asynchronous or added.replicate < 2 or not holders:
                continue
            if added.job_id in early or len(holders) < added.replicate:
                continue
            excused = any(
                machine.ip in run.copies.down[added.job_id]
                or run.plan.alive_since(machine.ip) > added.asked_us
                for machine in run.machines
            )
            hosts = {host_of[ip] for ip in holders}
            others = run.copies.reached[added.job_id] - hosts
            if len(hosts) == 1 and others and not excused:
                breaches.append(
                    f"{added.job_id.decode()}: accepted with all copies on {hosts.pop().decode()},"
                    f" although {b' '.join(sorted(others)).decode()} could be reached"
                )
        return breaches
