"""How blocked clients are released without what they waited for (client protocol, section 20).

1. GETJOB: an empty answer when its time is over, an error when it has to go elsewhere. WAITJOB: an
   empty answer when its time is over.
2. QMOVE: the number of jobs moved so far; those under way arrive later, or stay. Other long
   requests about queues are never released: they end by themselves.
3. ADDJOB, with a key or without: an error, and the job is withdrawn, here and from the nodes that
   got a copy. A job whose client has the ID already, so that nobody waits, is not withdrawn: it is
   to be delivered.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import (
    BLOCKED_ADDJOB,
    BLOCKED_GETJOB,
    BLOCKED_TASK,
    BLOCKED_WAITJOB,
    REPLY_OFF,
    Client,
)
from disque_tx.core.base.part import Part
from disque_tx.core.delivery.delivery import REMOVED, Delivery
from disque_tx.core.jobs.job import Job
from disque_tx.core.redelivery.moves import Moves
from disque_tx.core.state.state import State
from disque_tx.core.unique.keys import Keys
from disque_tx.errors import CommandError

#: Clients released per turn.
_CLIENTS_PER_TURN: Final = 2_000
_TIMEOUT: Final = "Timeout reached before replicating to the requested number of nodes"
_LEAVING: Final = "This node is leaving the cluster, please connect to a different one"


def leaving() -> CommandError:
    """The error of a leaving node for clients that would wait for jobs."""
    return CommandError("LEAVING", _LEAVING)


class Unblocking(Part):
    """Ends the waiting of clients, when its time is over or what they wait for is gone."""

    def __init__(self, state: State, delivery: Delivery, moves: Moves, keys: Keys) -> None:
        self._turn = state.turn
        self._waiters = state.waiters
        self._outbox = state.outbox
        self._delivery = delivery
        self._endings = state.endings
        self._moves = moves
        self._keys = keys

    def gone(self, client: Client) -> None:
        """The connection is lost: no answer is sent."""
        self._keys.client_gone(client)
        jobs = self._awaited(client)
        self._waiters.leave(client)
        for job in jobs:
            self._delivery.take_back(job, CommandError("NOREPL", _TIMEOUT))

    def next_due_ms(self) -> i64:
        return self._waiters.timeouts.next_ms()

    def run_due(self) -> None:
        """Release those whose time is over."""
        for client in self._waiters.expired(_CLIENTS_PER_TURN):
            self._time_over(client)

    def _time_over(self, client: Client) -> None:
        """Answer a client whose time-out is reached."""
        if client.blocked == BLOCKED_ADDJOB:
            for job in self._overdue(client):
                self._delivery.take_back(job, CommandError("NOREPL", _TIMEOUT))
            return
        if client.reply_mode != REPLY_OFF:
            if client.blocked == BLOCKED_WAITJOB:
                client.replies.null()
            else:
                client.replies.null_array()
        self._let_go(client)

    def _awaited(self, client: Client) -> list[Job]:
        """The jobs for whose copies the client waits, in the order of its requests."""
        return [wait.job for wait in self._waiters.awaited(client)]

    def _overdue(self, client: Client) -> list[Job]:
        """The jobs of the client whose copies were to be made by now. Its time-out is over;
        the next one is scheduled."""
        line = client.line
        if line is None:
            return self._awaited(client)
        late: list[Job] = []
        line.due_ms = 0
        for wait in self._waiters.awaited(client):
            if 0 < wait.due_ms <= self._turn.now_ms:
                late.append(wait.job)
            else:
                self._waiters.reschedule(client, line, wait.due_ms)
        return late

    def waiting_for_jobs(self, error: CommandError, limit: i64) -> None:
        """Release up to ``limit`` clients that wait for jobs with this error, which sends them to
        other nodes (section 12.3).

        Clients that wait for copies get them: a leaving node keeps none itself. Neither does it
        stop moving jobs.
        """
        waiting = [c for c in self._waiters.blocked if c.blocked == BLOCKED_GETJOB]
        for client in waiting[:limit]:
            self._refuse(client, error)

    def all_clients(self, error: CommandError) -> list[Client]:
        """Release all with an error, and return them."""
        self._keys.process_ended()
        clients = list(self._waiters.blocked)
        self._give_up_copies(error)
        for client in list(self._waiters.blocked):
            self._refuse(client, error)
        return clients

    def forget_all(self) -> None:
        """Waiting clients get no jobs, and those that wait for copies an error."""
        self._keys.process_ended()
        self._give_up_copies(CommandError("NOREPL", REMOVED))
        self._endings.forget_all()
        for client in list(self._waiters.blocked):
            if client.blocked == BLOCKED_ADDJOB:
                self._keys.give_up(client, CommandError("NOREPL", REMOVED))
            elif client.blocked != BLOCKED_TASK and not self._moves.release(client):
                self._time_over(client)
        self._waiters.copies.clear()

    def _give_up_copies(self, error: CommandError) -> None:
        for wait in list(self._waiters.copies.values()):
            if wait.client is not None:
                self._delivery.take_back(wait.job, error)

    def _refuse(self, client: Client, error: CommandError) -> None:
        if client.blocked == BLOCKED_ADDJOB:
            self._keys.give_up(client, error)
            return
        if client.reply_mode != REPLY_OFF:
            client.replies.error(error.reply())
        self._let_go(client)

    def _let_go(self, client: Client) -> None:
        self._waiters.leave(client)
        self._outbox.touch(client)
