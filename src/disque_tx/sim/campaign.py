"""Many runs: their coverage, their failures, and a smaller version of what failed.

A campaign fails when a run breaks a promise, when one that is repeated does not repeat itself, and
when over all its runs some fault never struck or some bus message was never sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import attrs

from disque_tx.messages.bustypes import BULK, OWN_TYPES, TYPE_NAMES, type_name
from disque_tx.sim.checkers import all_checkers
from disque_tx.sim.faults.plan import FAULTS
from disque_tx.sim.run import SimulatedRun
from disque_tx.sim.stage.shape import DEAL, Pair, Shape, pairs

#: Every run with such a seed is made twice and must be the same both times.
REPEATED: Final = 50
#: Runs a campaign needs before it is asked whether everything happened in it.
COVERAGE_RUNS: Final = 50


_MESSAGES: Final = (*TYPE_NAMES, *[type_name(kind) for kind in range(OWN_TYPES, BULK + 1)])


@attrs.frozen
class SeedOutcome:
    """One run. ``breaches``: none when all promises were kept. ``shape``: what was drawn."""

    seed: int
    shape: Shape
    breaches: tuple[str, ...]
    counters: Counter[str]
    trace_hash: str
    accepted: int
    delivered: int
    duplicates: int


def outcome(seed: int) -> SeedOutcome:
    """Make the run of a seed, twice if it is one of those."""
    first = _once(seed)
    if seed % REPEATED == 0:
        second = _once(seed)
        if second.trace_hash != first.trace_hash:
            breach = f"the run does not repeat itself: {first.trace_hash}, {second.trace_hash}"
            return attrs.evolve(first, breaches=(*first.breaches, breach))
    return first


def _once(seed: int) -> SeedOutcome:
    run = checked_run(seed)
    breaches = run.execute()
    history = run.history
    return SeedOutcome(
        seed,
        run.shape,
        tuple(breaches),
        run.world.counters,
        run.world.trace_hash(),
        sum(1 for _ in history.accepted()),
        len(history.delivered),
        history.duplicates(),
    )


def outcomes(seeds: Iterable[int], jobs: int) -> Iterator[SeedOutcome]:
    """The runs of the seeds, in order, ``jobs`` at a time."""
    if jobs == 1:
        yield from map(outcome, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(outcome, seeds)


@attrs.define
class Summary:
    """What a campaign saw up to now."""

    runs: int = 0
    accepted: int = 0
    delivered: int = 0
    duplicates: int = 0
    counters: Counter[str] = attrs.Factory(Counter)
    workloads: Counter[str] = attrs.Factory(Counter)
    pairs: Counter[Pair] = attrs.Factory(Counter)
    failed: list[SeedOutcome] = attrs.Factory(list)

    def add(self, one: SeedOutcome) -> None:
        """Count a run."""
        self.runs += 1
        self.accepted += one.accepted
        self.delivered += one.delivered
        self.duplicates += one.duplicates
        self.counters += one.counters
        self.workloads[one.shape.workload] += 1
        struck = [name for name in FAULTS if one.counters[f"fault.{name}"]]
        self.pairs.update((one.shape.workload, fault) for fault in struck)
        if one.breaches:
            self.failed.append(one)

    def missing(self) -> list[str]:
        """Faults that never struck and messages that were never sent; and, when there were enough
        runs for all, workloads that never met some fault."""
        wanted = [f"fault.{name}" for name in sorted(FAULTS)]
        wanted += [f"bus.{name}" for name in _MESSAGES]
        missing = [name for name in wanted if not self.counters[name]]
        if self.runs >= DEAL:
            missing += [
                f"{work} with {fault}" for work, fault in pairs() if not self.pairs[work, fault]
            ]
        return missing

    def rate(self) -> float:
        """Deliveries that were not the first of their job, as a share of all."""
        return self.duplicates / self.delivered if self.delivered else 0.0

    def table(self) -> str:
        """Faults and messages, and how often each happened, for people."""
        lines = [
            f"{self.runs} runs, {self.accepted} jobs accepted, {self.delivered} deliveries,"
            f" {self.duplicates} of them not the first ({self.rate():.2%})",
            "",
        ]
        names = [*(f"fault.{name}" for name in sorted(FAULTS)), *(f"bus.{n}" for n in _MESSAGES)]
        lines += [f"  {name:<32}{self.counters[name]:>12}" for name in names]
        lines += ["", *(f"  {name:<32}{n:>12}" for name, n in sorted(self.workloads.items()))]
        return "\n".join(lines)


def checked_run(seed: int, shape: Shape | None = None, keep_trace: bool = False) -> SimulatedRun:
    """The run of a seed, with all checkers; in this shape, if any is given."""
    return SimulatedRun(seed, all_checkers(), shape, keep_trace)


def fails(seed: int, shape: Shape) -> bool:
    """Whether this run breaks a promise."""
    return bool(checked_run(seed, shape).execute())


def smaller(shape: Shape) -> Iterator[Shape]:
    """Shapes with a little less in them."""
    if shape.clients > 2:
        yield attrs.evolve(shape, clients=max(2, shape.clients // 2))
    if shape.fault_s > 5:
        yield attrs.evolve(shape, fault_s=shape.fault_s // 2)
    names = sorted(shape.faults)
    half = len(names) // 2
    if half:
        yield attrs.evolve(shape, faults=frozenset(names[:half]))
        yield attrs.evolve(shape, faults=frozenset(names[half:]))
    for name in names:
        yield attrs.evolve(shape, faults=shape.faults - {name})
    if shape.nodes > 2:
        yield attrs.evolve(shape, nodes=shape.nodes - 1)
    if shape.queues > 1:
        yield attrs.evolve(shape, queues=1)
    if shape.password:
        yield attrs.evolve(shape, password=False)
    if shape.hosts:
        yield attrs.evolve(shape, hosts=0)
    if shape.everything:
        yield attrs.evolve(shape, everything=False)
    if shape.appendonly:
        yield attrs.evolve(shape, appendonly=False)


def minimise(
    seed: int, shape: Shape, tries: int, failing: Callable[[int, Shape], bool] = fails
) -> Shape:
    """The smallest failing shape found with at most ``tries`` runs."""
    best = shape
    left = tries
    found = True
    while found and left > 0:
        found = False
        for candidate in smaller(best):
            left -= 1
            if failing(seed, candidate):
                best, found = candidate, True
                break
            if left <= 0:
                break
    return best
