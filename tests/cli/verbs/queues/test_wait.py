"""``disque wait``."""

from __future__ import annotations

import threading

from tests.cli.livenode import VerbCase


class WaitTests(VerbCase):
    """A job, and who waits for its end."""

    def setUp(self) -> None:
        super().setUp()
        self.job_id = self.call("ADDJOB", "q", "body", 0, "RETRY", 60)

    def test_not_in_time(self) -> None:
        """After the time that one gives, however short, the job is said not to have ended, and a
        script sees that."""
        for seconds in ("0.001", "0.02"):
            said = self.disque("wait", self.job_id, "--timeout", seconds)
            self.assertEqual((1, "not yet\n", ""), said)
        self.assertEqual(2, self.disque("wait", self.job_id, "--timeout", "0")[0])

    def waited(self, *end: str) -> tuple[int, str, str]:
        """What is said when the job ends while it is waited for, without a limit."""
        connection, waiting = self.connect(), self.connect()

        def finish() -> None:
            while b"waitjob" not in waiting.call("CLIENT", "LIST"):
                pass
            connection.call(*end, self.job_id)

        thread = threading.Thread(target=finish)
        thread.start()
        try:
            return self.disque("wait", self.job_id)
        finally:
            thread.join(10)

    def test_acknowledged(self) -> None:
        """Without a limit it waits until the end, however long that takes; success is a job that
        was done."""
        self.assertEqual((0, "acked\n", ""), self.waited("ACKJOB"))

    def test_other_ends(self) -> None:
        """Any other end is named, and is none."""
        self.assertEqual((1, "deleted\n", ""), self.waited("DELJOB"))
