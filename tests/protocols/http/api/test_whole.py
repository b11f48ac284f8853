"""Whole answers about a queue with a job in each state, member by member."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.protocols.http.api.queues.test_queues import SlicedCase

_V1 = "/api/v1"


class WholeTests(SlicedCase):
    """One node, on which a queue has a queued, a delayed and a held job, and one in its backoff."""

    def setUp(self) -> None:
        super().setUp()
        policy = (b"max-deliveries", b"3", b"retry-delay", b"60")
        self.call(b"QPOLICY", b"SET", b"m*", *policy)
        self.call(b"QPOLICY", b"SET", b"mail", b"alert-wait", b"5")
        for body in (b"1", b"2", b"3"):
            self.call(b"ADDJOB", b"mail", body, b"0", b"RETRY", b"30", b"TTL", b"500")
        self.call(b"ADDJOB", b"mail", b"later", b"0", b"DELAY", b"60")
        ((_, held, _),) = self.call(b"GETJOB", b"FROM", b"mail")
        ((_, failed, _),) = self.call(b"GETJOB", b"FROM", b"mail")
        self.call(b"NACK", failed)
        self.call(b"WORKING", held, b"PROGRESS", b"0.5", b"NOTE", b"half")
        self.call(b"PAUSE", b"mail", b"out")
        self.held, self.failed = held.decode(), failed.decode()
        self.node = self.root.runtime.node.membership.myself.id.decode()

    def got(self, path: str) -> Any:
        """An answer."""
        answer = self.slow("GET", f"{_V1}/{path}")
        self.assertEqual(200, answer.status, answer.body)
        return answer.json

    def without(self, found: dict[str, Any], *names: str, limit: float = 60) -> dict[str, Any]:
        """The members without these, which are times that have hardly passed."""
        for name in names:
            self.assertTrue(0 <= found.pop(name) <= limit, name)
        return found

    def test_queue(self) -> None:
        """A queue is shown with where its jobs are, its rates, who paused it, and its places."""
        self.reactor.advance(1)
        queue = self.got("queues/mail")
        listed = self.got("queues")
        (place,) = queue.pop("places")
        counts: dict[str, Any] = {
            "queued": 1,
            "delayed": 1,
            "backoff": 1,
            "in_flight": 1,
            "loaded": 0,
        }
        counts |= {"blocked": 0, "pause": "out"}
        expected = {"node": self.node, **counts}
        self.assertEqual(expected, self.without(place, "oldest_s"))
        times = ("oldest_s", "age_s", "idle_s")
        figures: dict[str, Any] = {
            "name": "mail",
            "jobs_in": 3,
            "jobs_out": 2,
            "import_rate": 0,
            "dead": 0,
        }
        figures |= {**counts, "in_per_s": 0.3, "out_per_s": 0.2, "url": f"{_V1}/queues/mail"}
        self.assertEqual("embedded", queue.pop("paused_by"))
        self.assertGreater(queue.pop("paused_at_s"), 1e9)
        nodes: dict[str, Any] = {"nodes": 1, "nodes_missing": []}
        self.assertEqual({**figures, **nodes}, self.without(queue, *times))
        (row,) = listed.pop("queues")
        self.assertEqual(figures, self.without(row, *times))
        self.assertEqual({"total": 1, **nodes}, listed)

    def test_counts(self) -> None:
        """The counts of a queue are the same in a page and alone."""
        page = self.got("counts")
        one = self.got("counts/mail")
        expected: dict[str, Any] = {
            "name": "mail",
            "url": f"{_V1}/counts/mail",
            "queued": 1,
            "delayed": 1,
        }
        expected |= {"backoff": 1, "in_flight": 1, "dead": 0, "blocked_clients": 0, "loaded": 0}
        expected |= {"in_per_s": 0.3, "out_per_s": 0.2, "pause": "out"}
        nodes: dict[str, Any] = {"nodes": 1, "nodes_missing": []}
        self.assertEqual({**expected, **nodes}, self.without(one, "oldest_ms", limit=60_000))
        (row,) = page.pop("queues")
        self.assertEqual(expected, self.without(row, "oldest_ms", limit=60_000))
        self.assertEqual({"cursor": None, **nodes}, page)

    def test_jobs(self) -> None:
        """A job is shown with what it was added with, where it is, and how far it is."""
        jobs = {job["body"]: job for job in self.got("queues/mail/jobs")["jobs"]}
        self.assertEqual({"1", "2", "3", "later"}, set(jobs))
        places = {body: job["place"] for body, job in jobs.items()}
        expected = {"1": "in-flight", "2": "backoff", "3": "none", "later": "delayed"}
        self.assertEqual(expected, places)
        held = jobs["1"]
        alone = self.got(f"jobs/{quote(self.held, safe='')}")
        self.assertEqual(f"{_V1}/jobs/{quote(self.held, safe='')}", held.pop("url"))
        for job in (held, alone):
            self.assertTrue(job.pop("ctime").isdigit())
            self.without(job, "place_age", "progress_age", limit=60_000)
            self.without(job, "next_requeue_within", limit=31_000)
            self.without(job, "next_awake_within", limit=31_000)
        values: dict[str, Any] = {
            "id": self.held,
            "queue": "mail",
            "state": "active",
            "repl": 1,
            "ttl": 500,
        }
        values |= {"delay": 0, "retry": 30, "nacks": 0, "additional_deliveries": 0, "body": "1"}
        values |= {"nodes_delivered": [self.node], "nodes_confirmed": [], "place": "in-flight"}
        values |= {"progress": 0.5, "progress_note": "half"}
        self.assertEqual((values, values), (held, alone))
        failed = jobs["2"]
        self.assertEqual((1, self.failed), (failed["nacks"], failed["id"]))
        self.assertTrue(40_000 < failed["next_requeue_within"] <= 60_000)
        self.assertEqual(60, jobs["later"]["delay"])

    def test_peek(self) -> None:
        """Looking at a queue shows the jobs that wait in it, oldest first or newest."""
        self.call(b"PAUSE", b"mail", b"none")
        self.call(b"ADDJOB", b"mail", b"4", b"0")
        for words, bodies in (("", ["3", "4"]), ("?from=newest", ["4", "3"]), ("?count=1", ["3"])):
            answer = self.got(f"queues/mail/peek{words}")
            jobs = answer.pop("jobs")
            self.assertEqual(bodies, [job.pop("body") for job in jobs])
            for job in jobs:
                url = f"{_V1}/jobs/{quote(job['id'], safe='')}"
                self.assertEqual({"id": job["id"], "queue": "mail", "url": url}, job)
            self.assertEqual({"nodes": 1, "nodes_missing": []}, answer)

    def test_policies(self) -> None:
        """Policies are listed by their patterns, in pages; a queue has for each setting the most
        precise one, and says which."""
        wide: dict[str, Any] = {"pattern": "m*", "url": f"{_V1}/policies/m%2A"}
        wide["settings"] = {"max-deliveries": "3", "retry-delay": "60"}
        one = {"pattern": "mail", "url": f"{_V1}/policies/mail", "settings": {"alert-wait": "5"}}
        self.assertEqual({"policies": [wide, one], "total": 2}, self.got("policies"))
        self.assertEqual({"policies": [wide], "total": 2}, self.got("policies?limit=1"))
        self.assertEqual({"policies": [one], "total": 2}, self.got("policies?offset=1"))
        self.assertEqual({"policies": [], "total": 2}, self.got("policies?offset=2"))
        self.assertEqual(one, self.got("policies/mail"))
        settings = {
            "max-deliveries": {"value": "3", "pattern": "m*"},
            "retry-delay": {"value": "60", "pattern": "m*"},
            "alert-wait": {"value": "5", "pattern": "mail"},
        }
        self.assertEqual({"settings": settings}, self.got("queues/mail/policy"))
        self.assertEqual({"settings": {}}, self.got("queues/other/policy"))

    def test_actions(self) -> None:
        """What was changed is shown newest first, as the command that did it, with who it was and
        what became of it."""
        rows = self.got("actions?limit=3")["actions"]
        shown = [(row["command"], row["what"], row["refused"], row["jobs"]) for row in rows]
        self.assertEqual(
            [
                ("pause", "PAUSE mail out", "", None),
                ("qpolicy", "QPOLICY SET mail alert-wait 5", "", None),
                ("qpolicy", "QPOLICY SET m* max-deliveries 3 retry-delay 60", "", None),
            ],
            shown,
        )
        self.assertEqual({("embedded", self.node)}, {(row["who"], row["node"]) for row in rows})

    def test_node(self) -> None:
        """The figures of a node are those of its queues and its memory; each client is listed with
        its node."""
        answer = self.got("figures")
        (row,) = answer.pop("rows")
        self.assertEqual({"nodes": 1, "nodes_missing": []}, answer)
        figures: dict[str, Any] = {
            "queued": 1,
            "in_flight": 1,
            "backoff": 1,
            "jobs": 4,
            "queues": 1,
            "clients": 1,
        }
        figures |= {"blocked": 0, "maxmemory_bytes": 1 << 30, "log_bytes": 0, "log": False}
        figures |= {"memory_level": "normal", "log_ok": True, "leaving": False, "consoles": []}
        found = {name: row[name] for name in figures}
        self.assertEqual((figures, self.node), (found, row["node"]))
        answer = self.got("clients")
        (client,) = answer.pop("clients")
        self.assertEqual({"total": 1, "nodes": 1, "nodes_missing": []}, answer)
        expected = {"addr": "127.0.0.1:5001", "name": "http", "flags": "N", "node": self.node}
        self.assertEqual(expected, {name: client[name] for name in expected})
        answer = self.got("nodes")
        (node,) = answer["nodes"]
        self.assertEqual(
            (self.node, ["myself"], "connected"),
            tuple(node[name] for name in ("id", "flags", "link")),
        )
