"""The examples of frameworks, run as their users run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.daemon import START_S, environment

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


class ExampleTests(SynchronousTestCase):
    """``python examples/run.py``."""

    def run_example(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [sys.executable, str(_EXAMPLES / "run.py"), *words],
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * START_S,
            check=False,
        )

    def assert_works(self, name: str) -> None:
        """Both results of the order are printed."""
        done = self.run_example(name)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for line in ("bill: 2100 cents\n", "reminder: alice: please pay\n"):
            self.assertIn(line, done.stdout)

    def test_celery(self) -> None:
        """The example for Celery works as it stands there."""
        self.assert_works("celery")

    def test_django(self) -> None:
        """The example for Django works as it stands there."""
        self.assert_works("django")

    def test_django_q2(self) -> None:
        """The example for Django-Q2 works as it stands there."""
        self.assert_works("django_q2")

    def test_dramatiq(self) -> None:
        """The example for dramatiq works as it stands there."""
        self.assert_works("dramatiq")

    def test_taskiq(self) -> None:
        """The example for taskiq works as it stands there."""
        self.assert_works("taskiq")

    def test_usage(self) -> None:
        """Without the name of an example, the names are shown."""
        done = self.run_example("rails")
        self.assertEqual(2, done.returncode)
        self.assertIn("celery|django", done.stderr)
