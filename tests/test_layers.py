"""Rules about imports between packages and about the size of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import disque_tx
from tests.rooms import ALLOWED, ROOMS

SOURCE = Path(disque_tx.__file__).parent
#: Modules that every package may use, because they import nothing of ``disque_tx``.
LEAVES = ("disque_tx.messages.limits",)
FILE_LINES_MAX = 350
FUNCTION_LINES_MAX = 60
POSITIONAL_MAX = 6

#: Imports that would make the state machine depend on its time or machine.
OUTSIDE = {"twisted", "time", "random", "socket", "os", "sys", "threading", "asyncio", "secrets"}
#: What would make a simulated world depend on the real one; of ``random``, only generators with a
#: seed of their own are used.
REAL = {"datetime", "io", "multiprocessing", "os", "pathlib", "secrets", "select", "socket", "sys"}
REAL |= {"subprocess", "tempfile", "threading", "time", "twisted", "uuid"}
#: Packages that no lower layer may use.
TOP = (["disque_tx", "services"], ["disque_tx", "cli"])
#: Programs that run simulations.
RUNS_WORLDS = {"sim/__main__.py", "sim/campaign.py"}
#: Entry points of processes.
NAMES_THE_REACTOR = {"services/tap.py", "cli/programs/server.py"}


def files(package: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Every source file of a package: its path in the package, and its syntax tree."""
    for path in sorted((SOURCE / package).rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), str(path))


