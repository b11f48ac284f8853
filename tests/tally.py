"""Counts of what trial ran: ``trial ... | python -m tests.tally <folder>`` shows trial's output,
keeps its numbers in ``<folder>.tally`` and fails when a test failed; without a folder, all numbers
are added up and said in one line."""

from __future__ import annotations

import json
import re
import sys
from glob import glob
from pathlib import Path

_SUMMARY = re.compile(r"^(PASSED|FAILED)(?: \((.*)\))?$")
_RAN = re.compile(r"^Ran (\d+) tests")


def read() -> tuple[int, int]:
    """Show what trial prints; how many tests passed and failed, by its last summary."""
    ran, verdict = 0, ""
    counts: dict[str, str] = {}
    for line in sys.stdin:
        sys.stdout.write(line)
        if found := _RAN.match(line):
            ran = int(found[1])
        elif found := _SUMMARY.match(line.strip()):
            verdict = found[1]
            counts = dict(part.split("=") for part in (found[2] or "").split(", ") if part)
    sys.stdout.flush()
    # A skipped or an expected failure is no proof of anything: only successes pass.
    passed = int(counts.get("successes", 0))
    failed = max(ran - passed, 0)
    if verdict != "PASSED" or not ran:
        failed = max(failed, 1)
    return passed, failed


def main(words: list[str]) -> int:
    """Run the program; returns its exit status."""
    if words:
        passed, failed = read()
        Path(f"{words[0]}.tally").write_text(json.dumps([passed, failed]))
        return 1 if failed else 0
    passed = failed = 0
    for name in glob("build/*.tally"):
        counts = json.loads(Path(name).read_text())
        passed, failed = passed + counts[0], failed + counts[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
