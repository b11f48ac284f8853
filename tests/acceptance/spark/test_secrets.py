"""Passwords of nodes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.acceptance.daemon import DaemonTestCase, environment
from tests.acceptance.spark.case import address

_ROOT = Path(__file__).resolve().parents[3]
_SECRET = "hunter-7f3a"
_RUN_S = 300.0


class SecretTests(DaemonTestCase):
    """What Spark shows and keeps of a query."""

    def test_file(self) -> None:
        """A password that is given by a file is in no plan, progress, event log, checkpoint or
        table."""
        daemon = self.running(f"requirepass {_SECRET}")
        folder = self.folder()
        (folder / "log").mkdir()
        file = self.folder() / "password"
        file.write_text(f"{_SECRET}\n")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.acceptance.spark.secrets", address(daemon)),
                *(str(folder), f"disque.passwordFile={file}"),
            ],
            env={**environment(), "PYTHONPATH": f"{environment()['PYTHONPATH']}:{_ROOT}"},
            check=True,
            capture_output=True,
            timeout=_RUN_S,
        )
        self.assertEqual(5, DeltaLog(str(folder / "table")).rows())
        shown = {"output": done.stdout + done.stderr}
        shown |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.assertTrue(any(b"SQLExecutionStart" in text for text in shown.values()), [*shown])
        self.assertEqual([], [where for where, text in shown.items() if _SECRET.encode() in text])
