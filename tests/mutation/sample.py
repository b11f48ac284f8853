"""Which mutants are tried: a random sample, without those that have no effect."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.mutation.operators import Mutant, count, planted

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "disque_tx"
#: Folders of files that are not tested here.
_LEFT_OUT: Final = {"sim"}


class Drawn(NamedTuple):
    """One mutant of a file."""

    path: Path
    number: int
    mutant: Mutant

    @property
    def file(self) -> str:
        """The file, relative to the package."""
        return str(self.path.relative_to(PACKAGE))

    @property
    def module(self) -> str:
        """The name under which the file is imported."""
        return ".".join(self.path.relative_to(PACKAGE.parent).with_suffix("").parts)


def equivalent() -> dict[tuple[str, str, str], str]:
    """Mutants without an observable effect: file, before and after; and why there is none."""
    lines = (Path(__file__).parent / "equivalent.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {(file, before, after): reason for file, before, after, reason in rows}


def draw(paths: list[Path], seed: int, limit: int) -> list[Drawn]:
    """A random sample of the mutants of these files."""
    sources = {path: path.read_text() for path in paths}
    every = [(path, index) for path in paths for index in range(count(sources[path]))]
    Random(seed).shuffle(every)
    return [Drawn(path, index, planted(sources[path], index)[1]) for path, index in every[:limit]]


def drawn_again(path: Path, number: int) -> Drawn | None:
    """A mutant that was drawn before; ``None`` if the file does not have so many any more."""
    source = path.read_text() if path.exists() else ""
    return Drawn(path, number, planted(source, number)[1]) if number < count(source) else None


def files_of(paths: list[Path]) -> list[Path]:
    """These files, and those in these folders that are tested here."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.py"))
            found += [one for one in inside if not _LEFT_OUT.intersection(packages_of(one))]
        else:
            found.append(path)
    return found


def packages_of(path: Path) -> tuple[str, ...]:
    """The packages that a file is in, from the outermost on."""
    return path.relative_to(PACKAGE).parent.parts
