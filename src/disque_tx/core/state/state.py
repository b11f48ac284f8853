"""What the parts of a node share: its jobs, queues, clients, peers and source of randomness."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.slices import SlicedWork
from disque_tx.core.base.totals import Totals
from disque_tx.core.base.turn import Turn
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.nodes.clocks import Clocks
from disque_tx.core.nodes.handovers import RecentHandovers
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers, SeenSerials
from disque_tx.core.policies.policies import Policies
from disque_tx.core.queues.index import Matching
from disque_tx.core.queues.limits import Limits
from disque_tx.core.queues.pausing import Pausing
from disque_tx.core.queues.queues import Queues
from disque_tx.core.queues.waiters import Waiters
from disque_tx.core.state.store import JobStore
from disque_tx.core.tables.exchange import Exchanges, TableExchange
from disque_tx.core.tables.policytable import PolicyTable
from disque_tx.core.tables.timetable import Timetable


class State:
    """What the parts of a node share. ``turn``: the time of the turn. ``random``: a number in [0,
    1) per call."""

    def __init__(self, membership: Membership, random: Callable[[], float]) -> None:
        self.turn = turn = Turn()
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
        self.matching = Matching(turn, self.queues, tallies, self.limits)
        self.waiters = Waiters(turn, self.queues, self.outbox, self.matching)
        self.jobs = JobStore(
            self.memory, self.outbox, self.totals, self.waiters, tallies, self.policies
        )
        self.slices = SlicedWork()
        self.pausing = Pausing(
            turn, self.policies, self.queues, self.waiters, self.outbox, self.slices
        )
        self.peers = Peers(membership)
        self.timetable = Timetable()
        self.exchanges = Exchanges(
            TableExchange(turn, membership, self.peers, self.policy_table, self.slices),
            TableExchange(turn, membership, self.peers, self.timetable, self.slices),
        )
        self.received = SeenSerials()
        self.reservations = Reservations(
            membership, self.memory, self.outbox, self.jobs.keys_by_job
        )
        self.done_jobs = DoneJobs(self.memory)
        self.key_view = KeeperMap(
            turn, membership, self.peers, self.reservations, self.done_jobs, self.slices
        )
        self.clocks = Clocks(membership)
        self.handovers = RecentHandovers(self.peers)
