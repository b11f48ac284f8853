"""What mypyc needs of the sources that it compiles, found without compiling them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = _ROOT / "src" / "disque_tx"


def compiled_sources() -> list[Path]:
    """The files that setup.py compiles."""
    for statement in ast.parse((_ROOT / "setup.py").read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "COMPILED":
            patterns = ast.literal_eval(statement.value)
            return sorted(path for pattern in patterns for path in _PACKAGE.glob(pattern))
    raise AssertionError("setup.py names no COMPILED sources")


def shared_names(tree: ast.AST) -> Iterator[str]:
    """The functions in which except clauses for different errors bind one name."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            caught: dict[str, str] = {}
            for clause in ast.walk(function):
                if isinstance(clause, ast.ExceptHandler) and clause.name and clause.type:
                    errors = ast.unparse(clause.type)
                    if caught.setdefault(clause.name, errors) != errors:
                        yield f"{function.name}: {clause.name}"


class ExceptClauseTests(SynchronousTestCase):
    """A name has one type in a compiled function: the type of the first clause that binds it."""

    def test_one_type_for_a_name(self) -> None:
        """An error caught under the name of another one is a TypeError, only when compiled: the
        handler that should have saved the process would end it."""
        shared = [
            f"{path.relative_to(_PACKAGE)}: {name}"
            for path in compiled_sources()
            for name in shared_names(ast.parse(path.read_text()))
        ]
        self.assertEqual([], shared)

    def test_finds_them(self) -> None:
        """The rule looks at files, and finds what it forbids."""
        self.assertIn(_PACKAGE / "engine" / "turns.py", compiled_sources())
        two = "try: pass\nexcept {} as error: pass\nexcept {} as {}: pass"
        for errors, found in (
            (("KeyError", "OSError", "error"), ["f: error"]),
            (("KeyError", "OSError", "other"), []),
        ):
            body = "\n".join(f"    {line}" for line in two.format(*errors).splitlines())
            self.assertEqual(found, list(shared_names(ast.parse(f"def f():\n{body}"))))
