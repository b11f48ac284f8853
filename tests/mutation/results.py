"""What became of mutants: a file with a line of JSON for each, and a table of it all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

CAUGHT: Final = "caught"
SURVIVED: Final = "survived"
EQUIVALENT: Final = "equivalent"
NOT_TRIED: Final = "not tried"
#: In the order of the columns.
OUTCOMES: Final = (CAUGHT, SURVIVED, EQUIVALENT, NOT_TRIED)


class Result(NamedTuple):
    """What became of one mutant."""

    file: str
    line: int
    before: str
    after: str
    number: int
    outcome: str
    #: The test that caught it, or why it was not tried or has no effect.
    why: str
    seconds: float

    @property
    def key(self) -> tuple[str, int, int, str]:
        """Tells mutants apart, as long as their file is the same."""
        return self.file, self.number, self.line, self.after

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.outcome}{why}: {self.file}:{self.line}\n    {self.before}\n    {self.after}"


def read(paths: Iterable[Path]) -> dict[tuple[str, int, int, str], Result]:
    """The results in these files; of several for one mutant, the last one."""
    found = {}
    for path in paths:
        if path.exists():
            for line in path.read_text().splitlines():
                result = Result(**json.loads(line))
                found[result.key] = result
    return found


def append(path: Path, result: Result) -> None:
    """Write one more result to the end of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(result._asdict()) + "\n")


def percentage(results: Iterable[Result]) -> float:
    """How many percent of those that were tried, and have an effect, were caught."""
    counts = Counter(one.outcome for one in results)
    tried = counts[CAUGHT] + counts[SURVIVED]
    return 100 * counts[CAUGHT] / tried if tried else 100.0


def table(results: Iterable[Result]) -> str:
    """A row for each package, and one for all of them."""
    packages: dict[str, list[Result]] = {}
    for result in results:
        first, *rest = result.file.split("/")
        packages.setdefault(first if rest else "(top)", []).append(result)
    lines = [f"{'':14}" + "".join(f"{name:>12}" for name in OUTCOMES) + f"{'caught %':>12}"]
    every = [result for found in packages.values() for result in found]
    for name, found in [*sorted(packages.items()), ("all", every)]:
        counts = Counter(one.outcome for one in found)
        numbers = "".join(f"{counts[outcome]:12}" for outcome in OUTCOMES)
        lines.append(f"{name:14}{numbers}{percentage(found):12.1f}")
    return "\n".join(lines)
