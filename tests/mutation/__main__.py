"""``python -m tests.mutation FILE-OR-FOLDER...``: how many of a sample of small defects the unit
tests catch, in all packages but the simulator, whose own planted defects are in ``tests/mutants``.
Which defects there are: see ``tests/mutation/operators.py``.

The tests of ``src/disque_tx/a/b/c.py`` are ``tests/a/b/test_c.py``, then all of ``tests/a/b``, then
all of ``tests/a`` and those in :data:`_MORE`; each lot only if the one before it noticed nothing.
``--seed`` determines the sample of ``--mutants``: the same seed gives the same sample of the same
program. A mutant is caught when its tests fail, or use several times the processor time that they
use without it. The exit status is 1 if fewer than ``--aim`` percent are caught. Mutants listed in
``equivalent.txt`` have no observable effect, and are not drawn.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.mutation.operators import Mutant, count, planted

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "disque_tx"
#: Other test folders that exercise a package, in addition to its own.
_MORE: Final = {
    "core": ["commands", "stateful"],
    "commands": ["core", "stateful"],
    "wire": ["commands", "core"],
}
#: Folders of files that are not tested here.
_LEFT_OUT: Final = {"sim"}
#: Packages whose tests are those beside a file, for all together start Spark many times.
_BESIDE_ONLY: Final = {"spark"}
#: The limit is this multiple of the processor time without a defect, plus so many seconds.
_FACTOR: Final = 3
_SPARE_S: Final = 5
#: The limit in real time, for a process that hangs.
_STALLED_S: Final = 1800


class Drawn(NamedTuple):
    """One mutant of a file."""

    path: Path
    number: int
    mutant: Mutant

    def __str__(self) -> str:
        where = f"{self.path.relative_to(ROOT)}:{self.mutant.line}"
        return f"{where}\n    {self.mutant.before}\n    {self.mutant.after}"


def equivalent() -> set[tuple[str, str, str]]:
    """Mutants without an observable effect: file, before, after."""
    lines = (Path(__file__).parent / "equivalent.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {(row[0], row[1], row[2]) for row in rows}


def draw(paths: list[Path], seed: int, limit: int) -> list[Drawn]:
    """A random sample of the mutants of these files, without the equivalent ones."""
    sources = {path: path.read_text() for path in paths}
    every = [(path, index) for path in paths for index in range(count(sources[path]))]
    Random(seed).shuffle(every)
    known = equivalent()
    drawn: list[Drawn] = []
    for path, index in every:
        if len(drawn) == limit:
            break
        mutant = planted(sources[path], index)[1]
        if (str(path.relative_to(PACKAGE)), mutant.before, mutant.after) not in known:
            drawn.append(Drawn(path, index, mutant))
    return drawn


def files_of(paths: list[Path]) -> list[Path]:
    """These files, and those in these folders that are tested here."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.py"))
            found += [one for one in inside if not _LEFT_OUT.intersection(_parts(one))]
        else:
            found.append(path)
    return found


def _parts(path: Path) -> tuple[str, ...]:
    """The packages that a file is in, from the outermost on."""
    return path.relative_to(PACKAGE).parent.parts


def tests_for(path: Path) -> list[list[str]]:
    """The test modules for a file, in lots without those of earlier ones: its own; those beside it,
    or in the nearest folder above that has some; those of its package. No lot is empty."""
    parts = _parts(path)
    beside = ROOT.joinpath("tests", *parts)
    own = beside / f"test_{path.stem}.py"
    while not any(beside.glob("test_*.py")):
        beside = beside.parent
    lots = [[own], sorted(beside.glob("test_*.py"))]
    if parts and parts[0] not in _BESIDE_ONLY:
        folders = [ROOT / "tests" / name for name in (parts[0], *_MORE.get(parts[0], ()))]
        lots.append([test for folder in folders for test in sorted(folder.rglob("test_*.py"))])
    seen: set[Path] = set()
    found: list[list[str]] = []
    for lot in lots:
        new = [test for test in lot if test.exists() and test not in seen]
        seen.update(new)
        if new:
            names = [".".join(test.relative_to(ROOT).with_suffix("").parts) for test in new]
            found.append(names)
    return found


def run(module: str, index: int, tests: list[str], cpu_s: int) -> bool:
    """Whether these tests pass on the uncompiled package, within this processor time (0:
    unlimited)."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(ROOT)]),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "mutation",
    }
    with TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.mutation.child", module, str(index), str(cpu_s)]
        options = ["--exitfirst", "--temp-directory", f"{folder}/trial"]
        try:
            done = subprocess.run(
                [*words, *options, *tests],
                env={**environment, "HYPOTHESIS_STORAGE_DIRECTORY": f"{folder}/hypothesis"},
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_STALLED_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0


class Tests:
    """The tests for one file, in several runs: its own tests come first, since they find most
    mutants quickly. What a run may take is measured when it is first needed."""

    def __init__(self, path: Path, known_s: dict[str, int]) -> None:
        """``known_s``: measured limits by the arguments of a run, which files may share."""
        self._lots = tests_for(path)
        self._known_s = known_s

    def pass_on(self, module: str, number: int) -> bool:
        """Whether the tests pass despite this mutant."""
        return all(run(module, number, lot, _limit_s(lot, self._known_s)) for lot in self._lots)


def _limit_s(tests: list[str], known_s: dict[str, int]) -> int:
    """The processor time limit of these tests for a mutant, measured without a defect."""
    words = " ".join(tests)
    if words not in known_s:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not run("", 0, tests, 0):
            sys.exit(f"These tests fail without any defect: {words}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        known_s[words] = int(used_s * _FACTOR) + _SPARE_S
    return known_s[words]


def main() -> int:
    """Run the program; returns its exit status."""
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--aim", type=int, default=85)
    options = parser.parse_args()
    paths = files_of([path.resolve() for path in options.files])
    drawn = draw(paths, options.seed, options.mutants)
    if not drawn:
        sys.exit("These files have no place for a mutant.")
    known_s: dict[str, int] = {}
    tests = {one.path: Tests(one.path, known_s) for one in drawn}

    def survives(one: Drawn) -> bool:
        module = ".".join(one.path.relative_to(PACKAGE.parent).with_suffix("").parts)
        return tests[one.path].pass_on(module, one.number)

    survivors = 0
    pool = ThreadPoolExecutor(options.jobs)
    try:
        runs = {pool.submit(survives, one): one for one in drawn}
        for number, done in enumerate(as_completed(runs), 1):
            survivors += done.result()
            progress = f"{number} of {len(drawn)}, {survivors} survived"
            print(f"{progress}: {runs[done]}" if done.result() else progress, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    caught = len(drawn) - survivors
    print(f"Caught {caught} of {len(drawn)} ({100 * caught / len(drawn):.1f} %).")
    return 0 if 100 * caught >= options.aim * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
