"""Queues, jobs, dead letters and clients of a daemon of several processes over HTTP: whichever
process answers, it is about all of them."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from disque_tx.worker.settling.deadletters import Letter
from tests.acceptance.daemon import wait_for
from tests.acceptance.processes.httpgroup import HttpGroupCase
from tests.acceptance.resp import Connection

_V1 = "/api/v1"


def dead(reason: str) -> bytes:
    """A dead letter."""
    letter = Letter(
        queue="q", id="D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1", body=b"x", reason=reason,
        traceback="", worker="w", nacks=1, additional_deliveries=0, failed_at_s=1.0, retry_s=9,
    )  # fmt: skip
    return letter.encoded()


class OneJobTests(HttpGroupCase):
    """A job of one process, asked for at both."""

    def test_wait_and_events(self) -> None:
        """Each process waits for the end of a job, and shows what happened to it, whichever of
        them has it."""
        self.processes.words += ["--eventlog", "yes"]
        self.processes.start()
        for _ in range(4):
            path = self.path_of_new()
            # Connections go to one process after the other: the next one to the other than before.
            self.fetch(f"{_V1}/counts/q")
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(self.fetch, f"{path}/wait?wait_ms=60000")
                wait_for(lambda: self.blocked(1) == 1, "it waits, here or for the other process")
                self.assertEqual({"count": 1}, self.fetch(f"{path}/ack", {}))
                self.assertEqual({"ended": "acked"}, waiting.result())
        wanted = ["added", "queued", "acked"]
        self.at_each(lambda: wait_for(lambda: self.kinds(path) == wanted, "it shows all events"))
        path = self.path_of_new()
        self.at_each(lambda: self.assertIsNone(self.fetch(f"{path}/wait?wait_ms=1")["ended"]))

    def path_of_new(self) -> str:
        """The path of a job that is added at the first process."""
        (job_id,) = self.add(1, "q", 1)
        return f"{_V1}/jobs/{quote(job_id, safe='')}"

    def blocked(self, number: int) -> int:
        """How many clients wait at one process."""
        info = self.processes.ask(self.processes.own_port(number), "INFO", "clients")
        (line,) = [line for line in info.splitlines() if line.startswith(b"blocked_clients:")]
        return int(line.split(b":")[1])

    def kinds(self, path: str) -> list[str]:
        """What one process says that happened to the job."""
        return [event["kind"] for event in self.fetch(f"{path}/events")["events"]]


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


class JobTests(HttpGroupCase):
    """Jobs, which one process or the other holds."""

    def setUp(self) -> None:
        super().setUp()
        self.processes.start()

    def test_show(self) -> None:
        """A job is shown at every request, by the process that has it, and not by one that has a
        copy."""
        (single,) = self.add(2, "q", 1)
        time.sleep(0.02)  # jobs of one millisecond are in no order
        (copied,) = self.add(1, "q", 1, "REPLICATE", 2)
        self.at_each(lambda: self.check_show(single, copied))

    def check_show(self, single: str, copied: str) -> None:
        """One answer each."""
        for job_id, number in ((single, 2), (copied, 1)):
            job = self.fetch(self.path(job_id))
            self.assertEqual(("queued", number), (job["state"], job["process"]))
        peeked = self.fetch(f"{_V1}/queues/q/peek")
        self.assertEqual([single, copied], [job["id"] for job in peeked["jobs"]])
        self.assertEqual(["q2", "q1"], [job["body"] for job in peeked["jobs"]])
        newest = self.fetch(f"{_V1}/queues/q/peek?from=newest&count=1")
        self.assertEqual([copied], [job["id"] for job in newest["jobs"]])
        self.assertEqual({single, copied}, set(self.scanned("any")))
        self.assertEqual(2, len(self.scanned("queued")))

    def path(self, job_id: str, action: str = "") -> str:
        """Of a job."""
        return f"{_V1}/jobs/{quote(job_id, safe='')}{action}"

    def scanned(self, state: str) -> list[str]:
        """The IDs of all jobs of the queue, page by page."""
        found: list[str] = []
        cursor: str | None = "0"
        while cursor is not None:
            page = self.fetch(f"{_V1}/queues/q/jobs?state={state}&count=1&cursor={cursor}")
            self.assertEqual([], page["nodes_missing"])
            found += [job["id"] for job in page["jobs"]]
            cursor = page["cursor"]
        return found

    def test_actions(self) -> None:
        """Actions are carried out where the job is, whichever process gets the request."""
        ids = self.add(1, "q", 2) + self.add(2, "q", 2)
        for job_id in ids:
            self.assertEqual({"count": 1}, self.fetch(self.path(job_id, "/dequeue"), {}))
            self.assertEqual("active", self.fetch(self.path(job_id))["state"])
        self.assertEqual({"count": 4}, self.fetch(f"{_V1}/jobs/enqueue", {"ids": ids}))
        self.assertEqual(4, self.fetch(f"{_V1}/queues/q")["queued"])
        self.at_each(lambda: self.fetch(self.path(ids[3], "/working"), {}))
        self.assertEqual({"count": 4}, self.fetch(f"{_V1}/jobs/delete", {"ids": ids}))
        with self.assertRaises(HTTPError) as caught:
            self.fetch(self.path(ids[0]))
        self.assertEqual(404, caught.exception.code)

    def test_move(self) -> None:
        """Jobs of all processes are moved, those that are named or as many as are wanted."""
        ids = self.add(1, "q", 3) + self.add(2, "q", 4, "REPLICATE", 2)
        move = f"{_V1}/queues/q/move"
        named = {"to": "r", "ids": [ids[2], ids[6]]}
        self.assertEqual({"count": 2}, self.fetch(move, named))
        self.assertEqual({"count": 4}, self.fetch(move, {"to": "r", "count": 4}))
        self.assertEqual({"count": 1}, self.fetch(move, {"to": "r"}))
        self.at_each(lambda: self.assertEqual(7, self.fetch(f"{_V1}/queues/r")["queued"]))

    def test_dead_letters(self) -> None:
        """The letters of all processes are listed, requeued and dropped together, whichever
        process gets the request."""
        for number in (1, 2):
            for reason in ("first", "second", "third"):
                port = self.processes.own_port(number)
                letter = dead(reason).decode()
                self.processes.ask(port, "ADDJOB", "dead:q", letter, 0, "REPLICATE", 1)
        letters = f"{_V1}/queues/q/dead-letters"
        self.at_each(lambda: self.assertEqual(6, self.fetch(letters)["total"]))
        done = self.fetch(f"{letters}/requeue", {"reason": "first"})
        self.assertEqual((2, []), (done["count"], done["failed"]))
        self.assertEqual(2, self.fetch(f"{_V1}/queues/q")["queued"])
        (reason, *_others) = self.fetch(letters)["reasons"]
        chosen = {"ids": [letter["id"] for letter in reason["letters"]]}
        self.assertEqual(2, self.fetch(f"{letters}/drop", chosen)["count"])
        self.assertEqual(2, self.fetch(f"{letters}/drop", {"all": True})["count"])
        self.at_each(lambda: self.assertEqual(0, self.fetch(letters)["total"]))


class ProcessTests(HttpGroupCase):
    """What each process knows of itself."""

    def setUp(self) -> None:
        super().setUp()
        self.processes.start()

    def test_rows(self) -> None:
        """Clients, slow commands and delays of all processes are listed, and say whose they are."""
        for number in (1, 2):
            port = self.processes.own_port(number)
            connection = Connection((self.processes.ip, port))
            self.addCleanup(connection.close)
            connection.call("CLIENT", "SETNAME", f"worker{number}")
            connection.call("CONFIG", "SET", "latency-monitor-threshold", 1)
            connection.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
            wait_for(partial(self.is_set, number), "the process has the settings")
            connection.call("DEBUG", "SLEEP", "0.01")
        self.at_each(self.check_rows)

    def is_set(self, number: int) -> bool:
        """Whether CONFIG SET has reached this process."""
        port = self.processes.own_port(number)
        names = ("latency-monitor-threshold", "slowlog-log-slower-than")
        values = [self.processes.ask(port, "CONFIG", "GET", name)[1] for name in names]
        return values == [b"1", b"0"]

    def check_rows(self) -> None:
        """One answer of each."""
        for query in ("", "?limit=1&offset=0", "?limit=1&offset=1"):
            listed = self.fetch(f"{_V1}/clients{query}")
            self.assertEqual((2, []), (listed["nodes"], listed["nodes_missing"]))
            self.assertLessEqual(2, listed["total"])
            if query:
                self.assertEqual(1, len(listed["clients"]))
        rows = self.fetch(f"{_V1}/clients")["clients"]
        named = {row["name"]: row["process"] for row in rows if row["name"].startswith("worker")}
        self.assertEqual({"worker1": 1, "worker2": 2}, named)
        slow = self.fetch(f"{_V1}/slowlog?limit=1000")["entries"]
        sleeps = {entry["process"] for entry in slow if entry["words"][:2] == ["DEBUG", "SLEEP"]}
        self.assertEqual({1, 2}, sleeps)
        events = self.fetch(f"{_V1}/latency")["events"]
        self.assertEqual({1, 2}, {row["process"] for row in events if row["event"] == "command"})
        only = self.fetch(f"{_V1}/latency?scope=node")
        self.assertEqual(1, only["nodes"])

    def test_events(self) -> None:
        """One stream has the events of all processes."""
        nodes = {row["node"][:8] for row in self.processes.rows().values()}
        found: set[str] = set()
        enough = threading.Event()
        adding = threading.Thread(target=self.add_until, args=(enough,))
        url = f"http://127.0.0.1:{self.http}{_V1}/events?queue=q&kinds=added"
        with urlopen(url, timeout=30) as stream:
            adding.start()
            try:
                while len(found) < 2:
                    line = stream.readline()
                    self.assertNotEqual(b"", line, "the stream has ended")
                    if line.startswith(b"data: "):
                        event = json.loads(line[6:])
                        self.assertEqual(("q", "added"), (event["queue"], event["kind"]))
                        found.add(event["id"][2:10])
            finally:
                enough.set()
                adding.join()
        self.assertEqual(nodes, found)

    def add_until(self, enough: threading.Event) -> None:
        """Jobs at both processes, again and again."""
        while not enough.wait(0.1):
            for number in (1, 2):
                self.add(number, "other", 1)
                self.add(number, "q", 1)

    def test_history(self) -> None:
        """The figures of charts are those of the daemon."""
        self.add(1, "q", 2)
        self.add(2, "q", 3)
        self.at_each(self.check_history)

    def check_history(self) -> None:
        """One answer, once both processes have taken their samples."""

        def taken() -> bool:
            samples = self.fetch(f"{_V1}/history?span=15m")["samples"]
            return 5 in samples["queued"] and round(10 * sum(samples["added"])) == 5

        wait_for(taken, "samples of both processes", 30)
