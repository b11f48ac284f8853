"""Defects planted into the node, one at a time, to see that the simulator finds them.

Each replaces one method of the product for the time of a run: how it could be wrong, and what that
breaks. The product itself holds no trace of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from disque_tx.busmessages import GOTJOB, NOREPLY, JobSignal
from disque_tx.core import recovery
from disque_tx.core.acks import Acks
from disque_tx.core.adding import Adding
from disque_tx.core.arrival import Arrivals
from disque_tx.core.delivery import Delivery
from disque_tx.core.federation import Federation
from disque_tx.core.hearing import Hearing
from disque_tx.core.holders import Holders, wins
from disque_tx.core.links import Links
from disque_tx.core.memory import Memory
from disque_tx.core.peers import Received
from disque_tx.core.replication import Replication
from disque_tx.core.store import JobStore
from disque_tx.messages import ACTIVE, DELIVERED, QUEUED, WAIT_REPL
from disque_tx.wire.jobid import JobIdSource

_MINUTES: Final = 60_000


class Mutant:
    """``what``: the defect in words. ``make``: from the right method to the wrong one."""

    def __init__(
        self, name: str, what: str, owner: Any, method: str, make: Callable[[Any], Any]
    ) -> None:
        self.name = name
        self.what = what
        self._owner = owner
        self._method = method
        self._make = make

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The product has this defect."""
        right = getattr(self._owner, self._method)
        setattr(self._owner, self._method, self._make(right))
        try:
            yield
        finally:
            setattr(self._owner, self._method, right)


def _nothing(right: Any) -> Any:
    """The method does nothing."""

    def wrong(*args: Any) -> None:
        return None

    return wrong


def _pretend(right: Any) -> Any:
    """The method says that it did it."""

    def wrong(*args: Any) -> bool:
        return True

    return wrong


def _answer_early(right: Any) -> Any:
    def confirmed(self: Any, sender: Any, message: Any, now_ms: int) -> None:
        job = self._jobs.get(message.job_id)
        if job is not None and job.state == WAIT_REPL:
            self.achieved(job, now_ms)
        else:
            right(self, sender, message, now_ms)

    return confirmed


def _confirm_without_copy(right: Any) -> Any:
    def keep(self: Any, sender: Any, message: Any, now_ms: int, wall_us: int) -> None:
        if not message.mflags & NOREPLY and message.jobs:
            self._peers.tell(sender.id, JobSignal(GOTJOB, message.jobs[0].id))

    return keep


def _queue_again(right: Any) -> Any:
    def may_queue(self: Any, job: Any) -> bool:
        return bool(job.state == ACTIVE)

    return may_queue


def _requeue_at_most_once(right: Any) -> Any:
    def fetch(self: Any, queue: Any, now_ms: int) -> Any:
        job = right(self, queue, now_ms)
        if job is not None and job.retry_s == 0:
            job.flags &= ~DELIVERED
            job.qtime_ms = now_ms + 1_000
            self._jobs.reschedule(job)
        return job

    return fetch


def _take_twice(right: Any) -> Any:
    def first(self: Any, message: Any) -> bool:
        return True

    return first


def _no_delay(right: Any) -> Any:
    def keep(self: Any, job: Any, now_ms: int) -> None:
        job.delay_s = 0
        right(self, job, now_ms)

    return keep


def _live_longer(right: Any) -> Any:
    def job(self: Any, record: Any, life_s: int, now_ms: int, wall_us: int) -> Any:
        return right(self, record, life_s + 3_600, now_ms, wall_us)

    return job


def _hand_out_expired(right: Any) -> Any:
    def add(self: Any, job: Any) -> None:
        job.expire_ms += _MINUTES
        right(self, job)

    return add


def _other_body(right: Any) -> Any:
    def job(self: Any, record: Any, *rest: Any) -> Any:
        made = right(self, record, *rest)
        made.body = made.body[:-1]
        return made

    return job


def _other_queue(right: Any) -> Any:
    def job(self: Any, record: Any, *rest: Any) -> Any:
        made = right(self, record, *rest)
        made.queue = b"a"
        return made

    return job


def _same_id(right: Any) -> Any:
    def next_id(self: Any, *args: Any) -> bytes:
        made: bytes = right(self, *args)
        return made[:13] + b"A" * 22 + made[35:]

    return next_id


def _forget_given(right: Any) -> Any:
    def give(self: Any, sender: Any, message: Any, now_ms: int) -> None:
        right(self, sender, message, now_ms)
        for job in list(self._jobs.table.values()):
            given = job.queue == message.queue and sender.id in job.nodes
            if given and job.state == ACTIVE and job.flags & DELIVERED:
                self._delivery.remove(job)

    return give


def _resend_at_once(right: Any) -> Any:
    def retry(self: Any, job: Any, now_ms: int) -> None:
        wait = self._waiters.copies[job.id]
        wait.resend_ms = now_ms
        for _ in range(200):
            self._send_again(job, set(job.nodes), now_ms)
        right(self, job, now_ms)

    return retry


