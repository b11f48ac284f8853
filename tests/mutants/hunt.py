"""Search for a seed whose run finds each planted defect, and write the table of seeds.

``python -m tests.mutants.hunt [most [name ...]]``: tries up to ``most`` seeds per defect, 500 by
default, for all defects or for those named. The seeds that other defects have in the table are
tried first, because the run without a defect is shared by all defects of a seed.

A seed finds a defect when its run is clean without the defect and breaks a promise with it; if the
defect is meant for one checker, that one must report it. Runs are small, so that all of them
together take minutes: a few clients, a short time of faults, a bounded end.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.stage.shape import Pair, Shape, draw_shape, shaped
from disque_tx.sim.stage.workloads import workload_called
from disque_tx.sim.world.world import World
from tests.mutants.defects import MUTANTS, Mutant

TABLE: Final = Path(__file__).with_name("caught.txt")
SEEDS_MAX: Final = 500
_HEAD: Final = (
    "# Planted defect, seed of the small run that finds it: python -m tests.mutants.hunt\n"
)
_CLIENTS_MAX: Final = 6
_NODES_MIN: Final = 3
_FAULTS_S: Final = 10
#: Where a node has to be away, or its clock wrong, for long enough that the others notice.
_FAULTS_AWAY_S: Final = 30
_PACE_MS_MIN: Final = 200
#: Long enough for every correct run; more where nodes find each other by a name, and where holders
#: are gone for good.
_DRAIN_S: Final = 120
_DRAIN_NAMED_S: Final = 300
_DRAIN_LOST_S: Final = 950


def small(seed: int, task: Pair | None = None) -> Shape:
    """The shape of the seed's run, reduced in every respect; with only this workload and fault, if
    any are given."""
    shape = draw_shape(World(seed))
    shape = attrs.evolve(
        shape,
        clients=min(shape.clients, _CLIENTS_MAX),
        fault_s=_FAULTS_S,
        pace_ms=max(shape.pace_ms, _PACE_MS_MIN),
    )
    if task is None:
        return shape
    workload, fault = task
    faults = frozenset([fault] if fault else [])
    nodes = max(shape.nodes, _NODES_MIN)
    chosen = workload_called(workload)
    shape = attrs.evolve(
        shape,
        nodes=nodes,
        workload=workload,
        faults=faults,
        first=fault,
        intensity=1.0,
        appendonly=shape.appendonly or chosen.logs,
        fault_s=_FAULTS_AWAY_S if fault in ("one_away", "one_clock") else _FAULTS_S,
    )
    shape = shaped(World(seed), shape)
    gone = chosen.losses or chosen.evacuates
    return attrs.evolve(shape, bulk="all") if gone and not chosen.mixed else shape


@cache
def healthy(seed: int, task: Pair | None = None) -> tuple[str, ...]:
    """The violations in the seed's run without any defect; if there are any, the seed cannot show a
    defect."""
    shape = small(seed, task)
    return tuple(checked_run(seed, shape).execute(_drain_s(shape)))


def _drain_s(shape: Shape) -> int:
    """How long a run may take until nothing is left to be done."""
    chosen = workload_called(shape.workload)
    if chosen.losses or chosen.evacuates:
        return _DRAIN_LOST_S
    return _DRAIN_NAMED_S if chosen.named else _DRAIN_S


def caught(mutant: Mutant, seed: int) -> str:
    """The first violation in the run with the defect, if the run without it is clean; otherwise
    empty."""
    breach = found(mutant, seed)
    return breach if breach and not healthy(seed, mutant.task) else ""


def found(mutant: Mutant, seed: int) -> str:
    """The first violation in the run with the defect; otherwise empty. ``TypeError`` if the planted
    code does not fit the place where it is planted any more."""
    with mutant.planted():
        shape = small(seed, mutant.task)
        run = checked_run(seed, shape)
        breaches = run.execute(_drain_s(shape))
    for failure in run.world.failures:
        if "plants.py" in failure and "TypeError" in failure:
            raise TypeError(f"{mutant.name}: {failure}")
    if mutant.checker:
        breaches = run.verdicts[mutant.checker]
    return breaches[0] if breaches else ""


def read_table() -> dict[str, int]:
    """The seed that finds each defect."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {row[0]: int(row[1]) for row in rows if row}


def hunt(mutant: Mutant, seeds: list[int]) -> tuple[int, str]:
    """The first of the seeds that finds the defect, and the violation; 0 and an empty text if none
    does."""
    for seed in seeds:
        breach = caught(mutant, seed)
        if breach:
            return seed, breach
    return 0, ""


def main() -> int:
    """Hunt for all defects, or for those named."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS_MAX
    names = sys.argv[2:] or [mutant.name for mutant in MUTANTS]
    table = read_table() if TABLE.exists() else {}
    for mutant in MUTANTS:
        if mutant.name not in names:
            continue
        known = [seed for seed in dict.fromkeys(table.values()) if seed <= most]
        seed, breach = hunt(mutant, list(dict.fromkeys([*known, *range(1, most + 1)])))
        print(f"{mutant.name:<20} {seed or 'NOT FOUND':>9}  {breach.splitlines()[:1]}", flush=True)
        table.pop(mutant.name, None)
        if seed:
            table[mutant.name] = seed
        lines = [f"{m.name:<20} {table[m.name]}\n" for m in MUTANTS if m.name in table]
        TABLE.write_text(_HEAD + "".join(lines))
    return 0 if len(table) == len(MUTANTS) else 1


def fix_hashes(module: str) -> None:
    """Restart the process, if necessary, with the hash seed of the tests, so that a seed gives the
    same run."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])


if __name__ == "__main__":
    fix_hashes("tests.mutants.hunt")
    sys.exit(main())
