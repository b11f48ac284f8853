"""Queues, jobs and dead letters of a daemon of several processes over HTTP: whichever process
answers, it is about all of them."""

from __future__ import annotations

from urllib.error import HTTPError

from tests.acceptance.processes.httpgroup import HttpGroupCase

_V1 = "/api/v1"


class QueueTests(HttpGroupCase):
    """Queues of which each process has a part."""

    def setUp(self) -> None:
        super().setUp()
        self.processes.start()
        self.add(1, "both", 1)
        self.add(2, "both", 3)
        self.add(2, "other", 2)
        self.processes.ask(self.processes.own_port(1), "PAUSE", "both", "in")

    def test_list(self) -> None:
        """The list has every queue once, with its sums, in the order of these."""
        self.at_each(self.check_list)

    def check_list(self) -> None:
        """One answer."""
        listed = self.fetch(f"{_V1}/queues?sort=queued&order=desc")
        self.assertEqual(
            [("both", 4, "in", 4), ("other", 2, "none", 2)],
            [(r["name"], r["queued"], r["pause"], r["jobs_in"]) for r in listed["queues"]],
        )
        self.assertEqual((2, 2, []), (listed["total"], listed["nodes"], listed["nodes_missing"]))
        page = self.fetch(f"{_V1}/queues?match=o*&limit=1&scope=cluster")
        self.assertEqual(["other"], [row["name"] for row in page["queues"]])

    def test_one(self) -> None:
        """One queue shows the sums, and what of it is at which process."""
        self.at_each(self.check_one)

    def check_one(self) -> None:
        """One answer."""
        queue = self.fetch(f"{_V1}/queues/both")
        self.assertEqual((4, "in", 2), (queue["queued"], queue["pause"], queue["nodes"]))
        self.assertEqual(
            [(1, 1, "in"), (2, 3, "none")],
            [(row["process"], row["queued"], row["pause"]) for row in queue["places"]],
        )
        self.assertTrue(queue["paused_by"].startswith("127.0.0.1:"))
        with self.assertRaises(HTTPError) as caught:
            self.fetch(f"{_V1}/queues/none")
        self.assertEqual(404, caught.exception.code)

    def test_detailed_metrics(self) -> None:
        """The figures of every queue are sums, as those of the daemon are."""
        self.at_each(self.check_metrics)

    def check_metrics(self) -> None:
        """One scrape."""
        lines = self.fetch("/metrics/detailed?family=disque_queue_jobs").splitlines()
        self.assertIn('disque_queue_jobs{queue="both",state="queued"} 4', lines)
