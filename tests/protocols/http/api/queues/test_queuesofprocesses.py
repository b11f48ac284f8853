"""Queues of a daemon of several processes over HTTP: their figures are sums."""

from __future__ import annotations

from typing import Any

from tests.protocols.http.processesbench import ProcessesCase

_QUEUES = "/api/v1/queues"


class QueueTests(ProcessesCase):
    """Queue ``q`` at both processes, ``one`` at the first and ``two`` at the second."""

    def setUp(self) -> None:
        super().setUp()
        for root, queue, count in (
            *((self.first, b"q", 2), (self.second, b"q", 3)),
            *((self.first, b"one", 1), (self.second, b"two", 4)),
        ):
            for number in range(count):
                self.add(root, queue, b"%d" % number, b"RETRY", b"60")
        self.add(self.second, b"q", b"later", b"DELAY", b"60", b"RETRY", b"60")

    def listed(self, words: str = "") -> tuple[int, list[tuple[str, int]]]:
        """How many queues there are, and those on the page with their lengths."""
        answer = self.slow("GET", f"{_QUEUES}?{words}").json
        self.assertEqual((2, []), (answer["nodes"], answer["nodes_missing"]))
        return answer["total"], [(queue["name"], queue["queued"]) for queue in answer["queues"]]

    def test_listed(self) -> None:
        """Each queue is listed once, with all of its jobs; sorted and cut as a whole."""
        self.assertEqual((3, [("one", 1), ("q", 5), ("two", 4)]), self.listed())
        order = "sort=queued&order=desc"
        self.assertEqual((3, [("q", 5), ("two", 4), ("one", 1)]), self.listed(order))
        self.assertEqual((3, [("two", 4)]), self.listed(f"{order}&offset=1&limit=1"))
        self.assertEqual((2, [("one", 1), ("two", 4)]), self.listed("match=*o*"))

    def test_one(self) -> None:
        """One queue has the sums, and below them what is at which process."""
        self.at(self.second, b"GETJOB", b"FROM", b"q")
        self.at(self.second, b"PAUSE", b"q", b"in")
        self.at(self.first, b"PAUSE", b"q", b"out")
        found = self.slow("GET", f"{_QUEUES}/q").json
        figures = ("queued", "delayed", "in_flight", "pause", "jobs_in", "jobs_out")
        self.assertEqual((4, 1, 1, "all", 5, 1), tuple(found[name] for name in figures))
        places = {place["process"]: place["queued"] for place in found["places"]}
        self.assertEqual(({1: 2, 2: 2}, 2), (places, found["nodes"]))

    def test_missing(self) -> None:
        """While a process does not answer, what it has is missing, and that is said; a queue of it
        alone is not said to be none."""
        self.silent.add(self.ids[1])
        missing = [self.ids[1].decode()]
        found = self.slow("GET", f"{_QUEUES}/q").json
        self.assertEqual((2, 1, missing), (found["queued"], found["nodes"], found["nodes_missing"]))
        answer = self.slow("GET", f"{_QUEUES}/two")
        self.problem(404, "NOQUEUE", answer)
        self.assertEqual(
            "There is no such queue, unless at a node that does not answer.",
            answer.json["detail"],
        )
        self.silent.clear()
        answer = self.slow("GET", f"{_QUEUES}/none")
        self.assertEqual("There is no such queue.", answer.json["detail"])

    def moved(self, queue: str, **members: Any) -> int:
        """How many jobs are moved to ``to``."""
        answer = self.slow("POST", f"{_QUEUES}/{queue}/move", {"to": "to", **members})
        count: int = answer.json["count"]
        return count

    def lengths(self, queue: bytes) -> list[int]:
        """How many jobs each process has in a queue."""
        return [self.at(root, b"QLEN", queue) for root in (self.first, self.second)]

    def test_moved(self) -> None:
        """As many jobs are moved as are wanted, of one process after the other, and all of them
        without a number."""
        self.assertEqual(3, self.moved("q", count=3))
        self.assertEqual(([0, 2], 3), (self.lengths(b"q"), sum(self.lengths(b"to"))))
        self.assertEqual(2, self.moved("q"))
        self.assertEqual(([0, 0], 5), (self.lengths(b"q"), sum(self.lengths(b"to"))))
        self.assertEqual(0, self.moved("none"))

    def test_moved_by_name(self) -> None:
        """Jobs that are named are moved wherever they are, and no others."""
        job_id = self.add(self.second, b"q", b"named")
        self.assertEqual(1, self.moved("q", ids=[job_id]))
        self.assertEqual(([2, 3], [0, 1]), (self.lengths(b"q"), self.lengths(b"to")))
