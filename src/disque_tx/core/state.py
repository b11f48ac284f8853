"""What the parts of a node share: its jobs, queues, clients, peers and source of randomness."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.core.clocks import Clocks
from disque_tx.core.given import Given
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.keys.view import View
from disque_tx.core.matching.index import Matching
from disque_tx.core.membership import Membership
from disque_tx.core.memory import Memory
from disque_tx.core.outbox import Outbox
from disque_tx.core.overview.tallies import Tallies
from disque_tx.core.peers import Peers, Received
from disque_tx.core.queues import Queues
from disque_tx.core.recurring.timetable import Timetable
from disque_tx.core.rules.limits import Limits
from disque_tx.core.rules.pausing import Pausing
from disque_tx.core.shared.exchange import Exchange, Exchanges
from disque_tx.core.shared.policies import Policies
from disque_tx.core.shared.rules import PolicyTable
from disque_tx.core.slices import Slices
from disque_tx.core.store import JobStore
from disque_tx.core.totals import Totals
from disque_tx.core.waiters import Waiters


class State:
    """One per node. ``random``: a number in [0, 1) per call."""

    def __init__(self, membership: Membership, random: Callable[[], float]) -> None:
        self.membership = membership
        self.random = random
        self.outbox = Outbox()
        self.memory = Memory()
        self.totals = Totals()
        self.policies = Policies()
        self.policy_table = PolicyTable(self.policies)
        self.queues = Queues(self.memory, self.policies)
        tallies = Tallies()
        self.limits = Limits(self.policies, tallies)
        self.matching = Matching(self.queues, tallies, self.limits)
        self.waiters = Waiters(self.queues, self.outbox, self.matching)
        self.jobs = JobStore(
            self.memory, self.outbox, self.totals, self.waiters, tallies, self.policies
        )
        self.slices = Slices()
        self.pausing = Pausing(self.policies, self.queues, self.waiters, self.outbox, self.slices)
        self.peers = Peers(membership)
        self.timetable = Timetable()
        self.exchanges = Exchanges(
            Exchange(membership, self.peers, self.policy_table, self.slices),
            Exchange(membership, self.peers, self.timetable, self.slices),
        )
        self.received = Received()
        self.reservations = Reservations(membership, self.memory, self.outbox, self.jobs.bonds)
        self.done_jobs = DoneJobs(self.memory)
        self.key_view = View(membership, self.peers, self.reservations, self.done_jobs, self.slices)
        self.clocks = Clocks(membership)
        self.tables = (self.exchanges, self.key_view)
        self.given = Given(self.peers)
