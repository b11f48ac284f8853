"""Jobs that are added with keys are added once."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from disque_tx.sim.stage.checker import Checker, WatchingChecker

if TYPE_CHECKING:
    from disque_tx.sim.stage.history import Added
    from disque_tx.sim.stage.stage import Stage

#: How long after the end of a job its key may still be taken, while a node is away.
FREE_US: Final = 10_000_000
#: How long it may take until the keys of a node that leaves, or is back, are where they belong.
_PASSING_US: Final = 2_000_000


class OneJobPerKey(Checker):
    """Without partitions, and with at most one node down at a time, no key has two jobs.

    In a partition each side may have one: then the counters of the nodes say so, except for jobs
    that were withdrawn, of which a copy survived where nobody could be told. Faults that delay or
    lose messages can look like a partition to the nodes.
    """

    def judge(self, run: Stage) -> list[str]:
        """Keys with several jobs."""
        jobs = {key: set(ids) for key, ids in run.history.keys.items()}
        for delivery in run.history.delivered:
            if run.workload.keys:
                jobs.setdefault(delivery.body, set()).add(delivery.job_id)
        doubled = {key: ids for key, ids in jobs.items() if len(ids) > 1}
        faults = {name for _, name, _ in run.plan.history}
        if faults <= {"one_down"}:
            return [
                f"{key.decode()}: {len(ids)} jobs with one key,"
                f" {b' and '.join(sorted(ids)).decode()}"
                for key, ids in doubled.items()
            ]
        if faults != {"partition"}:
            return []
        counted = sum(
            node.totals.keys_dropped + node.totals.keys_doubled for _, node in run.nodes()
        )
        answered = {key: ids & run.history.keys.get(key, set()) for key, ids in doubled.items()}
        further = sum(max(len(ids) - 1, 0) for ids in answered.values())
        if further > counted:
            return [f"{further} jobs have the key of another one, {counted} are counted"]
        return []


class AnsweredExist(Checker):
    """Without partitions, and with at most one node down at a time, every ID that was answered for
    a key belongs to a job, which is delivered.

    Excused is what may be delivered once at the most, was evicted, or may have been lost by as many
    nodes as had copies. In a partition a job that has
    its key later than another one ends, though its ID was answered.
    """

    def judge(self, run: Stage) -> list[str]:
        """IDs that were answered and of which no client got a job."""
        faults = {name for _, name, _ in run.plan.history}
        if not faults <= {"one_down"}:
            return []
        delivered = {delivery.job_id for delivery in run.history.delivered}
        return [
            f"{key.decode()}: {job_id.decode()} was answered, never delivered"
            for key, ids in run.history.keys.items()
            for job_id in sorted(ids - delivered)
            if not _lost(run, key)
        ]


def _lost(run: Stage, key: bytes) -> bool:
    """Whether nobody promised that the job is delivered."""
    added = run.history.added[key]
    if run.evicts or added.retry_s == 0:
        return True
    broken = sum(run.plan.alive_since(machine.ip) > added.asked_us for machine in run.machines)
    return broken >= added.replicate


class KeysFreed(Checker):
    """The key of a job that was acknowledged is free soon, also while the node that made it is
    away.

    Excused is a job that may live on: the node that took the acknowledgement lost its memory since.
    A node that is cut off cannot know what others know, nor do they know what it does.
    """

    def judge(self, run: Stage) -> list[str]:
        """Answers that named a job which was long done."""
        faults = {name for _, name, _ in run.plan.history}
        if not faults <= {"one_down", "one_away", "one_cut"} or run.workload.leaves:
            return []
        cut = {where.encode() for _, name, where in run.plan.history if name == "one_cut"}
        ends = _Ends(run, cut)
        return [
            f"{named.key.decode()}: {named.job_id.decode()} was named at"
            f" {named.asked_us / 1e6:.3f} s, acknowledged at {end_us / 1e6:.3f} s"
            for named in run.history.named
            if named.node not in cut
            and (end_us := ends.end_us(named.job_id)) + FREE_US < named.asked_us
        ]


class OneLivingJobPerKey(WatchingChecker):
    """With at most one node down at a time, no job is added with the key of one that lives: that
    was accepted, whose life is not over, of which there is no dead letter, and which nobody has
    asked to acknowledge or delete yet. A node that leaves passes its keys on, and counts as down
    here: excused are jobs while whose keys were used two nodes left, or were down, at once."""

    period_us = 100_000

    def __init__(self) -> None:
        self.two_away_us: list[int] = []

    def concerns(self, run: Stage) -> bool:
        """Nodes may leave in any run."""
        return True

    def look(self, run: Stage) -> None:
        """See how many nodes leave, or are down."""
        up = [node for _, node in run.nodes() if not node.membership.leaving]
        if len(up) + 1 < len(run.machines):
            self.two_away_us.append(run.world.now_us)

    def _is_excused(self, since_us: int, until_us: int) -> bool:
        return any(since_us - _PASSING_US < at_us < until_us for at_us in self.two_away_us)

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were added as new while another one had the key."""
        if not {name for _, name, _ in run.plan.history} <= {"one_down"}:
            return []
        asked = run.history.asked(b"ACKJOB", b"FASTACK", b"DELJOB")
        dead = {letter.about for letter in run.history.letters}
        last: dict[bytes, Added] = {}
        breaches: list[str] = []
        for added in sorted(run.history.accepted(), key=lambda one: one.asked_us):
            before = last.get(added.key)
            if added.key and before is not None and before.accepted_us < added.asked_us:
                ends = asked.get(before.job_id, ())
                over_us = before.asked_us + before.ttl_s * 1_000_000
                if (
                    added.accepted_us < over_us
                    and not self._is_excused(before.asked_us, added.accepted_us)
                    and before.job_id not in dead
                    and not any(request.asked_us < added.accepted_us for request in ends)
                ):
                    breaches.append(
                        f"{added.key.decode()}: {added.job_id.decode()} was added while"
                        f" {before.job_id.decode()} lived"
                    )
            last[added.key] = added
        return breaches


class _Ends:
    """When jobs were acknowledged for certain. ``cut``: nodes that may know alone what they were
    asked."""

    def __init__(self, run: Stage, cut: AbstractSet[bytes] = frozenset()) -> None:
        self._run = run
        self._cut = cut
        self._requests = run.history.asked(b"ACKJOB")
        self._last_us: dict[bytes, int] = {}
        for delivery in run.history.delivered:
            last_us = self._last_us.get(delivery.job_id, 0)
            self._last_us[delivery.job_id] = max(last_us, delivery.sent_us)

    def end_us(self, job_id: bytes) -> int:
        """When the first acknowledgement was answered that no node has forgotten since, nor can
        have, as the job was delivered later; never: the end of the run."""
        run = self._run
        last_us = self._last_us.get(job_id, 0)
        return min(
            (
                request.answered_us
                for request in self._requests.get(job_id, ())
                if request.reply == 1
                and request.node not in self._cut
                and run.plan.alive_since(request.node) <= request.asked_us
                and request.answered_us > last_us
            ),
            default=run.world.now_us,
        )


def ended_by_key(run: Stage, added: Added) -> bool:
    """Whether a job that was never delivered may have been ended since another one with its key was
    alive, too, which was not acknowledged before this one was added."""
    if not added.key:
        return False
    ends = _Ends(run)
    delivered = {delivery.body: delivery.job_id for delivery in run.history.delivered}
    return any(
        ends.end_us(delivered[other.body]) > added.asked_us
        for other in run.history.added.values()
        if other.key == added.key and other is not added and other.body in delivered
    )
