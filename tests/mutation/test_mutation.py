"""The mutation tester: the mutants that it makes, and whether it reports correctly which are
caught."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.mutation.choice import tests_for
from tests.mutation.operators import count, numbers_of, planted
from tests.mutation.results import Result, append, percentage, read, table
from tests.mutation.sample import PACKAGE, ROOT, draw, equivalent, files_of


def pairs(source: str) -> list[tuple[str, str]]:
    """The change that each mutant of a program makes."""
    every = [planted(source, index)[1] for index in range(count(source))]
    return [(mutant.before, mutant.after) for mutant in every]


class OperatorTests(SynchronousTestCase):
    """The possible defects."""

    def changes(self, statement: str) -> set[str]:
        """The mutants of one statement in a function."""
        return {after for _, after in pairs(f"def f():\n    {statement}")}

    def test_comparisons(self) -> None:
        """A boundary is off by one, or a condition is inverted."""
        self.assertEqual({"x = a <= b"}, self.changes("x = a < b"))
        self.assertEqual({"x = a is not b"}, self.changes("x = a is b"))

    def test_arithmetic(self) -> None:
        """A wrong operator, also in an augmented assignment, which may also be missing."""
        self.assertEqual({"x = a - b"}, self.changes("x = a + b"))
        self.assertEqual({"x -= a", "pass"}, self.changes("x += a"))

    def test_conditions(self) -> None:
        """A condition is dropped or negated; a comparison is negated only once."""
        self.assertEqual({"if not (a and b):", "if a or b:"}, self.changes("if a and b: x"))
        self.assertEqual({"if a != b:"}, self.changes("if a == b: x"))
        self.assertEqual({"x = a if not b else c"}, self.changes("x = a if b else c"))

    def test_constants(self) -> None:
        """A number is off by one, or a flag is inverted."""
        self.assertEqual({"x = 8", "x = 6"}, self.changes("x = 7"))
        self.assertEqual({"x = False"}, self.changes("x = True"))

    def test_statements(self) -> None:
        """A statement is missing: a call, an assignment, an error, a value, the end of a loop."""
        self.assertEqual({"pass"}, self.changes("f()"))
        self.assertEqual({"pass"}, self.changes("a.b = c"))
        self.assertEqual({"pass"}, self.changes("raise error"))
        self.assertEqual({"return None"}, self.changes("return x"))
        self.assertEqual({"return True"}, self.changes("return False"))
        self.assertEqual({"continue"}, self.changes("while x: break") - {"while not x:"})

    def test_arguments(self) -> None:
        """Two arguments are swapped, unless that has no effect."""
        self.assertEqual({"x = f(b, a, c)"}, self.changes("x = f(a, b, c)"))
        for symmetric in ("cast", "hmac.compare_digest"):
            self.assertEqual(set(), self.changes(f"x = {symmetric}(a, b)"))

    def test_order(self) -> None:
        """Two effects change places: a crash between them would lose what the first one saves."""
        self.assertIn("g()", self.changes("f(); g()"))
        source = "def f():\n    a.b = c\n    del d[e]\n"
        bodies = [ast.unparse(planted(source, index)[0]) for index in range(count(source))]
        self.assertIn("def f():\n    del d[e]\n    a.b = c", bodies)
        self.assertNotIn("x = a", self.changes("x = a; f()"))
        for ordered in ("a.b = c; d.e = a.b", "a.b += 1; a.b.c = d", "a.b = f(); d.e = c"):
            self.assertIn(ordered.partition("; ")[2], self.changes(ordered))
        for either in ("a.b = c; d.e = c", "a.b = max(b, c); d.e = c"):
            self.assertNotIn("d.e = c", self.changes(either))

    def test_which_one(self) -> None:
        """Another one of several is chosen, or the wrong end of a list is cut off."""
        self.assertEqual({"x = max(a, b)"}, self.changes("x = min(a, b)"))
        self.assertEqual({"x = q.pop()"}, self.changes("x = q.popleft()"))
        self.assertEqual({"x = a[-n:]"}, self.changes("x = a[:n]"))
        self.assertIn("x = a[-1]", self.changes("x = a[0]"))

    def test_boundaries(self) -> None:
        """What is compared with a number is counted as equal when it is less."""
        self.assertIn("x = a <= 1", self.changes("x = a == 1"))
        self.assertNotIn("x = len(a) <= 0", self.changes("x = len(a) == 0"))

    def test_old_state(self) -> None:
        """What a loop sets back for its next round keeps its value."""
        source = "def f():\n    for x in y:\n        a = []\n        if b:\n            c = 0\n"
        changes = pairs(source)
        self.assertIn(("a = []", "pass"), changes)
        self.assertIn(("c = 0", "pass"), changes)

    def test_one_forgotten(self) -> None:
        """One of several holders is not told."""
        self.assertEqual({"for x in list(y)[:-1]:"}, self.changes("for x in y: z"))

    def test_clean_up(self) -> None:
        """What is to happen in every case does not, or what is used up stays."""
        source = "def f():\n    try:\n        x\n    finally:\n        y = z\n"
        self.assertIn(("y = z", "pass"), pairs(source))
        self.assertIn("x = d.get(a, b)", self.changes("x = d.pop(a, b)"))

    def test_left_alone(self) -> None:
        """Code that has no effect, or without which the program cannot run, has no mutants."""
        source = 'def __init__(self, a: int = 0) -> Literal[1]:\n    "2"\n    self.a = a\n'
        after = [f"def __init__(self, a: int={wrong}) -> Literal[1]:" for wrong in (1, -1)]
        self.assertEqual(after, [mutant for _, mutant in pairs(source)])
        self.assertEqual([], pairs("from a import b\nassert b == 1\n"))

    def test_line(self) -> None:
        """The line of a surviving mutant is that of its statement, so that it can be found."""
        source = "def f():\n    a = b\n    return b\n"
        tree, mutant = planted(source, 0)
        self.assertEqual((3, "return b", "return None"), mutant)
        self.assertEqual("def f():\n    a = b\n    return None", ast.unparse(tree))

    def test_no_more(self) -> None:
        """The number of mutants equals the count."""
        with self.assertRaises(IndexError):
            planted("x = 1", count("x = 1"))


class RunTests(SynchronousTestCase):
    """Samples, and tests on a mutant in its own process."""

    path = PACKAGE / "core" / "nodes" / "addresses.py"

    def test_sample(self) -> None:
        """A seed always gives the same sample, so that others can examine the survivors."""
        every = draw([self.path], 1, 10_000)
        self.assertEqual(len(every), len({one.number for one in every}))
        self.assertEqual(every[:5], draw([self.path], 1, 5))
        self.assertNotEqual(every[:5], draw([self.path], 2, 5))

    def test_equivalent(self) -> None:
        """Every listed equivalent mutant exists: an outdated entry could hide others."""
        for name, before, after in equivalent():
            source = (PACKAGE / name).read_text()
            numbers = numbers_of(source, before)
            self.assertIn(after, [planted(source, at)[1].after for at in numbers], (name, before))

    def test_own_tests_first(self) -> None:
        """Most mutants are caught by the tests of their own module, within a second."""
        own, *lots = tests_for(self.path)
        self.assertEqual(["tests.core.nodes.test_addresses"], own)
        every = [test for lot in lots for test in lot]
        beside = every.index("tests.core.nodes.test_membership")
        for other in ("core.delivery.test_acks", "core.unique.test_keys", "stateful.test_node"):
            self.assertLess(beside, every.index(f"tests.{other}"))
        self.assertEqual(len(every), len(set(every)))
        self.assertLessEqual(max(map(len, lots)), 16)

    def test_importing_tests(self) -> None:
        """Tests that import a module are run on its mutants, wherever they are; those that import
        what uses it; and those of the folders around its own."""
        self.assertIn("tests.text.test_globs", tests_for(PACKAGE / "text" / "globs.py")[0])
        for path, test in (
            ("messages/records.py", "tests.wire.bus.test_parser"),
            ("core/unique/keeper.py", "tests.core.delivery.test_acks"),
            ("cli/verbs/queues/wait.py", "tests.cli.verbs.test_said"),
        ):
            self.assertIn(test, [one for lot in tests_for(PACKAGE / path) for one in lot])

    def test_exported(self) -> None:
        """So are tests that import a class from the package that passes it on: most tests of
        workers do."""
        every = [test for lot in tests_for(PACKAGE / "worker/running/running.py") for test in lot]
        self.assertIn("tests.worker.test_service", every)
        self.assertNotIn("tests.client.tx.test_session", every)

    def test_users_only(self) -> None:
        """Tests that have nothing to do with a module are not run on its mutants, of which each
        may take seconds only."""
        every = [
            test for lot in tests_for(PACKAGE / "wire" / "files" / "queued.py") for test in lot
        ]
        self.assertIn("tests.engine.aof.test_queued", every)
        self.assertNotIn("tests.commands.server.test_cluster", every)

    def test_all_packages(self) -> None:
        """Every package has files with mutants, and tests for each of them."""
        paths = files_of([PACKAGE])
        packages = {path.relative_to(PACKAGE).parts[0] for path in paths}
        for name in ("client", "integrations", "protocols", "spark", "worker"):
            self.assertIn(name, packages)
        self.assertNotIn("sim", packages)
        missing = [path for path in paths if not tests_for(path) and count(path.read_text())]
        self.assertEqual([], missing)


class ResultTests(SynchronousTestCase):
    """What a run has found, in files and in a table."""

    caught = Result("core/a.py", 1, "x = 1", "x = 2", 0, "caught", "tests.core.test_a", 0.5)
    survived = Result("core/a.py", 2, "y = 1", "y = 2", 1, "survived", "", 0.5)

    def test_last_one_counts(self) -> None:
        """A survivor that a new test catches counts as caught, without trying all others again."""
        path = Path(self.mktemp(), "results")
        append(path, self.caught)
        append(path, self.survived)
        self.assertEqual(50.0, percentage(read([path]).values()))
        append(path, self.survived._replace(outcome="caught"))
        self.assertEqual(2, len(read([path])))
        self.assertEqual(100.0, percentage(read([path]).values()))

    def test_several_files(self) -> None:
        """Runs on several machines are counted as one; a run that has not begun is none."""
        folder = Path(self.mktemp())
        append(folder / "one", self.caught)
        append(folder / "two", self.survived)
        found = read([folder / "one", folder / "two", folder / "three"])
        self.assertEqual([self.caught, self.survived], list(found.values()))

    def test_without_effect(self) -> None:
        """Mutants without an effect, and those that were not tried, are listed and do not count."""
        others = [self.survived._replace(outcome=name) for name in ("equivalent", "not tried")]
        self.assertEqual(100.0, percentage([self.caught, *others]))
        row = table([self.caught, self.survived, *others]).splitlines()[1]
        self.assertEqual(["core", "1", "1", "1", "1", "50.0"], row.split())


#: Tries some tests on some mutant, in a process that has not imported the package.
_TRY = """
import json, sys
from tests.mutation.attempts import Trials
from tests.mutation.child import Tests, warm
warm()
trials = Trials()
for module, number, tests, limit_s in json.loads(sys.argv[1]):
    print(json.dumps(trials.lot(module, number, Tests(tuple(tests), limit_s))))
