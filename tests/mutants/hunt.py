"""Looks for the first seed whose run finds each planted defect, and writes the table down.

``python -m tests.mutants.hunt [most [name ...]]``: up to ``most`` seeds per defect, 500 by default.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from disque_tx.sim.run import Run
from tests.mutants.defects import MUTANTS, Mutant

TABLE: Final = Path(__file__).with_name("caught.txt")


def caught(mutant: Mutant, seed: int) -> str:
    """The first thing that a run with the defect breaks; empty when nothing."""
    with mutant.planted():
        breaches = Run(seed).execute()
    return breaches[0] if breaches else ""


def read_table() -> dict[str, int]:
    """Defect → seed that finds it."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {row[0]: int(row[1]) for row in rows if row}


def hunt(mutant: Mutant, most: int) -> tuple[int, str]:
    """The first seed, and what it found; 0 when there is none."""
    for seed in range(1, most + 1):
        breach = caught(mutant, seed)
        if breach:
            return seed, breach
    return 0, ""


def main() -> int:
    """Hunt for all, or for those named."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    names = sys.argv[2:] or [mutant.name for mutant in MUTANTS]
    found = read_table() if TABLE.exists() else {}
    for mutant in MUTANTS:
        if mutant.name not in names:
            continue
        seed, breach = hunt(mutant, most)
        print(f"{mutant.name:<20} {seed or 'NOT FOUND':>9}  {breach.splitlines()[:1]}", flush=True)
        found.pop(mutant.name, None)
        if seed:
            found[mutant.name] = seed
    lines = [f"{m.name:<20} {found[m.name]}" for m in MUTANTS if m.name in found]
    TABLE.write_text("# Planted defect, first seed that finds it.\n" + "\n".join(lines) + "\n")
    return 0 if len(lines) == len(MUTANTS) else 1


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.mutants.hunt", *sys.argv[1:]])
    sys.exit(main())
