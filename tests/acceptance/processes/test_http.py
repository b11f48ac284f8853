"""HTTP of a daemon of several processes: it is about the daemon, whichever process answers."""

from __future__ import annotations

import os
import signal
from functools import partial
from urllib.error import HTTPError

from tests.acceptance.daemon import Daemon, wait_for
from tests.acceptance.load import GONE
from tests.acceptance.processes.httpgroup import HttpGroupCase
from tests.acceptance.resp import ReplyError

_SCRAPES = 6


class HttpTests(HttpGroupCase):
    """Three processes, each asked many times, for connections go to one after the other."""

    size = 3

    def metric(self, name: str, query: str = "") -> float:
        """One sample of the metrics."""
        lines = self.fetch(f"/metrics{query}").splitlines()
        (value,) = [line.split()[1] for line in lines if line.split()[0] == name]
        return float(value)

    def test_sums(self) -> None:
        """Metrics and counts are the same at every request, and those of the daemon."""
        self.processes.start()
        for number in (1, 2, 3):
            self.add(number, f"q{number}", number)
        added = {self.metric("disque_jobs_added_total") for _ in range(_SCRAPES)}
        self.assertEqual({6.0}, added)
        single = [
            self.metric("disque_jobs_added_total", f"?process={number}") for number in (1, 2, 3)
        ]
        self.assertEqual([1.0, 2.0, 3.0], single)
        self.assertEqual(3, self.metric("disque_processes"))
        with self.assertRaises(HTTPError) as caught:
            self.fetch("/metrics?process=4")
        self.assertEqual(404, caught.exception.code)
        for _ in range(_SCRAPES):
            listed = self.fetch("/api/v1/counts?sort=name")
            self.assertEqual(
                [("q1", 1), ("q2", 2), ("q3", 3)],
                [(row["name"], row["queued"]) for row in listed["queues"]],
            )
            self.assertEqual((3, []), (listed["nodes"], listed["nodes_missing"]))
            self.assertEqual(3, self.fetch("/api/v1/counts/q3")["queued"])
        self.assertEqual(3, self.fetch("/api/v1/queues/q3/flush", {"queue": "q3"})["count"])

    def all_say(self, pause: str) -> bool:
        """Whether the queue has this state in every process."""
        ports = [self.processes.own_port(number) for number in (1, 2, 3)]
        return {self.processes.ask(port, "PAUSE", "q", "state") for port in ports} == {pause}

    def test_pause(self) -> None:
        """A pause holds in every process, and ends in every process."""
        self.processes.start()
        for wanted in ("in", "none"):
            self.assertEqual(
                {"pause": wanted}, self.fetch("/api/v1/queues/q/pause", {"pause": wanted})
            )
            wait_for(partial(self.all_say, wanted), f"the queue is {wanted} in all processes")

    def test_first_jobs(self) -> None:
        """A client that is there from the beginning never gets too few copies: it is told to wait
        until the processes know each other."""
        Daemon.start(self.processes)
        answers: list[str] = []
        wait_for(partial(self.first_added, answers), "a job is added")
        self.assertEqual({"LOADING"}, {answer.split()[0] for answer in answers} | {"LOADING"})

    def first_added(self, refusals: list[str]) -> bool:
        """Whether a job could be added with copies on all processes; notes why not."""
        try:
            self.processes.ask(self.processes.port, "ADDJOB", "q", "b", 0, "REPLICATE", 3)
        except ReplyError as error:
            refusals.append(str(error))
            return False
        except GONE:
            return False
        return True

    def test_ready(self) -> None:
        """Once the daemon is ready, jobs get their copies: its processes know each other."""
        Daemon.start(self.processes)
        wait_for(lambda: "processes serve clients" in self.processes.log(), "the daemon is ready")
        for number in (1, 2, 3):
            answer = self.processes.ask(
                self.processes.own_port(number), "ADDJOB", "q", "b", 0, "REPLICATE", 3
            )
            self.assertTrue(str(answer).startswith("D-"), answer)

    def test_restart(self) -> None:
        """Counters do not fall when a process is killed and starts again, so that rates and alerts
        hold."""
        self.processes.start()
        for number in (1, 2, 3):
            self.add(number, "q", 5)
        wait_for(lambda: self.reported() >= 15, "the processes have reported")
        self.assertEqual(15.0, self.metric("disque_jobs_added_total"))
        os.kill(self.processes.pids()[2], signal.SIGKILL)
        seen: list[float] = []
        restarted = partial(self.restarted, seen)
        wait_for(restarted, "the process runs again")
        self.processes.wait_until_joined()
        self.add(2, "q", 1)
        seen.append(self.metric("disque_jobs_added_total"))
        self.assertEqual((15.0, 16.0), (min(seen), seen[-1]))
        wait_for(lambda: self.reported() == 16, "the processes have reported")

    def reported(self) -> int:
        """The jobs that were added, by INFO processes."""
        return int(self.processes.section()["all_total_jobs_added"])

    def restarted(self, seen: list[float]) -> bool:
        """Whether the process was started again; takes a sample meanwhile."""
        try:
            seen.append(self.metric("disque_jobs_added_total"))
            row = self.processes.rows()[2]
        except GONE:
            return False  # it got the connection of the process that is killed
        return row["restarts"] == "1" and row["state"] == "ready"
