"""What must hold in every run: a class per promise."""

from __future__ import annotations

from disque_tx.sim.checkers.checker import Checker
from disque_tx.sim.checkers.cluster import (
    AcksCollected,
    Drained,
    LogEqualsMemory,
    PasswordRequired,
    SameViews,
    WithinBudget,
)
from disque_tx.sim.checkers.counters import CountersMatch, MemoryCounted, TotalsMatch
from disque_tx.sim.checkers.delivery import AtMostOnce, InTime, NotAfterAck, WorkingRespected
from disque_tx.sim.checkers.demand import WaitingClientsServed
from disque_tx.sim.checkers.jobs import (
    CopiesAdded,
    EnoughCopies,
    HostsDiffer,
    NothingLost,
    NothingUnexpected,
    UniqueIds,
)
from disque_tx.sim.checkers.keys import (
    AnsweredExist,
    KeysFreed,
    OneJobPerKey,
    OneLivingJobPerKey,
)
from disque_tx.sim.checkers.matching import LimitsKept, NoJobBesideClient
from disque_tx.sim.checkers.memory import FullAsksForNothing, ReturnsTaken
from disque_tx.sim.checkers.overview import CountsTrue, EndingsTrue, FlushedGone
from disque_tx.sim.checkers.queues import OldestFirst, PauseRespected
from disque_tx.sim.checkers.retries import BackoffRespected, EveryJobSettled, OneLetter
from disque_tx.sim.checkers.schedules import OccurrencesKept, OccurrencesOnce, SchedulesGoOn
from disque_tx.sim.checkers.survival import CountersSurvive, LimitKept
from disque_tx.sim.checkers.tables import ChangesKept, LastChangeCounts, SameTables


def all_checkers() -> list[Checker]:
    """A checker of each kind, for one run."""
    return [
        NothingLost(),
        NothingUnexpected(),
        AtMostOnce(),
        WorkingRespected(),
        NotAfterAck(),
        PauseRespected(),
        OldestFirst(),
        CountersMatch(),
        TotalsMatch(),
        PasswordRequired(),
        EnoughCopies(),
        HostsDiffer(),
        InTime(),
        UniqueIds(),
        OneJobPerKey(),
        AnsweredExist(),
        KeysFreed(),
        OneLivingJobPerKey(),
        LogEqualsMemory(),
        WithinBudget(),
        Drained(),
        AcksCollected(),
        SameViews(),
        MemoryCounted(),
        SameTables(),
        ChangesKept(),
        LastChangeCounts(),
        BackoffRespected(),
        EveryJobSettled(),
        OneLetter(),
        EndingsTrue(),
        FlushedGone(),
        CountsTrue(),
        CopiesAdded(),
        NoJobBesideClient(),
        LimitsKept(),
        OccurrencesKept(),
        OccurrencesOnce(),
        SchedulesGoOn(),
        FullAsksForNothing(),
        ReturnsTaken(),
        CountersSurvive(),
        LimitKept(),
        WaitingClientsServed(),
    ]
