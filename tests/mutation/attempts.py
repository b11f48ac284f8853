"""One mutant after another: which tests it meets, and what becomes of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.mutation.child import Tests, start
from tests.mutation.choice import tests_for
from tests.mutation.results import CAUGHT, EQUIVALENT, NOT_TRIED, SURVIVED, Result
from tests.mutation.sample import Drawn, equivalent

#: The processor time that one lot of tests may take.
LIMIT_S: Final = 120
#: A test that is run alone, to see whether it passes without a defect.
_ALONE_S: Final = 30


class Outcome(NamedTuple):
    """How a lot of tests ended."""

    passed: bool
    #: The first test that failed; empty if none did, or if they were ended before.
    failed: str
    seconds: float


def run(module: str, number: int, tests: Tests) -> Outcome:
    """Run tests on a mutant, or, if the module is empty, without a defect."""
    begun_s = time.monotonic()
    with TemporaryDirectory() as folder:
        pid = start(module, number, tests, folder)
        try:
            status = os.waitpid(pid, 0)[1]
        finally:
            _end_group(pid)
        failed = Path(folder, "failed")
        name = failed.read_text() if failed.exists() else ""
    passed = os.waitstatus_to_exitcode(status) == 0
    return Outcome(passed, name, time.monotonic() - begun_s)


def _end_group(pid: int) -> None:
    """End the processes that tests left behind."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Trials:
    """Tries mutants, and remembers which tests pass without a defect."""

    def __init__(self) -> None:
        self._sound: dict[Tests, Outcome] = {}
        self._equivalent = equivalent()

    def attempt(self, drawn: Drawn) -> Result:
        """What becomes of this mutant."""
        begun_s = time.monotonic()
        outcome, why = self._outcome(drawn)
        seconds = round(time.monotonic() - begun_s, 1)
        line, before, after = drawn.mutant
        return Result(drawn.file, line, before, after, drawn.number, outcome, why, seconds)

    def _outcome(self, drawn: Drawn) -> tuple[str, str]:
        key = (drawn.file, drawn.mutant.before, drawn.mutant.after)
        if key in self._equivalent:
            return EQUIVALENT, self._equivalent[key]
        lots = tests_for(drawn.path)
        for lot in lots:
            found = self.lot(drawn.module, drawn.number, Tests(tuple(lot), LIMIT_S))
            if found is not None:
                return found
        return (SURVIVED, "") if lots else (NOT_TRIED, "there are no tests for this file")

    def lot(self, module: str, number: int, tests: Tests) -> tuple[str, str] | None:
        """What these tests say of the mutant; ``None`` if they pass. That a test fails says
        something only if it passes without the defect."""
        outcome = run(module, number, tests)
        if outcome.passed:
            return None
        if outcome.failed:
            if self._without(Tests((outcome.failed,), _ALONE_S)).passed:
                return CAUGHT, outcome.failed
            return NOT_TRIED, f"fails without any defect: {outcome.failed}"
        words = " ".join(tests.names)
        sound = self._without(tests)
        if not sound.passed:
            return NOT_TRIED, f"do not end without any defect: {words}"
        if 3 * sound.seconds > tests.limit_s:
            return NOT_TRIED, f"take {sound.seconds:.0f} s without any defect: {words}"
        return CAUGHT, "did not end"

    def _without(self, tests: Tests) -> Outcome:
        """How these tests end without a defect."""
        if tests not in self._sound:
            self._sound[tests] = run("", 0, tests)
        return self._sound[tests]
