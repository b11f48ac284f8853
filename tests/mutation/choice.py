"""Which tests are run on a mutant: those closest to its file first, since they find most.

The tests of ``src/disque_tx/a/b/c.py`` are

1. its own, ``tests/a/b/test_c.py``,
2. those that import it, wherever they are,
3. all others of ``tests/a/b``, and of the folders that it lies in below ``tests/a``,
4. those of ``tests/a`` and of the folders in :data:`_MORE` that import what uses it: the
   modules that import it, or import such a module of its own package.

Each lot is run only if those before it noticed nothing. Long ones are divided: first come tests
that lie near the file, and those that are about little else. What a test imports includes what the
modules that tests share import.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutation.sample import PACKAGE, ROOT, packages_of

#: Other test folders that exercise a package, in addition to its own.
_MORE: Final = {
    "core": ["commands", "stateful"],
    "commands": ["core", "stateful"],
    "engine": ["services"],
    "wire": ["commands", "core", "engine"],
}
#: Packages whose tests are those beside a file, for all together start Spark many times.
_BESIDE_ONLY: Final = {"spark"}
#: Test folders that are no unit tests.
_OTHERS: Final = {"acceptance", "fuzz", "mutants", "mutation", "sim"}
_TESTS: Final = ROOT / "tests"
#: Test modules in one lot: all of them end in the time of a lot.
_LOT_MAX: Final = 16


def tests_for(path: Path) -> list[list[str]]:
    """The test modules for a file, in lots without those of earlier ones. No lot is empty."""
    packages = packages_of(path)
    beside = _TESTS.joinpath(*packages)
    own = beside / f"test_{path.stem}.py"
    while not any(beside.glob("test_*.py")):
        beside = beside.parent
    module = _module(path, PACKAGE.parent)
    importing = [test for test in _unit_tests() if module in _known_to(test)]
    lots = [[own], importing, sorted(beside.glob("test_*.py"))]
    if packages and packages[0] not in _BESIDE_ONLY:
        users = _users(module)
        below = _TESTS / packages[0]
        around = [folder for folder in beside.parents if below in folder.parents]
        lots += [sorted(folder.glob("test_*.py")) for folder in around]
        folders = {packages[0], *_MORE.get(packages[0], ())}
        near = [test for test in _unit_tests() if test.relative_to(_TESTS).parts[0] in folders]
        lots.append([test for test in near if users & _known_to(test)])
    seen: set[Path] = set()
    found: list[list[str]] = []
    for lot in lots:
        new = [test for test in lot if test.exists() and test not in seen]
        seen.update(new)
        new.sort(key=lambda test: (-_nearness(test, packages), len(_known_to(test))))
        names = [_module(test, ROOT) for test in new]
        found += [names[at : at + _LOT_MAX] for at in range(0, len(names), _LOT_MAX)]
    return found


def _nearness(test: Path, packages: tuple[str, ...]) -> int:
    """How many folders a test has in common with a file."""
    parts = test.relative_to(_TESTS).parts
    return next(
        (at for at, (a, b) in enumerate(zip(parts, packages, strict=False)) if a != b),
        len(packages),
    )


def _users(module: str) -> set[str]:
    """The modules that import this one, or import one in its package that is a user of it."""
    package = module.rpartition(".")[0]
    found: set[str] = set()
    waiting = [module]
    while waiting:
        used = waiting.pop()
        users = {other for other, imported in _sources().items() if used in imported} - found
        found |= users
        waiting += [user for user in users if user.rpartition(".")[0] == package]
    return found


@cache
def _unit_tests() -> list[Path]:
    tests = sorted(_TESTS.rglob("test_*.py"))
    return [test for test in tests if test.relative_to(_TESTS).parts[0] not in _OTHERS]


@cache
def _sources() -> dict[str, frozenset[str]]:
    """What each module of the package imports."""
    return {_module(path, PACKAGE.parent): _imported(path) for path in PACKAGE.rglob("*.py")}


@cache
def _known_to(test: Path) -> frozenset[str]:
    """What a file of tests imports, and what the other files of tests that it imports do."""
    found: set[str] = set()
    waiting, seen = [test], {test}
    while waiting:
        names = _imported(waiting.pop())
        found.update(names)
        for name in names:
            shared = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("tests.") and shared not in seen and shared.exists():
                seen.add(shared)
                waiting.append(shared)
    return frozenset(found)


@cache
def _imported(path: Path) -> frozenset[str]:
    """What a file imports: modules, and names in them, which could be modules."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{one.name}" for one in node.names)
    return frozenset(names | {_exported()[name] for name in names if name in _exported()})


@cache
def _exported() -> dict[str, str]:
    """Names that a package passes on, each with the module that it comes from."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("__init__.py"):
        package = _module(path, PACKAGE.parent)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {f"{package}.{one.asname or one.name}": node.module for one in node.names}
    return found


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
