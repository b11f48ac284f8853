"""The first of a dict is found by a search behind all that were removed before it: taken from the
front again and again, a large one takes a time that grows with the square of its size."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from tests.test_layers import files

#: Dicts with so few entries that the search is short.
_SMALL = frozenset(("_serials", "_ends"))


def declared(kind: str) -> set[str]:
    """The names of all attributes of the source that are annotated as this."""
    return {
        node.target.attr
        for _, tree in files()
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and ast.unparse(node.annotation).startswith(f"{kind}[")
    }


def firsts(tree: ast.Module) -> Iterator[str]:
    """The names of what ``next(iter(...))`` is called with, also under a local name."""
    locals_ = {
        node.targets[0].id: node.value.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Attribute)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node).startswith("next(iter("):
            inner = node.args[0]
            assert isinstance(inner, ast.Call)
            what = ast.unparse(inner.args[0]).removesuffix(".items()").removesuffix(".values()")
            name = what.rpartition(".")[2]
            yield locals_.get(name, name)


class OldestFirstTests(SynchronousTestCase):
    """What is removed from the front is an ``OrderedDict``."""

    def test_no_search(self) -> None:
        """Neither a producer with many reasons, nor a tube with many buried jobs, makes a node
        search for the oldest of them each time."""
        plain = declared("dict") - declared("OrderedDict") - _SMALL
        found = [f"{name} {one}" for name, tree in files() for one in firsts(tree) if one in plain]
        self.assertEqual([], found)
