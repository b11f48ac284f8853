"""What must hold in every run: a class per promise."""

from __future__ import annotations

from disque_tx.sim.checkers.alike import CopiesAlike
from disque_tx.sim.checkers.cluster import (
    AcksCollected,
    Drained,
    LogEqualsMemory,
    PasswordRequired,
    SameViews,
    WithinBudget,
)
from disque_tx.sim.checkers.copies import (
    CopiesMadeAgain,
    EmptiedNodes,
    EndedStaysEnded,
    NoneMadeTwice,
    SpreadAgain,
)
from disque_tx.sim.checkers.counters import CountersMatch, MemoryCounted, TotalsMatch
from disque_tx.sim.checkers.delivery import AtMostOnce, InTime, NotAfterAck, WorkingRespected
from disque_tx.sim.checkers.discovery import OneCluster, OthersRefused
from disque_tx.sim.checkers.jobs import (
    CopiesAdded,
    EnoughCopies,
    HostsDiffer,
    NothingLost,
    NothingUnexpected,
    UniqueIds,
)
from disque_tx.sim.checkers.overview import CountsTrue, EndingsTrue, FlushedGone
from disque_tx.sim.checkers.queues.demand import WaitingClientsServed
from disque_tx.sim.checkers.queues.matching import LimitsKept, NoJobBesideClient
from disque_tx.sim.checkers.queues.memory import FullAsksForNothing, ReturnsTaken
from disque_tx.sim.checkers.queues.order import OldestFirst, PauseRespected
from disque_tx.sim.checkers.retries import BackoffRespected, EveryJobSettled, OneLetter
from disque_tx.sim.checkers.survival import CountersSurvive, LimitKept
from disque_tx.sim.checkers.tables.keys import (
    AnsweredExist,
    KeysFreed,
    OneJobPerKey,
    OneLivingJobPerKey,
)
from disque_tx.sim.checkers.tables.schedules import OccurrencesKept, OccurrencesOnce, SchedulesGoOn
from disque_tx.sim.checkers.tables.tables import ChangesKept, LastChangeCounts, SameTables
from disque_tx.sim.stage.checker import Checker


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
        CopiesMadeAgain(),
        EndedStaysEnded(),
        EmptiedNodes(),
        OneCluster(),
        OthersRefused(),
        SpreadAgain(),
        NoneMadeTwice(),
        CopiesAlike(),
    ]
