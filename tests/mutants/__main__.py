"""``python -m tests.mutants [NAME...]``: plants the named defects, or all, one at a time, and
prints what the simulator finds in the run of the seed in ``caught.txt``."""

from __future__ import annotations

import sys

from tests.mutants.defects import MUTANTS
from tests.mutants.hunt import caught, fix_hashes, read_table


def main(names: list[str]) -> int:
    """Replay the defects; 1 if one is not found by its seed, 2 if a name is unknown."""
    table = read_table()
    unknown = [name for name in names if name not in table]
    if unknown:
        print(f"No such defect: {', '.join(unknown)}. There are: {', '.join(table)}")
        return 2
    blind = 0
    for mutant in MUTANTS:
        if mutant.name in (names or table):
            breach = caught(mutant, table[mutant.name])
            blind += not breach
            print(f"{mutant.name} ({mutant.what}), seed {table[mutant.name]}:")
            print(f"    {breach.splitlines()[0] if breach else 'not found'}", flush=True)
    return 1 if blind else 0


if __name__ == "__main__":
    fix_hashes("tests.mutants")
    sys.exit(main(sys.argv[1:]))