"""
#: A folder of tests that no mutant can pass.
_BROKEN = """
import time
from twisted.trial.unittest import SynchronousTestCase

class BrokenTests(SynchronousTestCase):
    def test_fails(self):
        self.fail("always")

    def test_does_not_end(self):
        while True:
            pass
"""


class AttemptTests(SynchronousTestCase):
    """Tests on a mutant, in a process of their own."""

    path = PACKAGE / "core" / "nodes" / "addresses.py"

    def tried(self, *lots: tuple[str, int, list[str], int], path: str = "") -> list[object]:
        """What becomes of mutants: module, number, tests and their processor time in seconds for
        each."""
        places = [str(PACKAGE.parent), str(ROOT), path]
        done = subprocess.run(
            [sys.executable, "-c", _TRY, json.dumps(lots)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
            capture_output=True,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_caught_or_not(self) -> None:
        """A mutant makes a test fail, the original passes, and the file is not changed."""
        before = self.path.read_text()
        own = tests_for(self.path)[0]
        module = "disque_tx.core.nodes.addresses"
        wrong = next(o for o in draw([self.path], 1, 999) if o.mutant.after == "return None")
        original, caught, other = self.tried(
            ("", 0, own, 60),
            (module, wrong.number, own, 60),
            (module, wrong.number, ["tests.config.test_units"], 60),
        )
        self.assertEqual([None, None], [original, other])
        assert isinstance(caught, list)
        self.assertEqual("caught", caught[0])
        self.assertTrue(caught[1].startswith("tests.core.nodes.test_addresses."), caught)
        self.assertEqual(before, self.path.read_text())

    def test_broken_tests(self) -> None:
        """Tests that fail or hang by themselves say nothing about a mutant, and do not end the
        run: it is listed as not tried, with the reason."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "broken.py").write_text(_BROKEN)
        module = "disque_tx.core.nodes.addresses"
        fails, hangs, missing = self.tried(
            (module, 0, ["broken.BrokenTests.test_fails"], 60),
            (module, 0, ["broken.BrokenTests.test_does_not_end"], 1),
            (module, 0, ["absent"], 60),
            path=str(folder.absolute()),
        )
        name = "broken.BrokenTests.test_fails"
        self.assertEqual(["not tried", f"fails without any defect: {name}"], fails)
        name = "broken.BrokenTests.test_does_not_end"
        self.assertEqual(["not tried", f"do not end without any defect: {name}"], hangs)
        self.assertEqual(["not tried", "fails without any defect: absent"], missing)


