"""The ports of daemons that tests start."""

from __future__ import annotations

import os
import random
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.daemon import claim, environment, free_port, free_ports

_ASK = (
    "import sys; from tests.acceptance.daemon import claim; print(claim(*map(int, sys.argv[1:])))"
)
#: Numbers that no test is given as ports.
_BEYOND = range(100_000, 1_000_000_000)


class PortsTests(SynchronousTestCase):
    """Tests that run at the same time get ports of their own."""

    def elsewhere(self, port: int, count: int = 1) -> str:
        """What another process gets that claims these ports."""
        words = [sys.executable, "-c", _ASK, str(port), str(count)]
        paths = os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))
        return subprocess.check_output(words, env=environment(PYTHONPATH=paths)).decode().strip()

    def test_one(self) -> None:
        """A port that one process of tests uses is refused to all others."""
        self.assertEqual("False", self.elsewhere(free_port()))

    def test_group(self) -> None:
        """Every port of a daemon of several processes is refused, whether it listens yet or not."""
        port = free_ports(3)
        self.assertEqual([False] * 3, [claim(port + number) for number in range(3)])
        self.assertEqual("False", self.elsewhere(port + 2))

    def test_overlap(self) -> None:
        """Ports that overlap with those of others are refused, and none of them is claimed."""
        port = random.choice(_BEYOND)
        self.assertTrue(claim(port, 2))
        self.assertFalse(claim(port - 1, 2))
        self.assertEqual("False", self.elsewhere(port - 1, 2))
        self.assertEqual("True", self.elsewhere(port - 1))

    def test_ended(self) -> None:
        """When a process ends, its ports are free for others."""
        port = random.choice(_BEYOND)
        self.assertEqual(["True", "True"], [self.elsewhere(port), self.elsewhere(port)])
