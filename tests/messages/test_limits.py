"""The limits of jobs: what they are, and that they are written down once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import disque_tx
from disque_tx.messages import limits

_SOURCE = Path(disque_tx.__file__).parent
_HOME = "messages/limits.py"
#: Numbers with another meaning: ``beanstalk-max-job-size`` of beanstalkd, and beanstalkd's limits.
_OTHERS = {
    "config/settings.py",
    "protocols/beanstalk/jobs.py",
    "protocols/beanstalk/requests.py",
    "services/clients/listeners.py",
    "services/machine/process.py",
}


def limit_literals(tree: ast.AST) -> Iterator[int]:
    """The lines on which one of the limits is written as a number."""
    for node in ast.walk(tree):
        written = isinstance(node, ast.Constant | ast.BinOp) and ast.unparse(node)
        if written in ("4294967295", "65535", "2 ** 32", "1 << 32"):
            yield node.lineno  # type: ignore[attr-defined]


class LimitTests(SynchronousTestCase):
    """What a job's formats have room for."""

    def test_ranges(self) -> None:
        """Every program refuses the numbers that a node would refuse, and no others."""
        self.assertEqual((1, 65_535), limits.REPLICATE_RANGE)
        self.assertEqual((1, 4_294_967_295), limits.TTL_RANGE)
        self.assertEqual((0, 4_294_967_295), limits.RETRY_RANGE)
        self.assertEqual((0, 4_294_967_295), limits.DELAY_RANGE)
        self.assertEqual((1, 2**63 - 1), limits.MAXLEN_RANGE)

    def test_one_home(self) -> None:
        """A limit that stands in two places is changed in one, and programs disagree about it."""
        found = []
        for path in sorted(_SOURCE.rglob("*.py")):
            name = path.relative_to(_SOURCE).as_posix()
            if name != _HOME and name not in _OTHERS:
                lines = limit_literals(ast.parse(path.read_text()))
                found += [f"{name}:{line}" for line in lines]
        self.assertEqual([], found)

    def test_finds_them(self) -> None:
        """The rule above detects each way to write them."""
        written = ast.parse("a = 0xFFFF_FFFF\nb = 65_535\nc = 2**32 - 1\nd = (1 << 32) - 1")
        self.assertEqual([1, 2, 3, 4], sorted(limit_literals(written)))
