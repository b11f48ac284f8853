"""``python -m tests.mutation FILE-OR-FOLDER...``: how many of a sample of small defects the unit
tests catch, in all packages but the simulator, whose own planted defects are in ``tests/mutants``.
Which defects there are: see ``tests/mutation/operators.py``; which tests are run on each:
``choice.py``.

``--seed`` determines the sample of ``--mutants``: the same seed gives the same sample of the same
program. A mutant is caught when a test fails that passes without it, or when the tests do not end
within a multiple of the time that they take otherwise. One whose tests fail or do not end without
any defect is listed as not tried, with the reason. Mutants listed in ``equivalent.txt`` have no
observable effect.

Each result is a line of JSON in the file ``--results`` as soon as it is known. Mutants that are in
there are not tried again: a run that ended early, or after ``--seconds``, is continued by the same
command. With ``--again`` those are tried that survived or could not be tried, and no others. What
lies in the files ``--merge`` is counted in the table at the end as well. The exit status is 1 if
fewer than ``--aim`` percent of the mutants with an effect are caught.
"""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import time
from pathlib import Path
from typing import Final

from tests.mutation.attempts import Trials
from tests.mutation.child import warm
from tests.mutation.results import NOT_TRIED, SURVIVED, append, percentage, read, table
from tests.mutation.sample import PACKAGE, ROOT, Drawn, draw, drawn_again, files_of

#: What the processes of all mutants need, from their start.
_ENVIRONMENT: Final = {
    "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)]),
    "PYTHONHASHSEED": "0",
    "HYPOTHESIS_PROFILE": "mutation",
    # Of each thread's own arena the memory limit would count far more than is used, so that tests
    # with many threads could start no more of them, and wait forever.
    "MALLOC_ARENA_MAX": "2",
}


def options_of(words: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=[PACKAGE])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--seconds", type=int, default=0, help="start none after that; 0: no end")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "mutation.jsonl")
    parser.add_argument("--merge", nargs="*", type=Path, default=[])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--aim", type=int, default=93)
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> list[Drawn]:
    """The mutants that are to be tried."""
    known = read([options.results])
    if options.again:
        every = [one for one in known.values() if one.outcome in (SURVIVED, NOT_TRIED)]
        found = [drawn_again(PACKAGE / one.file, one.number) for one in every]
        return [one for one in found if one is not None and _key(one) in known]
    drawn = draw(
        files_of([path.resolve() for path in options.files]), options.seed, options.mutants
    )
    return [one for one in drawn if _key(one) not in known]


def _key(one: Drawn) -> tuple[str, int, int, str]:
    return one.file, one.number, one.mutant.line, one.mutant.after


def main() -> int:
    """Run the program; returns its exit status."""
    options = options_of(sys.argv[1:])
    drawn = chosen(options)
    compileall.compile_dir(PACKAGE, quiet=2)
    warm()
    trials = Trials()
    end_s = time.monotonic() + options.seconds if options.seconds else float("inf")
    for number, one in enumerate(drawn, 1):
        if time.monotonic() > end_s:
            print(f"{len(drawn) - number + 1} are left for the next run.")
            break
        result = trials.attempt(one)
        append(options.results, result)
        print(f"{number} of {len(drawn)}, {result.seconds} s: {result}", flush=True)
    results = read([*options.merge, options.results]).values()
    print(table(results))
    return 0 if percentage(results) >= options.aim else 1


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in _ENVIRONMENT.items()):
        words = [sys.executable, "-m", "tests.mutation", *sys.argv[1:]]
        os.execve(sys.executable, words, {**os.environ, **_ENVIRONMENT})
    sys.exit(main())
