"""Counts the tests that trial ran: ``trial ... | python -m tests.tally <folder>`` shows trial's
output, saves its numbers and the failed tests in ``<folder>.tally``, and fails if a test failed.
Without a folder, it prints the failed tests, each with the end of its traceback, and one line with
the sum of all numbers."""

from __future__ import annotations

import json
import re
import sys
from glob import glob
from pathlib import Path
from typing import NamedTuple

_SUMMARY = re.compile(r"^(PASSED|FAILED)(?: \((.*)\))?$")
_RAN = re.compile(r"^Ran (\d+) tests")
_BLOCK = re.compile(r"^\[(FAIL|ERROR|UNEXPECTED SUCCESS|EXPECTED FAILURE|TODO)\]$")
_NAME = re.compile(r"^tests(\.\w+)+$")
#: Lines of a traceback that are shown again at the end.
_LINES_SHOWN = 12


class Tally(NamedTuple):
    """The numbers of passed, failed and skipped tests, and the failed ones, each with the end of
    its traceback."""

    passed: int
    failed: int
    skipped: int
    reasons: dict[str, list[str]]


def read() -> Tally:
    """Show trial's output; the tally of its last summary."""
    ran, verdict, in_block = 0, "", False
    counts: dict[str, str] = {}
    reasons: dict[str, list[str]] = {}
    block: list[str] = []
    for line in sys.stdin:
        sys.stdout.write(line)
        if _BLOCK.match(line.strip()):
            in_block, block = True, []
        elif in_block and _NAME.match(line.strip()):
            reasons[line.strip()] = block[-_LINES_SHOWN:]
        elif found := _RAN.match(line):
            ran = int(found[1])
        elif found := _SUMMARY.match(line.strip()):
            verdict = found[1]
            counts = dict(part.split("=") for part in (found[2] or "").split(", ") if part)
        elif line.strip():
            block.append(line.rstrip())
    sys.stdout.flush()
    # Only successes count as passed. Tests are skipped if a program is missing; an expected
    # failure proves nothing.
    passed, skipped = int(counts.get("successes", 0)), int(counts.get("skips", 0))
    failed = max(ran - passed - skipped, 0)
    if verdict != "PASSED" or not ran:
        failed = max(failed, 1)
    return Tally(passed, failed, skipped, reasons)


def main(words: list[str]) -> int:
    """Run the program; returns its exit status."""
    if words:
        tally = read()
        Path(f"{words[0]}.tally").write_text(json.dumps(tally))
        return 1 if tally.failed else 0
    kept = {
        Path(name).stem: Tally(*json.loads(Path(name).read_text()))
        for name in glob("build/*.tally")
    }
    for stage, tally in sorted(kept.items()):
        for name, reason in tally.reasons.items():
            print(f"failed in {stage}: {name}")
            print(*(f"    {line[:200]}" for line in reason), sep="\n")
    passed = sum(tally.passed for tally in kept.values())
    failed = sum(tally.failed for tally in kept.values())
    skipped = sum(tally.skipped for tally in kept.values())
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
