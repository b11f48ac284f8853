"""Without PySpark, ``disque-pipeline`` explains how to install it."""

from __future__ import annotations

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.daemon import environment

_WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from disque_tx.cli.programs.pipeline import main
sys.exit(main())
"""


class MissingTests(SynchronousTestCase):
    """An installation without the extra."""

    def test_what_to_install(self) -> None:
        """The error is one line with what to do, and the exit status shows the failure."""
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT_SPARK],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn("pip install 'disque-tx[spark]'", done.stderr)
        self.assertEqual(1, done.stderr.count("\n"))
