"""What nodes count is what happened: the counters of jobs, the totals of INFO, used memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, LOADED, NOWHERE
from disque_tx.core.jobs.memory import QUEUE_BYTES, job_bytes
from disque_tx.core.keys.done import DONE_BYTES
from disque_tx.core.keys.reservation import KEY_BYTES
from disque_tx.messages.records import QUEUED, WAIT_REPL
from disque_tx.sim.stage.checker import CLOCK_FAULTS, Checker
from disque_tx.sim.stage.history import JobRequest, RecordedDelivery, ShownCounters

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.sim.stage.stage import Stage

#: How far apart two holders may find that a RETRY is over.
_SAME_US: Final = 750_000


class CountersMatch(Checker):
    """The counters of a job, in GETJOB WITHCOUNTERS and in SHOW, are what happened to it.

    What is promised:

    1. ``nacks`` is at most the number of NACKs that were asked for before, wherever; and on a node
       that answered NACK with 1, at least the number of those.
    2. ``nacks`` and ``additional-deliveries`` together are at least the number of times that the
       same node delivered the job again, beyond the first time: it came back for a reason, and
       every reason counts, except a transfer from another node, which brings its own counts along:
       where a RETRY was over at two holders, both copies may have come to one of them.
       A RETRY that is over at two holders in the same moment counts once, and the job may come from
       both: deliveries within :data:`_SAME_US` count as one, unless there was a NACK.
    3. The counters that a node reports for a job never become less, unless a client had that node
       forget the job in between: it comes back with what another holder knows.

    The first half of 1 is judged unless bus messages were doubled, since the message that counts
    then counts twice. All else is judged in runs without faults other than those of clocks: a node
    that was restarted, or cannot be reached by others, knows less. ADDJOB's first queueing counts
    nothing.
    """

    def judge(self, run: Stage) -> list[str]:
        """Counters that do not fit the history."""
        names = {name for _, name, _ in run.plan.history}
        nacked = run.history.asked(b"NACK")
        forgotten = run.history.asked(b"FASTACK", b"DELJOB")
        reported: list[RecordedDelivery | ShownCounters] = [
            *run.history.delivered,
            *run.history.shown_counters,
        ]
        reported.sort(key=_when)
        breaches: list[str] = []
        known: dict[tuple[bytes, bytes], tuple[int, int]] = {}
        delivered: Counter[tuple[bytes, bytes]] = Counter()
        known_us: dict[tuple[bytes, bytes], int] = {}
        last_us: dict[tuple[bytes, bytes], int] = {}
        for one in reported:
            place = one.job_id, one.node
            at_us = _when(one)
            if _forgot(forgotten.get(one.job_id, []), one.node, known_us.get(place, 0), at_us):
                known.pop(place, None)
            asked = nacked.get(one.job_id, [])
            wrong: list[str] = []
            if "message_loss" not in names and one.nacks > _count_asked(asked, at_us):
                wrong.append(f"NACK was asked for {_count_asked(asked, at_us)} times")
            if names <= CLOCK_FAULTS:
                if one.nacks < _answered(asked, one.node, at_us):
                    wrong.append(f"it answered {_answered(asked, one.node, at_us)} NACKs")
                again = delivered[place] - isinstance(one, ShownCounters)
                if at_us - last_us.get(place, -_SAME_US) < _SAME_US and not asked:
                    again -= isinstance(one, RecordedDelivery)
                moved = run.transfers.by_others(one.job_id, one.node, 0, at_us)
                if one.nacks + one.deliveries < again - min(moved, one.deliveries):
                    wrong.append(f"it delivered it again {again} times")
                nacks, deliveries = known.get(place, (0, 0))
                if one.nacks < nacks or one.deliveries < deliveries:
                    wrong.append(f"it reported {nacks} and {deliveries} before")
                known[place] = one.nacks, one.deliveries
                known_us[place] = at_us
            if isinstance(one, RecordedDelivery):
                early = at_us - last_us.get(place, -_SAME_US) < _SAME_US
                delivered[place] += not early or _count_asked(asked, at_us) > 0
                last_us[place] = at_us
            breaches += [
                f"{one.job_id.decode('latin-1')}: {one.nacks} nacks and {one.deliveries} additional"
                f" deliveries, reports {one.node.decode()} at {at_us / 1e6:.3f} s; {reason}"
                for reason in wrong
            ]
        return breaches


def _when(one: RecordedDelivery | ShownCounters) -> int:
    """When the node sent it."""
    return one.sent_us if isinstance(one, RecordedDelivery) else one.answered_us


def _count_asked(requests: list[JobRequest], at_us: int) -> int:
    """How many of them were asked for by then."""
    return sum(request.asked_us <= at_us for request in requests)


def _forgot(requests: list[JobRequest], node: bytes, since_us: int, at_us: int) -> bool:
    """Whether one of them may have had the node forget the job between these times."""
    return any(
        request.node == node
        and request.asked_us < at_us
        and (request.answered_us < 0 or request.answered_us > since_us)
        for request in requests
    )


def _answered(requests: list[JobRequest], node: bytes, at_us: int) -> int:
    """How many of them the node had answered with 1 by then."""
    return sum(
        request.reply == 1 and request.node == node and 0 <= request.answered_us < at_us
        for request in requests
    )


_EVERY_US: Final = 1_000_000


class TotalsMatch(Checker):
    """INFO's totals are right (:class:`disque_tx.core.base.totals.Totals`).

    What is promised: at the end of every turn ``queued`` is the number of jobs in queues, and of
    jobs in the state queued, and ``in_flight`` that of jobs in flight, under any fault; and what is
    kept for each queue (QCOUNT) is what a walk over all jobs finds. Looked at every second of the
    run and in the end. In a run without faults, in which every request was answered, the nodes
    together count as ``delivered`` and ``nacked`` what clients saw.
    """

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Stage) -> None:
        """Look again and again while clients act."""
        run.world.at(_EVERY_US, lambda: self._check(run))

    def _check(self, run: Stage) -> None:
        for machine, node in run.nodes():
            totals = node.totals
            jobs = list(node.jobs.table.values())
            lengths = sum(queue.jobs.size for queue in node.queues.table.values())
            queued = sum(job.state == QUEUED for job in jobs)
            in_flight = sum(job.in_flight for job in jobs)
            if not totals.queued == lengths == queued or totals.in_flight != in_flight:
                self._breaches.append(
                    f"{machine.ip.decode()} at {run.world.now_us / 1e6:.3f} s counts"
                    f" {totals.queued} queued and {totals.in_flight} in flight; its queues hold"
                    f" {lengths}, {queued} jobs are queued and {in_flight} in flight"
                )
            self._compare_tallies(run, machine.ip, node)
        if run.busy:
            run.world.at(_EVERY_US, lambda: self._check(run))

    def _compare_tallies(self, run: Stage, ip: bytes, node: Node) -> None:
        """What is kept for queues, and what the jobs are."""
        walked: dict[tuple[bytes, int], int] = {}
        for job in node.jobs.table.values():
            if job.place != NOWHERE:
                key = (job.queue, min(int(job.place), LOADED))
                walked[key] = walked.get(key, 0) + 1
        kept = {
            (tally.id, place): int(tally.of(place))
            for tally in node.state.tallies.table.values()
            for place in (DELAYED, BACKOFF, IN_FLIGHT, LOADED)
            if tally.of(place)
        }
        if kept != walked:
            self._breaches.append(
                f"{ip.decode()} at {run.world.now_us / 1e6:.3f} s keeps the counts {kept}, a walk"
                f" finds {walked}"
            )

    def judge(self, run: Stage) -> list[str]:
        """Nodes that count wrong."""
        self._check(run)
        breaches = list(self._breaches)
        if run.plan.history or run.lost:
            return breaches
        history = run.history
        nacks = sum(request.reply for request in history.job_requests if request.word == b"NACK")
        by_schedule = sum(history.schedules.taken.values())
        others = len(history.letters) + len(history.copied) + by_schedule
        for name, seen in (
            ("delivered", len(history.delivered) + others),
            ("nacked", nacks),
        ):
            counted = sum(int(getattr(node.totals, name)) for _, node in run.nodes())
            if counted != seen:
                breaches.append(f"the nodes count {counted} {name}, clients saw {seen}")
        return breaches


class MemoryCounted(Checker):
    """Used memory is the sum over jobs and queues, no client waits for a job that is gone, and no
    job for copies of which nobody wants to know."""

    def judge(self, run: Stage) -> list[str]:
        """Nodes whose counts do not match what they hold."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            stored = sum(job_bytes(job) for job in node.jobs.table.values())
            stored += sum(QUEUE_BYTES + len(queue.name) for queue in node.queues.table.values())
            stored += node.state.reasons.used + node.state.progress.used
            stored += sum(KEY_BYTES + len(key) for key in node.keys.reservations.by_key)
            stored += DONE_BYTES * len(node.keys.done_jobs)
            if node.memory.used != stored:
                breaches.append(
                    f"{machine.ip.decode()} counts {node.memory.used} bytes and holds {stored}"
                )
            jobs = {job.id for job in node.jobs.table.values()}
            for job_id in node.waiters.copies:
                if job_id not in jobs:
                    breaches.append(f"{job_id.decode('latin-1')}: gone, and its client waits")
            breaches += [
                f"{job.id.decode('latin-1')}: waits for copies at {machine.ip.decode()}, of which"
                " nobody wants to know"
                for job in node.jobs.table.values()
                if job.state == WAIT_REPL and job.id not in node.waiters.copies
            ]
        return breaches
