"""When a job may be delivered: once with RETRY 0, not after an ACKJOB, not within RETRY of a
WORKING, not before its DELAY and not after its TTL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.core.policies.settings import LIMITS
from disque_tx.sim.stage.checker import CLOCK_FAULTS, Checker

if TYPE_CHECKING:
    from disque_tx.sim.stage.history import Added, JobRequest, RecordedDelivery
    from disque_tx.sim.stage.stage import Stage


class AtMostOnce(Checker):
    """A job with RETRY 0 is never delivered twice: under no fault whatsoever.

    What a client added has one body, so no copy under another ID is missed. With keys, a client
    adds it again while it gets no answer; then only jobs with the same ID are the same.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that came twice."""
        if run.workload.keys:
            came: dict[bytes, list[RecordedDelivery]] = {}
            for delivery in run.history.delivered:
                came.setdefault(delivery.job_id, []).append(delivery)
        else:
            came = run.history.by_body()
        return [
            f"{first.job_id.decode()}: RETRY 0, delivered {len(deliveries)} times, by"
            f" {' '.join(f'{d.node.decode()} at {d.at_us / 1e6:.3f} s' for d in deliveries)}"
            for deliveries in came.values()
            if len(deliveries) > 1
            and (added := run.history.added.get(deliveries[0].body)) is not None
            and added.retry_s == 0
            for first in deliveries[:1]
        ]


#: Faults that separate nodes or stop them, and take nothing away.
_SEPARATING: Final = frozenset(
    (
        *("partition", "partition_one_way", "stall", "reset", "half_open", "slow_link", "pause"),
        *("short_writes", "disk_full"),
    )
)
_HOPS: Final = 3
_TURNS_US: Final = 20_000


class NotAfterAck(Checker):
    """After an answered ACKJOB the job is not delivered any more.

    What is promised: once a node has answered ACKJOB with 1 for a job, it does not deliver that job
    again, and no other node does, as soon as messages sent then have gone from there to a holder
    and from one holder to the next.

    Excused: deliveries before that time; after the job's TTL, when a copy that was on its way for
    long may arrive, and no node knows any more that the job is done; and on other nodes whatever
    happens in a run with faults other than those of clocks, since a holder that cannot receive it
    delivers again. The node itself is excused only where jobs or acknowledgements can come back
    from the dead: when its memory was broken, when memory was short (acknowledgements are evicted),
    or when some disk or memory was lost, an old disk returned, or bus messages were lost or late.
    No node waits for a holder that forgot everything; it may get the job from one that never
    received the ACKJOB. So it is with a job that a client had forgotten on the node, by FASTACK or
    DELJOB, in a run with faults: nothing is left there that would wait for the other holders. If a
    client had another node forget the job by DELJOB, that may have been the only one that knew to
    whom it had given a copy, so other nodes are excused then under no faults, too. Where limits
    keep jobs in queues for long, a node that was started again since the job was added is excused,
    too: its log does not say to whom it gave a job, and while the job is queued there, that node
    sends nothing about it.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were delivered although a client had them acknowledged."""
        names = {name for _, name, _ in run.plan.history}
        if names - CLOCK_FAULTS - _SEPARATING:
            return []
        everywhere = names <= CLOCK_FAULTS
        arrived_us = _HOPS * run.world.longest_transit_us + _TURNS_US
        acked = run.history.asked(b"ACKJOB")
        return [
            f"{delivery.job_id.decode('latin-1')}: ACKJOB was answered by {request.node.decode()}"
            f" at {request.answered_us / 1e6:.3f} s, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for delivery in run.history.delivered
            for request in acked.get(delivery.job_id, ())
            if request.reply == 1
            and not _after_ttl(run, delivery)
            and not (names and _forgotten(run, request, delivery))
            and not _given_by_restarted(run, delivery)
            and (
                _by_same_node(run, request, delivery)
                or (
                    everywhere
                    and request.answered_us + arrived_us < delivery.sent_us
                    and not _deleted_elsewhere(run, request, delivery)
                )
            )
        ]


def _given_by_restarted(run: Stage, delivery: RecordedDelivery) -> bool:
    """Whether limits kept the job waiting, and a node that may have given it away was restarted."""
    added = run.history.added.get(delivery.body)
    limited = any(name in LIMITS for _, name, _ in run.workload.policies)
    return (
        limited
        and added is not None
        and any(machine.started_us > added.asked_us for machine in run.machines)
    )


def _after_ttl(run: Stage, delivery: RecordedDelivery) -> bool:
    """Whether the life of the job was over, by the clock of the node that made it."""
    added = run.history.added.get(delivery.body)
    return added is not None and added.asked_us + added.ttl_s * 1_000_000 < delivery.sent_us


def _forgotten(run: Stage, acked: JobRequest, delivery: RecordedDelivery) -> bool:
    """Whether a client had the node that answered ACKJOB forget the job, and the acknowledgement
    with it, before the delivery."""
    return any(
        request.word in (b"FASTACK", b"DELJOB")
        and request.job_id == acked.job_id
        and request.node == acked.node
        and request.asked_us < delivery.sent_us
        for request in run.history.job_requests
    )


def _deleted_elsewhere(run: Stage, acked: JobRequest, delivery: RecordedDelivery) -> bool:
    """Whether a client had another node than the one that answered ACKJOB forget the job, before
    the delivery; that node may have been the only one that knew all holders."""
    return any(
        request.node != acked.node and request.asked_us < delivery.sent_us
        for request in run.history.asked(b"DELJOB").get(acked.job_id, ())
    )


def _by_same_node(run: Stage, request: JobRequest, delivery: RecordedDelivery) -> bool:
    """Whether the node that answered ACKJOB delivered the job, its memory unbroken."""
    return (
        request.node == delivery.node
        and request.answered_us < delivery.sent_us
        and run.plan.alive_since(request.node) <= request.asked_us
    )


#: Half of the jitter, a step of the schedule, and what clocks drift meanwhile.
_EARLY_US: Final = 280_000


class WorkingRespected(Checker):
    """After an answered WORKING no client gets the job before RETRY: the other holders respect it.

    Judged where nothing keeps WORKING from the holders: no fault but those of clocks. A NACK or
    an ENQUEUE, by another consumer that has the job too or by the operator, ends the wait. And the
    node may not know yet of a holder that got the job from another one since it came here; or, if
    that was an original, which forwards no WORKING, at any time.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were delivered although a consumer reported to work on them."""
        if any(name not in CLOCK_FAULTS for _, name, _ in run.plan.history):
            return []
        arrived_us = run.world.longest_transit_us
        deliveries: dict[bytes, list[RecordedDelivery]] = {}
        for delivery in run.history.delivered:
            deliveries.setdefault(delivery.job_id, []).append(delivery)
        given_back = run.history.asked(b"NACK", b"ENQUEUE")
        return [
            f"{worked.job_id.decode('latin-1')}: WORKING at {worked.answered_us / 1e6:.3f} s, RETRY"
            f" {worked.reply}, delivered by {delivery.node.decode()} at"
            f" {delivery.sent_us / 1e6:.3f} s"
            for worked in run.history.job_requests
            if worked.word == b"WORKING" and worked.reply > 0
            for delivery in deliveries.get(worked.job_id, ())
            if worked.answered_us + arrived_us < delivery.sent_us
            and delivery.sent_us < worked.asked_us + worked.reply * 1_000_000 - _EARLY_US
            and not _given_back(run, worked, delivery, given_back.get(worked.job_id, []))
            and not _given_elsewhere(run, worked, deliveries[worked.job_id])
        ]


def _given_back(
    run: Stage, worked: JobRequest, delivery: RecordedDelivery, requests: list[JobRequest]
) -> bool:
    """Whether such a request may have been executed after WORKING and before the delivery."""
    since_us = worked.asked_us - 2 * run.world.longest_transit_us
    return any(since_us <= request.asked_us <= delivery.sent_us for request in requests)


def _given_elsewhere(run: Stage, worked: JobRequest, deliveries: list[RecordedDelivery]) -> bool:
    """Whether other nodes gave the job to each other after it came to the node of WORKING, as far
    as that node may not know by then."""
    transit_us = run.world.longest_transit_us
    if run.shape.bulk != "all":
        return run.transfers.by_others(worked.job_id, worked.node, 0, worked.answered_us) > 0
    came_us = max(
        (
            one.sent_us
            for one in deliveries
            if one.node == worked.node and one.sent_us < worked.asked_us
        ),
        default=0,
    )
    until_us = worked.answered_us + transit_us
    return run.transfers.by_others(worked.job_id, worked.node, came_us - transit_us, until_us) > 0


_DRIFT: Final = 0.001
_HOP_S: Final = 1.0
#: At most, a copy is sent to a node, moved to another, and moved back.
_HOPS_MAX: Final = 4


class InTime(Checker):
    """No job is delivered before its DELAY is over, and none after its TTL.

    Clocks may drift by 500 ppm. A message carries how long a job still lives, so a copy may live
    longer by the time that its message was on the way, and by up to a second, for every hop it
    made. On disk stands the time of day at which it ends: who restarts with a wrong clock cannot
    know better. DELAY starts again then, unless the life of the job, by that clock, would end
    first.
    """

    def judge(self, run: Stage) -> list[str]:
        """Deliveries outside of their job's time."""
        breaches: list[str] = []
        names = {name for _, name, _ in run.plan.history}
        fooled = run.shape.appendonly and "clock_step" in names
        hops_s = _HOPS_MAX * (_HOP_S + run.world.longest_transit_us / 1e6)
        for delivery in run.history.delivered:
            added = run.history.added.get(delivery.body)
            if added is None:
                continue
            name = delivery.job_id.decode("latin-1")
            age_s = (delivery.at_us - added.asked_us) / 1e6
            early = age_s < added.delay_s * (1 - _DRIFT) - 0.001
            if early and not _nearly_over(run, added, age_s):
                breaches.append(f"{name}: DELAY {added.delay_s}, delivered after {age_s:.3f} s")
            made_us = added.accepted_us if added.accepted_us >= 0 else delivery.at_us
            lived_s = (delivery.sent_us - made_us) / 1e6
            if not fooled and lived_s > added.ttl_s * (1 + _DRIFT) + hops_s:
                breaches.append(f"{name}: TTL {added.ttl_s}, delivered after {lived_s:.3f} s")
        return breaches


def _nearly_over(run: Stage, added: Added, age_s: float) -> bool:
    """Whether some clock was set so that DELAY had no room any more before the end of the job."""
    if not run.shape.appendonly:
        return False
    left_s = added.ttl_s - age_s
    room_s = 2 * added.delay_s + _HOP_S
    return any(
        -_HOP_S <= left_s - shift_us / 1e6 <= room_s
        for machine in run.machines
        for shift_us in machine.clocks.shifts_us
    )