def _silent_to_unknown(right: Any) -> Any:
    def answer(self: Any, sender: Any, job_id: bytes, known: bool) -> None:
        if known:
            right(self, sender, job_id, known)

    return answer


def _raise_on_working(right: Any) -> Any:
    def postponed(self: Any, job: Any, *rest: Any) -> None:
        if job.state == QUEUED:
            raise IndexError("planted")
        right(self, job, *rest)

    return postponed


def _winner_keeps(right: Any) -> Any:
    def postponed(self: Any, job: Any, sender: bytes, message: Any, now_ms: int) -> None:
        if job.state == QUEUED and not wins(sender, self._membership.myself.id, job.id):
            return
        right(self, job, sender, message, now_ms)

    return postponed


def _delay_by_clock(right: Any) -> Any:
    def requeue_ms(node: Any, job: Any, state: int, left_ms: int) -> int:
        at_ms: int = right(node, job, state, left_ms)
        if job.delay_s and state == ACTIVE and at_ms:
            delayed_ms: int = job.ctime // 1_000_000 + job.delay_s * 1000 - node.wall_us // 1000
            return int(node.now_ms) + max(0, delayed_ms)
        return at_ms

    return requeue_ms


def _leak(right: Any) -> Any:
    def give(self: Any, size: int) -> None:
        right(self, size - 1)

    return give


MUTANTS: Final = [
    Mutant(
        "early-answer",
        "ADDJOB answers after the first copy",
        Replication,
        "confirmed",
        _answer_early,
    ),
    Mutant(
        "phantom-copy",
        "a copy is confirmed and not kept",
        Replication,
        "keep",
        _confirm_without_copy,
    ),
    Mutant(
        "copy-not-logged",
        "what is kept for others is not logged",
        JobStore,
        "record",
        lambda right: lambda self, job: right(self, job) if job.state == QUEUED else None,
    ),
    Mutant("ack-not-logged", "the end of a job is not logged", JobStore, "record_end", _nothing),
    Mutant(
        "once-again",
        "RETRY 0 is queued again by its timer",
        Delivery,
        "fetch",
        _requeue_at_most_once,
    ),
    Mutant(
        "once-by-nack", "RETRY 0 is queued again on demand", Delivery, "may_queue", _queue_again
    ),
    Mutant("taken-twice", "copies of messages are taken", Received, "first", _take_twice),
    Mutant("no-delay", "DELAY is ignored", Adding, "_keep", _no_delay),
    Mutant("long-copy", "copies live an hour longer", Arrivals, "job", _live_longer),
    Mutant("long-life", "jobs live a minute longer", JobStore, "add", _hand_out_expired),
    Mutant("short-body", "copies lose a byte", Arrivals, "job", _other_body),
    Mutant("wrong-queue", "copies go to another queue", Arrivals, "job", _other_queue),
    Mutant("same-id", "an ID is given again", JobIdSource, "next_id", _same_id),
    Mutant("never-again", "jobs are not queued again after RETRY", Delivery, "awake", _nothing),
    Mutant("given-away", "who gives a job keeps no copy", Federation, "give", _forget_given),
    Mutant("storm", "silent nodes are asked all the time", Replication, "retry", _resend_at_once),
    Mutant("no-resend", "ASYNC copies are not repeated", Replication, "_resend_async", _nothing),
    Mutant(
        "no-hand-off", "nobody is told to queue an external job", Replication, "hand_off", _pretend
    ),
    Mutant("no-gotack", "GOTACK is not sent for unknown jobs", Acks, "_answer", _silent_to_unknown),
    Mutant("no-setack", "acknowledgements are told once and never again", Acks, "awake", _nothing),
    Mutant("no-gotack-heard", "GOTACK is not heard", Acks, "confirmed", _nothing),
    Mutant("no-setack-heard", "SETACK is not heard", Acks, "set", _nothing),
    Mutant("raise", "a message makes the node fail", Holders, "_postponed", _raise_on_working),
    Mutant("no-gossip", "nobody learns of others", Hearing, "_listen", _nothing),
    Mutant("no-forgiveness", "a node that is back is not forgiven", Hearing, "_alive", _nothing),
    Mutant("no-calls", "links are not made", Links, "call", _nothing),
    Mutant(
        "winner-keeps",
        "who wins against the sender ignores WORKING",
        Holders,
        "_postponed",
        _winner_keeps,
    ),
    Mutant(
        "delay-by-clock",
        "after a restart DELAY ends by the clock of the node that made the job",
        recovery,
        "_requeue_ms",
        _delay_by_clock,
    ),
    Mutant("memory-leak", "the count of memory drifts", Memory, "give", _leak),
    Mutant(
        "no-take-back",
        "an ADDJOB that timed out leaves its client waiting",
        Delivery,
        "take_back",
        _nothing,
    ),
]
