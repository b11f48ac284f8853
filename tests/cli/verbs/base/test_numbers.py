"""Numbers as options of verbs."""

from __future__ import annotations

import click
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.base.numbers import FiniteRange
from tests.cli.livenode import VerbCase


class FiniteRangeTests(SynchronousTestCase):
    """``FiniteRange``."""

    def test_bounds(self) -> None:
        """What is no number to wait for is refused like one outside of the bounds."""
        taken = FiniteRange(0, 5)
        self.assertEqual([0.0, 0.5, 5.0], [taken.convert(one, None, None) for one in (0, ".5", 5)])
        for wrong in ("nan", "inf", "-inf", "5.1", "x"):
            self.assertRaises(click.BadParameter, taken.convert, wrong, None, None)
        self.assertRaises(click.BadParameter, FiniteRange(min=0).convert, "inf", None, None)


class VerbTests(VerbCase):
    """Numbers that verbs take."""

    def test_not_finite(self) -> None:
        """Who computes a time in a script and gets it wrong sees a usage error, and no traceback;
        nothing was done."""
        self.add("q", "a")
        for words in (
            ("drain", "q", "--timeout", "nan"),
            ("move", "q", "r", "--rate", "nan"),
            ("tail", "q", "-i", "nan"),
            ("watch", "q", "-i", "nan", "--once"),
            ("wait", "D-1", "--timeout", "inf"),
            ("work", "a:b", "--grace", "nan"),
            ("health", "--timeout", "nan"),
            ("cluster", "evacuate", self.node.address, "--timeout", "inf"),
        ):
            status, output, error = self.disque(*words)
            self.assertEqual((2, ""), (status, output), words)
            self.assertIn("is not a finite number", error)
        self.assertEqual(1, self.length("q"))
