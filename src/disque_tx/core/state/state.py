"""What the parts of a node share: its jobs, queues, clients, peers and source of randomness."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Turn
from disque_tx.core.base.slices import SlicedWork
from disque_tx.core.base.totals import Totals
from disque_tx.core.jobs.counters import Counters
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.notes import Notes
from disque_tx.core.jobs.observer import ENDS, MOVES, RECORDS
from disque_tx.core.jobs.progress import ProgressReports
from disque_tx.core.jobs.reasons import Reasons
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.jobs.unconfirmed import UnconfirmedCopies
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keysbyjob import KeysByJob
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.nodes.clocks import Clocks
from disque_tx.core.nodes.handovers import RecentHandovers
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers, SeenSerials
from disque_tx.core.policies.policies import Policies
from disque_tx.core.queues.endings import Endings
from disque_tx.core.queues.index import Matching
from disque_tx.core.queues.limits import Limits
from disque_tx.core.queues.pausing import Pausing
from disque_tx.core.queues.queues import Queues
from disque_tx.core.queues.waiters import Waiters
from disque_tx.core.state.store import JobStore
from disque_tx.core.statistics.flows import Flows
from disque_tx.core.statistics.history import History
from disque_tx.core.statistics.troubles import Troubles
from disque_tx.core.tables.exchange import Exchanges, TableExchange
from disque_tx.core.tables.policytable import PolicyTable
from disque_tx.core.tables.timetable import Timetable


class State:
    """What the parts of a node share. ``turn``: the time of the turn. ``random``: a number in [0,
    1) per call. ``tallies``: how many jobs of each queue are not in it. ``endings``: clients that
    wait for the end of jobs. ``reasons``: why consumers returned jobs. ``progress``: how far they
    are. ``keys_by_job``: which jobs have keys. ``notes``: what protocols of listeners noted about
    jobs. ``counters``: how often jobs came back, for the log. ``flows``: what happens in busy
    queues, for ``history``; ``troubles``: queues whose jobs fail."""

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
        self.tallies = Tallies(self.totals)
        self.limits = Limits(self.policies, self.tallies)
        self.matching = Matching(turn, self.queues, self.tallies, self.limits)
        self.waiters = Waiters(turn, self.queues, self.outbox, self.matching, self.policies)
        self.jobs = JobStore(self.memory, self.outbox)
        self.endings = Endings(self.waiters)
        self.reasons = Reasons(self.memory)
        self.progress = ProgressReports(turn, self.memory)
        self.keys_by_job = KeysByJob(membership)
        self.unconfirmed = UnconfirmedCopies()
        self.notes = Notes(self.memory, self.outbox)
        self.counters = Counters(self.jobs.table, self.outbox, self.policies)
        self._subscribe()
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
        self.reservations = Reservations(membership, self.memory, self.outbox, self.keys_by_job)
        self.done_jobs = DoneJobs(self.memory)
        self.key_view = KeeperMap(
            turn, membership, self.peers, self.reservations, self.done_jobs, self.slices
        )
        self.clocks = Clocks(membership)
        self.handovers = RecentHandovers(self.peers)
        self.flows = Flows()
        self.troubles = Troubles(turn)
        self.history = History(
            turn, self.flows, self.queues, self.tallies, self.totals, self.memory
        )

    def _subscribe(self) -> None:
        """Each that wants to know what happens to jobs; the last one is notified first: limits of
        queues, which the waiters ask for, need the tallies as they are."""
        self.jobs.subscribe(self.counters)
        self.jobs.subscribe(self.notes, ENDS | MOVES | RECORDS)
        self.jobs.subscribe(self.keys_by_job, ENDS)
        self.jobs.subscribe(self.reasons, ENDS)
        self.jobs.subscribe(self.progress, ENDS)
        self.jobs.subscribe(self.endings, ENDS)
        self.jobs.subscribe(self.waiters, MOVES)
        self.jobs.subscribe(self.tallies, MOVES)
