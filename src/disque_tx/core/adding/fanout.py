"""ADDJOB to a queue whose policy has ``copy-to``: a job in each of its queues, too.

1. All are checked before one of them is added: what one of them is refused for is the answer, and
   none is added.
2. The client gets the ID of the job in the queue that it named, once all have their copies. If one
   cannot have them in time all are withdrawn; some may have been delivered by then, as they may
   when an answer is lost.
3. In each queue a job is what ADDJOB makes there: its policy completes the request.
4. They have no key: ADDJOB with UNIQUE is refused.
5. The jobs that are added in this way are not copied on, so copies cannot go round in a circle.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.base.bounds import check_queue
from disque_tx.core.base.client import BLOCKED_TASK, REPLY_OFF, Client
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.delivery import REMOVED, Delivery
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.copieswait import CopiesWatcher
from disque_tx.core.queues.waiters import NO_TIMEOUT_MS
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages import events
from disque_tx.messages.bustypes import DELJOB
from disque_tx.messages.records import ACKED, WAIT_REPL, Linked

_TIMEOUT: Final = "Timeout reached before replicating to the requested number of nodes"
_UNIQUE: Final = "UNIQUE is not possible in a queue whose policy has 'copy-to'"
_TIMEOUTS_PER_TURN: Final = 100


class _Group(Linked):
    """The jobs of one ADDJOB: ``ids``, first that in the queue which the client named; ``missing``:
    those without their copies. ``wait``: the number of the client's wait."""

    __slots__ = ("client", "ids", "missing", "wait")

    def __init__(self, client: Client, jobs: list[Job]) -> None:
        super().__init__()
        self.client: Client = client
        self.wait: i64 = 0
        self.ids: list[bytes] = [job.id for job in jobs]
        self.missing: set[bytes] = {job.id for job in jobs if job.state == WAIT_REPL}


class Fanout(Part, CopiesWatcher):
    """Adds jobs to several queues at once."""

    def __init__(self, state: State, delivery: Delivery, adding: Adding) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._outbox = state.outbox
        self._peers = state.peers
        self._policies = state.policies
        self._totals = state.totals
        self._waiters = state.waiters
        self._delivery = delivery
        self._adding = adding
        self._groups: dict[bytes, _Group] = {}
        self._timeouts: Schedule[_Group] = Schedule()

    def add(self, client: Client, request: AddRequest) -> bool:
        """Add the job, and those in other queues; ``False`` if the policy names none, and nothing
        is done. Raises ``CommandError`` as ADDJOB does, for any of them."""
        check_queue(request.queue)
        policy = self._policies.of(request.queue)
        if policy is None or not policy.copy_to:
            return False
        if request.unique is not None:
            raise CommandError("ERR", _UNIQUE)
        requests = [request]
        for name in policy.copy_to:
            if name != request.queue:
                requests.append(request.to_queue(name))
        jobs = self._adding.add_all(requests)
        self._totals.copied += len(jobs) - 1
        group = _Group(client, jobs)
        if not group.missing or request.asynchronous:
            client.replies.status(jobs[0].id)
            return True
        group.wait = self._waiters.wait_for_task(client)
        for job_id in group.missing:
            self._groups[job_id] = group
            self._waiters.watched[job_id] = self
        if 0 < request.timeout_ms < NO_TIMEOUT_MS:
            self._timeouts.add(group, self._turn.now_ms + request.timeout_ms)
        return True

    def copies_settled(self, job_id: bytes, made: bool) -> None:
        group = self._groups.pop(job_id, None)
        if group is None:
            return
        group.missing.discard(job_id)
        if not made:
            self._refuse(group, CommandError("NOREPL", REMOVED))
        elif not group.missing:
            self._answer(group, None)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._timeouts.next_ms()

    def run_due(self) -> None:
        """Withdraw what takes too long."""
        now_ms = self._turn.now_ms
        for group in self._timeouts.due(now_ms, _TIMEOUTS_PER_TURN):
            self._refuse(group, CommandError("NOREPL", _TIMEOUT))

    def forget_all(self) -> None:
        """All jobs are about to be forgotten."""
        for group in set(self._groups.values()):
            self._answer(group, CommandError("NOREPL", REMOVED))
        self._groups.clear()

    def _refuse(self, group: _Group, error: CommandError) -> None:
        for job_id in group.missing:
            self._groups.pop(job_id, None)
            self._waiters.watched.pop(job_id, None)
        for job_id in group.ids:
            job = self._jobs.get(job_id)
            if job is None or job.state == ACKED:
                continue
            if job.state == WAIT_REPL:
                self._delivery.take_back(job, error)
            else:
                self._totals.dropped += 1
                self._outbox.record_event(events.DELETED, job, events.NOT_REPLICATED)
                self._peers.signal_holders(job, DELJOB, 0)
                self._delivery.remove(job)
        self._answer(group, error)

    def _answer(self, group: _Group, error: CommandError | None) -> None:
        self._timeouts.remove(group)
        client = group.client
        if client.blocked != BLOCKED_TASK or client.blocked_number != group.wait:
            return  # it is gone
        if client.reply_mode != REPLY_OFF:
            if error is not None:
                client.replies.error(error.reply())
            else:
                client.replies.status(group.ids[0])
        self._waiters.answered(client)