def imported(name: str, tree: ast.Module) -> Iterator[str]:
    """The full names of all imports in a file, at any depth."""
    package = ["disque_tx", *name.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            yield from (f"{module}.{alias.name}" for alias in node.names)


def home(target: str) -> str:
    """The package that a module belongs to; a top-level module is its own package."""
    place, found = SOURCE, list[str]()
    for part in target.split(".")[1:]:
        if not (place / part).is_dir():
            return ".".join(found) or part
        place, found = place / part, [*found, part]
    return ".".join(found)


def packages_used() -> dict[str, set[str]]:
    """The packages from which each package imports anything, even if only types. Imports of an
    ``__init__`` or ``__main__`` from its own subpackages do not count."""
    used: dict[str, set[str]] = {}
    for name, tree in files():
        *folders, file = name.removesuffix(".py").split("/")
        if not folders and file == "__init__":
            continue
        package = ".".join(folders) or file
        for target in imported(name, tree):
            other = home(target) if target.startswith("disque_tx.") else package
            offered = file in ("__init__", "__main__") and other.startswith(f"{package}.")
            if other not in (package, "__version__") and not offered:
                used.setdefault(package, set()).add(other)
    return used


class LayerTests(SynchronousTestCase):
    """Imports go in one direction."""

    def test_packages(self) -> None:
        """Encoding, state and commands can be tested, simulated and compiled on their own, and
        protocols for clients use what those of third parties may use."""
        for name, tree in files():
            package = name.split("/")[0].removesuffix(".py")
            if package == "__init__":
                continue
            for target in imported(name, tree):
                parts = target.split(".")
                if target.rpartition(".")[0] in LEAVES:
                    continue
                if parts[0] == "disque_tx" and len(parts) > 1 and parts[1] != "__version__":
                    allowed = ALLOWED[package] | {package}
                    self.assertIn(parts[1], allowed, f"{name} imports {target}")

    def test_rooms(self) -> None:
        """Of a larger package, each folder can be understood and changed with only those that it
        may import."""
        for package, rooms in ROOMS.items():
            for name, tree in files(package.replace(".", "/")):
                *folders, file = name.removesuffix(".py").split("/")
                room = inside(package, ".".join(folders))
                if file in ("__init__", "__main__") and room == ".":
                    continue
                for target in imported(name, tree):
                    other = home(target) if target.startswith("disque_tx.") else ""
                    if not is_in(package, other) or (room == "." and "." not in rooms):
                        continue
                    allowed = {room, *rooms[room].split()}
                    self.assertIn(inside(package, other), allowed, f"{name} imports {target}")

    def test_rooms_stand_on_lower_ones(self) -> None:
        """The lists go from the ground up: each folder uses only those above which it stands."""
        for package, rooms in ROOMS.items():
            below = set[str]()
            for room, allowed in rooms.items():
                self.assertLessEqual(set(allowed.split()), below, f"{package}: {room}")
                below.add(room)

    def test_leaves(self) -> None:
        """A client that checks a number against its limit does not load the code of the server."""
        for leaf in LEAVES:
            name = leaf.removeprefix("disque_tx.").replace(".", "/") + ".py"
            found = [target.partition(".")[0] for target in self.imports_of(name)]
            self.assertEqual({"__future__", "typing"}, set(found), leaf)

    def test_no_outside(self) -> None:
        """The state machine has no clock, no randomness and no input or output of its own."""
        for package in ("wire", "core", "commands"):
            for name, tree in files(package):
                for target in imported(name, tree):
                    self.assertNotIn(target.split(".")[0], OUTSIDE, f"{name} imports {target}")

    def test_engine_runs_anywhere(self) -> None:
        """The engine, which the daemon and the simulator share, uses no reactor, clock, socket or
        file; of the operating system it uses only path names."""
        for name, tree in files("engine"):
            for target in imported(name, tree):
                outside = target.split(".")[0] in OUTSIDE and target != "os"
                self.assertFalse(outside, f"{name} imports {target}")
            used = {
                f"os.{node.attr}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "os"
            }
            self.assertLessEqual(used, {"os.path"}, name)

    def test_global_reactor(self) -> None:
        """Only entry points choose the global reactor."""
        for name, tree in files():
            if name in NAMES_THE_REACTOR:
                continue
            for target in imported(name, tree):
                self.assertFalse(
                    target.startswith("twisted.internet.reactor"), f"{name} names the reactor"
                )

    def test_simulated_world(self) -> None:
        """A seed determines a run: nothing in a simulation comes from the real world."""
        for name, tree in files("sim"):
            for target in imported(name, tree):
                self.assertNotIn(target.split(".")[:2], TOP, f"{name} imports {target}")
                if name in RUNS_WORLDS:
                    continue
                self.assertNotIn(target.split(".")[0], REAL, f"{name} imports {target}")
                if target.split(".")[0] == "random":
                    self.assertEqual("random.Random", target, f"{name} imports {target}")
            calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            opened = [call for call in calls if isinstance(call, ast.Name) and call.id == "open"]
            self.assertTrue(name in RUNS_WORLDS or not opened, f"{name} opens a file")

    def test_no_circles(self) -> None:
        """Every package, and every folder in one, can be understood and changed without those that
        depend on it."""
        used = packages_used()
        others = {other for found in used.values() for other in found}
        self.assertEqual([], circles({other: set[str]() for other in others} | used))

    def test_rules_look_at_files(self) -> None:
        """The rules above refer to existing files."""
        for package in ("wire", "core", "commands", "engine", "services", "cli", "sim"):
            self.assertGreater(len(list(files(package))), 2, package)
        packages = {path.name.removesuffix(".py") for path in SOURCE.glob("[a-z]*")}
        self.assertEqual(packages - {"py.typed"}, ALLOWED.keys())
        for package, rooms in ROOMS.items():
            places = {name.rpartition("/")[0] for name, _ in files(package.replace(".", "/"))}
            folders = {inside(package, place.replace("/", ".")) for place in places}
            self.assertEqual(folders - {"."}, rooms.keys() - {"."}, package)
        self.assertIn("disque_tx.errors.PeerError", set(self.imports_of("wire/resp/requests.py")))
        self.assertIn("twisted.internet.reactor", set(self.imports_of("cli/programs/server.py")))

    def imports_of(self, wanted: str) -> Iterator[str]:
        for name, tree in files():
            if name == wanted:
                yield from imported(name, tree)


def is_in(package: str, other: str) -> bool:
    """Whether a package is this one, or a folder in it."""
    return f"{other}.".startswith(f"{package}.")


def inside(package: str, other: str) -> str:
    """The folder of a package that another one is, ``.`` for the package itself."""
    return other[len(package) + 1 :] or "."


class CircleTests(SynchronousTestCase):
    """No two modules depend on each other."""

    def test_no_circle(self) -> None:
        """Each module can be read, tested and replaced without those that import it, even if only
        for types."""
        self.assertEqual([], [sorted(circle) for circle in circles(modules())])

    def test_circles_are_found(self) -> None:
        """The check above would detect a circle."""
        self.assertEqual([{"a", "b"}], circles({"a": {"b"}, "b": {"a", "c"}, "c": set()}))


def modules() -> dict[str, set[str]]:
    """Every module of the package, and the modules it imports."""
    graph: dict[str, set[str]] = {}
    trees = {}
    for name, tree in files():
        dotted = "disque_tx." + name.removesuffix(".py").replace("/", ".")
        trees[dotted.removesuffix(".__init__")] = (name, tree)
    for dotted, (name, tree) in trees.items():
        graph[dotted] = set()
        for target in imported(name, tree):
            found = target if target in trees else target.rpartition(".")[0]
            if found in trees and found != dotted:
                graph[dotted].add(found)
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest sets of nodes that all lead to each other, without sets of one."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for name in graph[ahead.pop()] - seen:
                seen.add(name)
                ahead.append(name)
        return seen

    reach = {name: reached(name) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reach[name] if name in reach[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


class SizeTests(SynchronousTestCase):
    """Modules and functions are short enough to read."""

    def test_files(self) -> None:
        """No file is longer than 350 lines."""
        for path in SOURCE.rglob("*.py"):
            lines = len(path.read_text().splitlines())
            self.assertLessEqual(lines, FILE_LINES_MAX, path.relative_to(SOURCE))

    def test_functions(self) -> None:
        """No function is longer than 60 lines."""
        for name, tree in files():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    self.assertLessEqual(lines, FUNCTION_LINES_MAX, f"{name}: {node.name}")

    def test_arguments(self) -> None:
        """With more than six arguments, calls are readable only if the rest are named. Functions
        that click calls are exempt, because it passes options by name."""
        found = []
        for name, tree in files():
            for scope in ast.walk(tree):
                if not isinstance(scope, ast.Module | ast.ClassDef):
                    continue
                where = scope.name if isinstance(scope, ast.ClassDef) else ""
                for node in scope.body:
                    if isinstance(node, ast.FunctionDef) and not is_program(node):
                        names = {argument.arg for argument in node.args.args} - {"self", "cls"}
                        if len(names) > POSITIONAL_MAX:
                            found.append(f"{name} {where or node.name}")
        self.assertEqual([], found)


def is_program(function: ast.FunctionDef) -> bool:
    """Whether click calls it."""
    return any("click." in ast.unparse(decorator) for decorator in function.decorator_list)
