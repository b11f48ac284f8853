"""Jobs that come back: not before their backoff is over; dead letters and moves lose nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from disque_tx.sim.checkers.jobs import may_be_lost
from disque_tx.sim.stage.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.stage.history import JobRequest, RecordedDelivery
    from disque_tx.sim.stage.stage import Stage

_DRIFT: Final = 0.001
#: A node reckons in milliseconds, rounded down (microseconds).
_MS: Final = 1_000


class BackoffRespected(Checker):
    """After an answered NACK with DELAY the node does not deliver the job before that time.

    Judged at the node that holds it back: another one that cannot be reached delivers after RETRY.
    Excused: a node that was started again since, for a backoff is not logged; and a job about which
    another consumer, who has it too, or the operator sent something at about that time: a second
    node that holds it back may take over.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were delivered before the time that the NACK named."""
        requests: dict[bytes, list[JobRequest]] = {}
        for request in run.history.job_requests:
            requests.setdefault(request.job_id, []).append(request)
        started = {machine.ip: machine.started_us for machine in run.machines}
        deliveries: dict[bytes, list[RecordedDelivery]] = {}
        for delivery in run.history.delivered:
            deliveries.setdefault(delivery.job_id, []).append(delivery)
        return [
            f"{nacked.job_id.decode('latin-1')}: held back by {nacked.node.decode()} at"
            f" {nacked.answered_us / 1e6:.3f} s for {nacked.delay_us / 1e6:.1f} s, delivered there"
            f" at {delivery.sent_us / 1e6:.3f} s"
            for nacked in run.history.job_requests
            if nacked.delay_us > 0 and nacked.reply == 1
            for delivery in deliveries.get(nacked.job_id, ())
            if delivery.node == nacked.node
            and nacked.answered_us < delivery.sent_us
            and delivery.sent_us < nacked.asked_us + nacked.delay_us * (1 - _DRIFT) - _MS
            and started[nacked.node] <= nacked.asked_us
            and not _disturbed(run, nacked, delivery, requests[nacked.job_id])
        ]


def _disturbed(
    run: Stage, nacked: JobRequest, delivery: RecordedDelivery, requests: list[JobRequest]
) -> bool:
    """Whether another request about the job may have been executed shortly before or meanwhile."""
    since_us = nacked.asked_us - _LONGEST_US - 2 * run.world.longest_transit_us
    return any(
        request is not nacked and since_us <= request.asked_us <= delivery.sent_us
        for request in requests
        if request.word != b"ACKJOB"
    )


#: The longest backoff that consumers ask for.
_LONGEST_US: Final = 6_000_000


class EveryJobSettled(Checker):
    """A job does not vanish: it is acknowledged by a client, or a letter about it was delivered.

    In the end consumers take and acknowledge whatever is left, dead letters included. So a job that
    may be delivered again, and that no client ever asked to acknowledge or delete, under whatever
    ID it was delivered, is lost if there is no letter about it.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were delivered and are gone."""
        ended = {
            request.job_id
            for request in run.history.job_requests
            if request.word in (b"ACKJOB", b"FASTACK", b"DELJOB")
        }
        settled = {one.body for one in run.history.delivered if one.job_id in ended}
        settled |= {letter.body for letter in run.history.letters}
        return [
            f"{added.job_id.decode()}: neither acknowledged nor a dead letter"
            for added in run.history.accepted()
            if added.retry_s > 0 and added.body not in settled and not may_be_lost(run, added)
        ]


class OneLetter(Checker):
    """Without faults, there is one letter about a job: only one of its holders writes it. It may be
    delivered several times."""

    def judge(self, run: Stage) -> list[str]:
        """Jobs with several letters."""
        if run.plan.history or run.lost:
            return []
        letters = {letter.job_id: letter.body for letter in run.history.letters}
        counts = Counter(letters.values())
        return [
            f"{body[:20].decode()}: {count} dead letters"
            for body, count in counts.items()
            if count > 1
        ]
