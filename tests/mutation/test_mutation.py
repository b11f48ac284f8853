"""The mutation tester: the mutants that it makes, and whether it reports correctly which are
caught."""

from __future__ import annotations

import ast

from twisted.trial.unittest import SynchronousTestCase

from tests.mutation.__main__ import PACKAGE, draw, equivalent, files_of, run, tests_for
from tests.mutation.operators import count, planted


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
        self.assertEqual({"continue"}, self.changes("while x: break") - {"while not x:"})

    def test_arguments(self) -> None:
        """Two arguments are swapped, unless that has no effect."""
        self.assertEqual({"x = f(b, a, c)"}, self.changes("x = f(a, b, c)"))
        self.assertEqual(set(), self.changes("x = cast(a, b)"))

    def test_order(self) -> None:
        """Two effects change places: a crash between them would lose what the first one saves."""
        self.assertIn("g()", self.changes("f(); g()"))
        source = "def f():\n    a.b = c\n    del d[e]\n"
        bodies = [ast.unparse(planted(source, index)[0]) for index in range(count(source))]
        self.assertIn("def f():\n    del d[e]\n    a.b = c", bodies)
        self.assertNotIn("x = a", self.changes("x = a; f()"))

    def test_which_one(self) -> None:
        """Another one of several is chosen, or the wrong end of a list is cut off."""
        self.assertEqual({"x = max(a, b)"}, self.changes("x = min(a, b)"))
        self.assertEqual({"x = q.pop()"}, self.changes("x = q.popleft()"))
        self.assertEqual({"x = a[-n:]"}, self.changes("x = a[:n]"))
        self.assertIn("x = a[-1]", self.changes("x = a[0]"))

    def test_boundaries(self) -> None:
        """What is compared with a number is counted as equal when it is less."""
        self.assertIn("x = a <= 1", self.changes("x = a == 1"))

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

    path = PACKAGE / "core" / "addresses.py"

    def test_sample(self) -> None:
        """A seed always gives the same sample, so that others can examine the survivors."""
        every = draw([self.path], 1, 10_000)
        self.assertEqual(len(every), len({one.number for one in every}))
        self.assertEqual(every[:5], draw([self.path], 1, 5))
        self.assertNotEqual(every[:5], draw([self.path], 2, 5))

    def test_equivalent(self) -> None:
        """Every listed equivalent mutant exists: an outdated entry could hide others."""
        for name, before, after in equivalent():
            self.assertIn((before, after), pairs((PACKAGE / name).read_text()), name)

    def test_own_tests_first(self) -> None:
        """Most mutants are caught by the tests of their own module, within a second."""
        own, beside, others = tests_for(self.path)
        self.assertEqual(["tests.core.nodes.test_addresses"], own)
        self.assertIn("tests.core.delivery.test_acks", beside)
        self.assertIn("tests.core.unique.test_keys", others)
        self.assertIn("tests.stateful.test_node", others)
        every = [*own, *beside, *others]
        self.assertEqual(len(every), len(set(every)))

    def test_all_packages(self) -> None:
        """Every package has files with mutants, and tests for each of them."""
        paths = files_of([PACKAGE])
        packages = {path.relative_to(PACKAGE).parts[0] for path in paths}
        for name in ("client", "integrations", "protocols", "spark", "worker"):
            self.assertIn(name, packages)
        self.assertNotIn("sim", packages)
        missing = [path for path in paths if not tests_for(path) and count(path.read_text())]
        self.assertEqual([], missing)

    def test_caught_or_not(self) -> None:
        """A mutant makes the tests fail, the original passes, and the file is not changed."""
        before = self.path.read_text()
        first = tests_for(self.path)[0]
        module = "disque_tx.core.nodes.addresses"
        wrong = next(o for o in draw([self.path], 1, 999) if o.mutant.after == "return None")
        self.assertTrue(run("", 0, first, 0))
        self.assertFalse(run(module, wrong.number, first, 60))
        self.assertTrue(run(module, wrong.number, ["tests.config.test_units"], 60))
        self.assertEqual(before, self.path.read_text())
