"""WAITJOB, QFLUSH and QCOUNT: what they answer is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.sim.checkers.jobs import flushed_since
from disque_tx.sim.stage.checker import CLOCK_FAULTS, Checker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from disque_tx.sim.stage.history import Added, Counted, RecordedFlush, Waited
    from disque_tx.sim.stage.stage import Stage

#: What a client asks for while this time passes may be executed in another order.
_SLACK_US: Final = 2_000_000
#: A copy is sent with the rest of its life in whole seconds.
_LIFE_US: Final = 1_000_000
_ENDINGS: Final = (b"ACKED", b"DELETED")

#: The numbers of QCOUNT that are jobs of the queue.
_STATES: Final = (b"queued", b"delayed", b"backoff", b"in-flight", b"loaded")


class EndingsTrue(Checker):
    """WAITJOB answers how a job has ended, once it has, and not before.

    What is promised, under any fault: ``ACKED`` and ``DELETED`` are answered only if somebody asked
    to acknowledge or delete the job, or to flush its queue; ``EXPIRED`` only when its life is over;
    ``DEAD`` only where a policy makes dead letters. A node that answered a client's ACKJOB with 1
    does not let another client wait for that job until its time-out. A node that answered ``ACKED``
    or ``DELETED`` does not deliver the job afterwards.

    Excused: jobs given up for memory or for want of copies; the end of life where clocks are wrong;
    deliveries by nodes that were started again, or where jobs come back from old disks.
    """

    def judge(self, run: Stage) -> list[str]:
        """Answers that are not true."""
        accepted = {added.job_id: added for added in run.history.accepted()}
        return [
            f"{waited.job_id.decode('latin-1')}: {waited.node.decode()} answered WAITJOB at"
            f" {waited.answered_us / 1e6:.3f} s with {waited.answer!r}, {reason}"
            for waited in run.history.waits
            if waited.answered_us >= 0
            for reason in _untrue(run, waited, accepted[waited.job_id])
        ]


def _untrue(run: Stage, waited: Waited, added: Added) -> Iterator[str]:
    """What is wrong with an answer."""
    names = {name for _, name, _ in run.plan.history}
    ends = run.history.asked(b"ACKJOB", b"FASTACK", b"DELJOB").get(added.job_id, [])
    if waited.answer in _ENDINGS:
        asked = any(end.asked_us <= waited.answered_us for end in ends)
        # Holders other than the one that made the dead letter get to know that the job is done.
        asked |= any(letter.about == added.job_id for letter in run.history.letters)
        if not asked and not flushed_since(run, added, waited.answered_us):
            if not run.evicts and not added.asynchronous:
                yield "which nobody asked for"
        elif names <= CLOCK_FAULTS:
            again = [
                one.sent_us
                for one in run.history.delivered
                if one.job_id == added.job_id
                and one.node == waited.node
                and one.sent_us > waited.answered_us
            ]
            if again:
                yield f"and delivered the job at {again[0] / 1e6:.3f} s"
    elif waited.answer == b"EXPIRED":
        over_us = added.asked_us + added.ttl_s * 1_000_000
        if waited.answered_us < over_us - _LIFE_US and not names & CLOCK_FAULTS:
            yield f"and its life ends at {over_us / 1e6:.3f} s"
    elif waited.answer == b"DEAD":
        if not run.workload.policies:
            yield "and there is no policy for that"
    elif waited.answer == b"" and names <= CLOCK_FAULTS:
        acked = [
            end.answered_us
            for end in ends
            if end.word == b"ACKJOB" and end.reply == 1 and end.node == waited.node
        ]
        if any(0 <= at_us < waited.answered_us for at_us in acked):
            yield f"and had answered ACKJOB at {min(acked) / 1e6:.3f} s"


class FlushedGone(Checker):
    """What QFLUSH ended does not come back.

    What is promised: the jobs that were in the named state at a node when QFLUSH was sent to it are
    not delivered by that node after its answer; in runs without faults nor by any other node, as
    soon as the messages about it have arrived. In such runs the answers add up to what the nodes
    have counted.

    Excused: jobs about which something else was asked, or which were delivered, at about the same
    time, for they may have changed their state or gone to another node; and nodes that have another
    memory now, or where jobs come back from old disks.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that came back."""
        names = {name for _, name, _ in run.plan.history}
        if names - CLOCK_FAULTS:
            return []
        breaches = [
            f"{delivery.job_id.decode('latin-1')}: QFLUSH was answered by {flushed.node.decode()}"
            f" at {flushed.answered_us / 1e6:.3f} s, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for flushed in run.history.flushes
            if flushed.answered_us >= 0
            for delivery in run.history.delivered
            if delivery.job_id in _meant(run, flushed)
            and delivery.sent_us
            > flushed.answered_us + (0 if delivery.node == flushed.node else _SLACK_US)
            and not _disturbed(run, delivery.job_id, flushed)
        ]
        if not names and not run.lost:
            answered = sum(flushed.reply for flushed in run.history.flushes)
            counted = sum(int(node.totals.flushed) for _, node in run.nodes())
            if answered != counted:
                breaches.append(f"QFLUSH answered {answered} jobs, the nodes count {counted}")
        return breaches


def _meant(run: Stage, flushed: RecordedFlush) -> set[bytes]:
    """The jobs that a QFLUSH was for."""
    if not flushed.everywhere:
        return flushed.there.get(flushed.node, set())
    own = {machine.ip for number, machine in enumerate(run.machines) if run.shape.has_own(number)}
    if flushed.node not in own:
        own = {flushed.node}
    return {job_id for ip, ids in flushed.there.items() if ip in own for job_id in ids}


def _disturbed(run: Stage, job_id: bytes, flushed: RecordedFlush) -> bool:
    """Whether the job may have changed its state while it was flushed."""
    since_us, until_us = flushed.asked_us - _SLACK_US, flushed.answered_us + _SLACK_US
    return any(
        request.job_id == job_id and since_us <= request.asked_us <= until_us
        for request in run.history.job_requests
    ) or any(
        one.job_id == job_id and since_us <= one.sent_us <= until_us
        for one in run.history.delivered
    )


class CountsTrue(Checker):
    """QCOUNT CLUSTER counts every job of the queue once.

    Judged in runs without faults, in which all nodes are ours: it counts each job that had been
    accepted, of which nothing was delivered nor asked for until a while after the answer; and no
    more jobs than were added and not acknowledged, but for those that were delivered at about that
    time, which may be counted where they left and where they arrived.
    """

    def judge(self, run: Stage) -> list[str]:
        """Answers that are too high or too low."""
        if run.plan.history or run.lost or run.shape.bulk != "all":
            return []
        breaches: list[str] = []
        for counted in run.history.counts:
            if not counted.values or not counted.everywhere:
                continue
            values = counted.values
            jobs = sum(values[name] for name in _STATES)
            least, most = _bounds(run, counted)
            nodes = values[b"nodes"]
            if not least <= jobs <= most or nodes != len(run.machines):
                breaches.append(
                    f"QCOUNT of {counted.queue.decode()} at {counted.asked_us / 1e6:.3f} s counts"
                    f" {jobs} jobs on {nodes} nodes, there are {least} to {most}"
                )
        return breaches


def _bounds(run: Stage, counted: Counted) -> tuple[int, int]:
    """How many jobs the answer must count, and may count."""
    history = run.history
    begun_us, end_us = counted.asked_us, counted.answered_us + _SLACK_US
    touched = {one.job_id for one in history.delivered if one.sent_us <= end_us}
    touched |= {one.job_id for one in history.job_requests if one.asked_us <= end_us}
    ended = {
        request.job_id
        for request in history.job_requests
        if request.word in (b"ACKJOB", b"FASTACK", b"DELJOB")
        and 0 <= request.answered_us < begun_us - _SLACK_US
    }
    least = most = 0
    for added in history.added.values():
        if added.queue != counted.queue or added.asked_us > counted.answered_us:
            continue
        flushed = flushed_since(run, added, end_us)
        over_us = added.asked_us + added.ttl_s * 1_000_000
        if added.job_id not in ended:
            most += 1
        if (
            0 <= added.accepted_us < begun_us
            and added.job_id not in touched
            and not flushed
            and over_us > end_us
        ):
            least += 1
    moving = sum(
        begun_us - _SLACK_US <= one.sent_us <= end_us
        for one in history.delivered
        if one.queue == counted.queue
    )
    return least, most + moving
