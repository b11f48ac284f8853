"""What must hold in every run, a file per promise."""

from __future__ import annotations

from disque_tx.sim.checker import Checker
from disque_tx.sim.checkers.acked import NotAfterAck
from disque_tx.sim.checkers.budget import WithinBudget
from disque_tx.sim.checkers.collected import Collected
from disque_tx.sim.checkers.copies import EnoughCopies
from disque_tx.sim.checkers.counted import Counted
from disque_tx.sim.checkers.counters import CountersFit
from disque_tx.sim.checkers.drained import Drained
from disque_tx.sim.checkers.ids import UniqueIds
from disque_tx.sim.checkers.locked import Locked
from disque_tx.sim.checkers.lost import NothingLost
from disque_tx.sim.checkers.once import AtMostOnce
from disque_tx.sim.checkers.order import OldestFirst
from disque_tx.sim.checkers.paused import PauseHeeded
from disque_tx.sim.checkers.replay import LogEqualsMemory
from disque_tx.sim.checkers.timing import InTime
from disque_tx.sim.checkers.totals import TotalsFit
from disque_tx.sim.checkers.unexpected import NothingUnexpected
from disque_tx.sim.checkers.views import SameViews
from disque_tx.sim.checkers.working import Heeded


def all_checkers() -> list[Checker]:
    """One of each, for one run."""
    return [
        NothingLost(),
        NothingUnexpected(),
        AtMostOnce(),
        Heeded(),
        NotAfterAck(),
        PauseHeeded(),
        OldestFirst(),
        CountersFit(),
        TotalsFit(),
        Locked(),
        EnoughCopies(),
        InTime(),
        UniqueIds(),
        LogEqualsMemory(),
        WithinBudget(),
        Drained(),
        Collected(),
        SameViews(),
        Counted(),
    ]
