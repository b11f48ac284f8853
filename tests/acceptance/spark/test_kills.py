"""A stream that is killed in the middle of batches."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.acceptance.daemon import environment, wait_for
from tests.acceptance.spark.case import KILLS, SparkTestCase, add_many, address

_JOBS = 20_000
_ROOT = Path(__file__).resolve().parents[3]
#: A JVM takes long to start beside others.
_RUN_S = 300.0
#: Small enough that there are more batches than kills.
_BATCH_JOBS = _JOBS // (4 * KILLS)


class KillTests(SparkTestCase):
    """Driver and JVM are killed at once."""

    def test_each_job_is_stored(self) -> None:
        """A stream that is killed in the middle of batches loses no job and stores none twice: it
        renews its leases at the start, and acknowledges before it fetches."""
        daemon = self.running()
        folder = self.folder()
        ids = add_many(address(daemon), "q", _JOBS, retry_s=5)
        random = Random(1)
        for _ in range(KILLS):
            self.run_until(
                lambda: self.in_mid_batch(folder), "a batch is running", address(daemon), folder
            )
            self.committed = self.batches(folder, "commits") + random.randrange(3)
        self.run_until(
            lambda: daemon.info()["registered_jobs"] == "0",
            "all jobs are acknowledged",
            address(daemon),
            folder,
        )
        stored = self.spark.read.parquet(str(folder / "out")).select("id").collect()
        self.assertEqual(ids, {row.id for row in stored})
        self.assertEqual(_JOBS, len(stored))

    #: The number of batches that must be stored before the next kill.
    committed = 0

    def run_until(
        self, condition: Callable[[], bool], what: str, servers: str, folder: Path
    ) -> None:
        """Run the stream until the condition is true, and kill it then.

        If it ends before, it is started again, as by a supervisor: Spark gives a Python process ten
        seconds to start, which may not be enough on a busy machine.
        """
        running = self.run_stream(servers, folder)

        def holds() -> bool:
            nonlocal running
            if running.poll() is not None:
                running = self.run_stream(servers, folder)
            return condition()

        wait_for(holds, what, _RUN_S)
        self.end(running)

    def run_stream(self, servers: str, folder: Path) -> subprocess.Popen[bytes]:
        """Start the stream in a process group of its own."""
        words = [sys.executable, "-m", "tests.acceptance.spark.streaming"]
        paths = os.pathsep.join((environment()["PYTHONPATH"], str(_ROOT)))
        with open(folder / "stream.out", "ab") as output:
            running = subprocess.Popen(
                [*words, servers, "q", str(folder), str(_BATCH_JOBS)],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.addCleanup(self.end, running)
        return running

    def end(self, running: subprocess.Popen[bytes]) -> None:
        """Kill the process group."""
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()

    def in_mid_batch(self, folder: Path) -> bool:
        """Whether enough batches are stored, and the next one is begun but not stored."""
        begun, stored = self.batches(folder, "offsets"), self.batches(folder, "commits")
        return self.committed < stored < begun

    def batches(self, folder: Path, log: str) -> int:
        """The number of batches in a log of the checkpoint."""
        names = (path.name for path in (folder / "checkpoint" / log).glob("[0-9]*"))
        return sum(name.isdigit() for name in names)
