"""What is wrong, over HTTP."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from tests.protocols.http.api.queues.test_queues import SlicedCase

_PATH = "/api/v1/findings?scope=cluster"


class FindingsTests(SlicedCase):
    """The findings of a node alone."""

    def test_well(self) -> None:
        """A node without trouble has none."""
        self.call(b"ADDJOB", b"mail", b"x", b"0")
        answer = self.slow("GET", _PATH).json
        self.assertEqual(
            ([], 1, []), tuple(answer[name] for name in ("findings", "nodes", "nodes_missing"))
        )

    def test_nobody_fetches(self) -> None:
        """Jobs that nobody fetches are found, with the page that tells more; those in a queue for
        dead letters are told as such."""
        self.call(b"QPOLICY", b"SET", b"mail", b"dead-queue", b"graveyard")
        for queue in (b"mail", b"graveyard"):
            job = self.root.server.node.jobs.get(self.call(b"ADDJOB", queue, b"x", b"0").text)
            assert isinstance(job, Job)
            job.moved_ms -= 120_000
        found = self.slow("GET", _PATH).json["findings"]
        shown = [(one["severity"], one["what"], one["link"]) for one in found]
        self.assertIn(("problem", "nobody fetches the 1 job of mail", "#/queues/mail"), shown)
        self.assertEqual("note", found[-1]["severity"])
        self.assertIn("1 dead letter in graveyard", found[-1]["what"])

    def test_alert_wait(self) -> None:
        """A policy says how long a job may wait."""
        self.call(b"QPOLICY", b"SET", b"m*", b"alert-wait", b"1")
        job = self.root.server.node.jobs.get(self.call(b"ADDJOB", b"mail", b"x", b"0").text)
        assert isinstance(job, Job)
        job.moved_ms -= 30_000
        found = self.slow("GET", _PATH).json["findings"][0]
        self.assertIn("more than the 1 s of alert-wait", found["what"])

    def test_kept(self) -> None:
        """Many consoles cost as little as one: for some seconds the answer is the same."""
        processed = [self.root.server.stats.commands_processed]
        for _ in range(2):
            self.slow("GET", _PATH)
            processed.append(self.root.server.stats.commands_processed)
        self.assertGreater(processed[1], processed[0])
        self.assertEqual(processed[1], processed[2])
