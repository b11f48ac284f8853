"""``disque doctor``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class DoctorTests(VerbCase):
    """One node, on which something is wrong, or not."""

    def test_well(self) -> None:
        """Nothing is found where nothing is wrong, and scripts see that by the status."""
        self.assertEqual((0, "All is well.\n", ""), self.disque("doctor"))
        status, output, _ = self.disque("doctor", "--json")
        self.assertEqual((0, {"findings": []}), (status, json.loads(output)))

    def test_problems_and_notes(self) -> None:
        """A note is no failure, a problem is one; both say where and what to do."""
        self.call("ADDJOB", "mail", "x", 0)
        self.call("PAUSE", "mail", "all")
        status, output, _ = self.disque("doctor")
        self.assertEqual(0, status)
        self.assertIn("note: mail is paused altogether, with 1 job in it, since ", output)
        self.call("CLUSTER", "MEET", "127.0.0.1", 1)
        status, output, _ = self.disque("doctor")
        self.assertEqual(1, status)
        self.assertTrue(output.startswith("problem: "), output)

    def test_alert_wait(self) -> None:
        """What a policy calls too long a wait is a problem."""
        job = self.call("ADDJOB", "mail", "x", 0)
        self.call("QPOLICY", "SET", "m*", "alert-wait", 1)
        stored = self.node.node.node.jobs.get(job.encode() if isinstance(job, str) else job)
        assert stored is not None
        stored.moved_ms -= 30_000
        status, output, _ = self.disque("doctor")
        self.assertEqual(1, status)
        self.assertIn("more than the 1 s of alert-wait", output)

    def test_watch(self) -> None:
        """Whoever watches queues sees what is wrong below them."""
        self.call("ADDJOB", "mail", "x", 0)
        self.call("PAUSE", "mail", "all")
        _, output, _ = self.disque("watch", "mail", "--once", "--json")
        found = [json.loads(line) for line in output.splitlines()][-1]["findings"]
        self.assertIn("mail is paused altogether", found[0]["what"])
