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


def read() -> tuple[int, int, int]:
    """Show what trial prints; how many tests passed, failed, were skipped, by its last summary."""
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
    # Only successes pass. Skipped is what needs a program that is not there; an expected failure
    # is no proof of anything.
    passed, skipped = int(counts.get("successes", 0)), int(counts.get("skips", 0))
    failed = max(ran - passed - skipped, 0)
    if verdict != "PASSED" or not ran:
        failed = max(failed, 1)
    return passed, failed, skipped


def main(words: list[str]) -> int:
    """Run the program; returns its exit status."""
    if words:
        counts = read()
        Path(f"{words[0]}.tally").write_text(json.dumps(counts))
        return 1 if counts[1] else 0
    kept = [json.loads(Path(name).read_text()) for name in glob("build/*.tally")]
    passed, failed, skipped = (sum(counts[at] for counts in kept) for at in range(3))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
