"""What is known of a job survives a restart with the log: how often it came back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.stage.checker import CLOCK_FAULTS, Checker

if TYPE_CHECKING:
    from disque_tx.sim.stage.history import JobRequest, RecordedDelivery
    from disque_tx.sim.stage.stage import Stage

#: Faults that end processes, or keep nodes apart, and after which no job comes back from the dead.
_ENDING: Final = frozenset(
    (
        *("kill", "power", "restart", "one_down", "reset", "stall", "slow_link"),
        *("clock_step", "clock_drift", "half_open", "short_writes"),
    )
)
#: A change is recorded within a second, and a node is asked for that ten times a second.
_RECORDED_US: Final = 1_300_000
#: Settings that make something of the counters.
_USING: Final = (b"max-deliveries", b"retry-delay")


class CountersSurvive(Checker):
    """Where a policy makes something of them, ``nacks`` and ``additional-deliveries`` of a job do
    not become less on a node with a log that is started again. So a job whose consumers end their
    hosts becomes a dead letter, too.

    Excused: changes within the last second before a process ended at once; a node whose memory was
    broken; and a job that a client had the node forget, or has acknowledged before, which may come
    back from another holder.
    """

    def judge(self, run: Stage) -> list[str]:
        """Counters that became less."""
        if not {name for _, name, _ in run.plan.history} <= _ENDING:
            return []
        forgotten = run.history.asked(b"FASTACK", b"DELJOB")
        acknowledged = run.history.asked(b"ACKJOB")
        breaches: list[str] = []
        before: dict[tuple[bytes, bytes], list[RecordedDelivery]] = {}
        for one in sorted(run.history.delivered, key=lambda delivery: delivery.sent_us):
            if not _is_used(run, one.queue) or one.job_id in forgotten:
                continue
            if any(ack.asked_us < one.sent_us for ack in acknowledged.get(one.job_id, ())):
                continue
            earlier = before.setdefault((one.job_id, one.node), [])
            known = [known for known in earlier if _survived(run, known, one)]
            nacks = max((known.nacks for known in known), default=0)
            deliveries = max((known.deliveries for known in known), default=0)
            if one.nacks < nacks or one.deliveries < deliveries:
                breaches.append(
                    f"{one.job_id.decode('latin-1')}: {one.nacks} nacks and {one.deliveries}"
                    f" additional deliveries, reports {one.node.decode()} at"
                    f" {one.sent_us / 1e6:.3f} s; it reported {nacks} and {deliveries} before"
                )
            earlier.append(one)
        return breaches


def _is_used(run: Stage, queue: bytes) -> bool:
    """Whether a policy of the workload makes something of the counters of this queue's jobs."""
    return any(
        pattern in (queue, b"*") and name in _USING for pattern, name, _ in run.workload.policies
    )


def _survived(run: Stage, known: RecordedDelivery, later: RecordedDelivery) -> bool:
    """Whether the node had certainly recorded what it reported, and read it since."""
    machine = next(machine for machine in run.machines if machine.ip == known.node)
    return run.plan.alive_since(known.node) <= known.sent_us and not any(
        known.sent_us <= crash_us < min(known.sent_us + _RECORDED_US, later.sent_us)
        for crash_us in machine.crashes_us
    )


class LimitKept(Checker):
    """No job is delivered again that came back as often as ``max-deliveries`` allows.

    A job may come back at a holder while another one has it in its queue: each of them allows one
    more, and, in runs with faults of nodes or the network, as many as there were NACKs, of which it
    may not know. ENQUEUE queues a job whatever the limit, and each one allows one more.
    """

    def judge(self, run: Stage) -> list[str]:
        """Deliveries of jobs that should be dead letters."""
        limits = {
            pattern: int(value)
            for pattern, name, value in run.workload.policies
            if name == b"max-deliveries"
        }
        others = len(run.machines) - 1
        apart = not {name for _, name, _ in run.plan.history} <= CLOCK_FAULTS
        by_hand = run.history.asked(b"ENQUEUE")
        return [
            f"{one.job_id.decode('latin-1')}: delivered by {one.node.decode()} at"
            f" {one.sent_us / 1e6:.3f} s after {one.nacks} nacks and {one.deliveries} additional"
            f" deliveries, of {limit} in all"
            for one in run.history.delivered
            if (limit := limits.get(one.queue, limits.get(b"*", 0)))
            and (more := one.nacks + one.deliveries - limit - others * (1 + apart * one.nacks)) >= 0
            and more >= _queued_by_hand(by_hand.get(one.job_id, []), one)
        ]


def _queued_by_hand(requests: list[JobRequest], later: RecordedDelivery) -> int:
    """How many of these requests may have queued the job before this delivery."""
    return sum(
        request.asked_us <= later.sent_us and request.reply != 0 and not request.refused
        for request in requests
    )