class ProgramTests(SynchronousTestCase):
    """The program itself."""

    def test_continued(self) -> None:
        """A run that ended early is continued where it was, and survivors are tried again alone."""
        results = Path(self.mktemp()).absolute()
        words = ["src/disque_tx/core/nodes/addresses.py", "--aim", "0", "--results", str(results)]
        self.run_program(*words, "--mutants", "2")
        first = results.read_text().splitlines()
        self.run_program(*words, "--mutants", "4")
        self.assertEqual(first, results.read_text().splitlines()[:2])
        self.assertEqual(4, len(read([results])))
        append(results, next(iter(read([results]).values()))._replace(outcome="survived"))
        shown = self.run_program("--again", "--aim", "0", "--results", str(results))
        self.assertEqual(6, len(results.read_text().splitlines()))
        self.assertIn("1 of 1, ", shown)

    def test_too_few_caught(self) -> None:
        """A run that catches less than asked for fails, so that nobody has to read its table."""
        results = Path(self.mktemp()).absolute()
        append(results, ResultTests.survived)
        words = ["src/disque_tx/errors.py", "--mutants", "0", "--results", str(results)]
        self.run_program(*words, "--aim", "0")
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_program(*words, "--aim", "1")

    def run_program(self, *words: str) -> str:
        """What the program prints; raises an error if its exit status is not 0."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.mutation", *words],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout
