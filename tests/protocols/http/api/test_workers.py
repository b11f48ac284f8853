"""Workers over HTTP: each once, and commands to them."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import ValueReplies
from disque_tx.commands.server.workers import announce
from disque_tx.core.base.client import Client
from disque_tx.protocols.http.api.workers import read
from tests.protocols.http.api.queues.test_queues import SlicedCase

_WORKERS = "/api/v1/workers"
_ID = "00c0ffee00c0ffee"


def said(**more: Any) -> bytes:
    """What a worker says about itself."""
    values: dict[str, Any] = {
        "id": _ID, "worker": "web1:7", "host": "web1", "pid": 7, "version": "1.1", "slots": 8,
        "control": True, "state": "idle", "held": 3, "running": 1, "done": 40, "failed": 2,
        "queues": ["mail"], "tasks": ["send"], "cut": False,
        "jobs": [{"id": "D-1", "queue": "mail", "task": "send", "for_s": 2.5, "progress": 0.5,
                  "note": "half"}],
        "behind": [{"queue": "mail", "queued": 12000, "oldest_s": 31.5}],
    }  # fmt: skip
    return json.dumps(values | more).encode()


def connection(root: Any, name: bytes = b"") -> Client:
    """A connection of a worker to this node."""
    server = root.runtime.server
    number = 1_000 + len(server.clients)
    client = Client(number, ValueReplies(), b"10.0.0.7:%d" % number, server.node.now_ms)
    client.name = name
    server.clients[number] = client
    return client


def announced(root: Any, text: bytes) -> None:
    """A connection says this about its worker."""
    announce(root.runtime.server, connection(root), [b"CLIENT", b"ANNOUNCE", text])


class WorkersCase(SlicedCase):
    """A node with connections of workers."""

    def announce(self, text: bytes) -> None:
        """A connection says this."""
        announced(self.root, text)

    def listed(self) -> list[dict[str, Any]]:
        """The workers in the answer."""
        found: list[dict[str, Any]] = self.slow("GET", _WORKERS).json["workers"]
        return found


class WorkersTests(WorkersCase):
    """``GET /workers``."""

    def test_described(self) -> None:
        """What a worker says about itself is shown, with how long ago it was."""
        self.announce(said())
        answer = self.http("GET", _WORKERS).json
        self.assertEqual((1, 1, []), (answer["total"], answer["nodes"], answer["nodes_missing"]))
        (worker,) = answer["workers"]
        self.assertLess(worker["heard_s"], 10)
        self.assertEqual((True, 1), (worker["connected"], len(worker["nodes"])))
        shown = {name: worker[name] for name in json.loads(said())}
        self.assertEqual(json.loads(said()) | {"jobs": worker["jobs"]}, shown)
        (job,) = worker["jobs"]
        self.assertAlmostEqual(2.5 + worker["heard_s"], job["for_s"])

    def test_once(self) -> None:
        """A worker with several connections is one worker: as it said last."""
        self.announce(said(held=1))
        self.reactor.advance(1)
        self.announce(said(held=2))
        (worker,) = self.listed()
        self.assertEqual(2, worker["held"])

    def test_named(self) -> None:
        """A worker of an earlier version is listed by the name of its connections, and one that
        describes itself is not listed by its name as well."""
        self.announce(said())
        for name in (b"disque-worker/web1:7/8/3/mail", b"disque-worker/old/8/14/mail,,"):
            connection(self.root, name)
        new, old = sorted(self.listed(), key=lambda worker: str(worker["id"]), reverse=True)
        self.assertEqual((_ID, "", None), (new["id"], old["id"], old["heard_s"]))
        self.assertEqual(
            ("old", 8, 14, ["mail"]), tuple(old[n] for n in ("worker", "slots", "held", "queues"))
        )

    def test_of_a_queue(self) -> None:
        """The workers of one queue are those that name it, as one that they serve or in which jobs
        wait for them."""
        self.announce(said(id="a", queues=["mail"], behind=[]))
        self.announce(said(id="b", queues=["x"]))
        self.announce(said(id="c", queues=["y*"], behind=[{"queue": "yes"}]))
        for queue, ids in (("mail", ["a", "b"]), ("yes", ["c"]), ("y", []), ("", [])):
            answer = self.slow("GET", f"{_WORKERS}?queue={queue}").json
            found = [worker["id"] for worker in answer["workers"]]
            self.assertEqual((ids, len(ids)), (found, answer["total"]))
        self.assertEqual(400, self.http("GET", f"{_WORKERS}?queue={'q' * 1_025}").status)

    def test_hostile(self) -> None:
        """Whatever a connection says, the list of workers has values that it may have."""
        odd: list[bytes] = [
            b"", b"x", b"[]", b"null", b"{" * 4_096, b"[" * 4_096, b'{"id": 1}', said(id="../x"),
            said(id=""), said(worker=""), said(worker=5), said(id="é"), said(id=["a"]),
        ]  # fmt: skip
        for text in odd:
            self.assertIsNone(read(text), text[:50])
            self.announce(text)
        self.assertEqual([], self.listed())
        wrong: dict[str, Any] = {
            "pid": -1, "slots": "8", "held": 10**300, "done": True, "failed": 1.5, "queues": "mail",
            "tasks": [1, {}, "t" * 1_000], "state": "exploding", "control": "yes", "host": None,
            "jobs": [1, {"id": [], "for_s": "x", "progress": 2, "note": "\ud800"}, {"for_s": -1}],
            "behind": [1, {"queue": ["mail"], "queued": -5, "oldest_s": "x"}],
        }  # fmt: skip
        self.announce(said(**wrong))
        text = said().replace(b"2.5", b"1e999").replace(_ID.encode(), b"1")
        self.announce(text)
        self.announce(said(id="2", jobs=[{}] * 500, queues=["q"] * 300))
        by_id = {one["id"]: one for one in self.listed()}
        self.assertEqual({"1", "2", _ID}, set(by_id))
        worker = by_id[_ID]
        self.assertEqual(
            [0] * 5, [worker[name] for name in ("pid", "slots", "held", "done", "failed")]
        )
        self.assertEqual(
            ([], ["", "", "t" * 256], "taking"),
            (worker["queues"], worker["tasks"], worker["state"]),
        )
        self.assertIs(False, worker["control"])
        self.assertEqual([{"queue": "", "queued": 0, "oldest_s": 0}], worker["behind"])
        first, second = worker["jobs"]
        self.assertEqual(("", 0, "?"), (first["id"], first["progress"], first["note"]))
        self.assertLess(second["for_s"], 10)
        self.assertLess(by_id["1"]["jobs"][0]["for_s"], 10)
        self.assertEqual((100, 100), (len(by_id["2"]["jobs"]), len(by_id["2"]["queues"])))


class TellTests(WorkersCase):
    """``POST /workers/{id}/command``."""

    def tell(self, command: object, worker: str = _ID) -> Any:
        """Send a command."""
        return self.http("POST", f"{_WORKERS}/{worker}/command", {"command": command})

    def test_told(self) -> None:
        """A command is a job that one worker alone gets, once and soon or never; everybody sees
        who sent it."""
        self.announce(said())
        self.assertEqual({"told": True}, self.tell("stop").json)
        ((_, job_id, body),) = self.call(
            b"GETJOB", b"NOHANG", b"FROM", f"worker-control:{_ID}".encode()
        )
        self.assertEqual({"command": "stop", "by": "HTTP client 127.0.0.1"}, json.loads(body))
        shown = self.call(b"SHOW", job_id)
        fields = dict(zip(shown[::2], shown[1::2], strict=True))
        self.assertEqual((0, 1), (fields[b"retry"], fields[b"repl"]))
        self.assertLessEqual(fields[b"ttl"], 60)
        newest = self.http("GET", "/api/v1/actions").json["actions"][0]
        self.assertEqual(("WORKER web1:7 stop", None), (newest["what"], newest["jobs"]))

    def test_refused(self) -> None:
        """Nothing is sent to a worker that takes no commands, or is none, or with a word that is no
        command."""
        self.announce(said(control=False))
        self.announce(said(id="1"))
        self.problem(409, "NOCONTROL", self.tell("stop"))
        self.problem(404, "NOWORKER", self.tell("stop", "0123456789abcdef"))
        for odd in ("exec", "", None, 5, ["stop"], {"stop": 1}):
            self.problem(400, "ERR", self.tell(odd, "1"))
        self.assertEqual([], self.http("GET", "/api/v1/queues").json["queues"])


class ReadTests(SynchronousTestCase):
    """What is taken of a worker's description, value by value."""

    def read(self, **changes: Any) -> dict[str, Any]:
        """What a description says, with these members."""
        found = read(json.dumps({"id": "a1", "worker": "w", **changes}).encode())
        assert found is not None
        return found

    def test_little(self) -> None:
        """A worker that says no more than who it is takes jobs, and has nothing."""
        numbers = dict.fromkeys(("pid", "slots", "held", "running", "done", "failed"), 0)
        lists: dict[str, Any] = {"queues": [], "tasks": [], "jobs": [], "behind": []}
        words = {"id": "a1", "worker": "w", "host": "", "version": "", "state": "taking"}
        flags = {"control": False, "cut": False}
        self.assertEqual({**words, **numbers, **lists, **flags}, self.read())

    def test_numbers(self) -> None:
        """Counts are whole numbers from 0 to 2^40; anything else is 0."""
        most = 1 << 40
        for given, taken in (
            (0, 0), (1, 1), (most, most), (most + 1, 0), (-1, 0), (1.0, 0), (True, 0), ("1", 0),
        ):  # fmt: skip
            self.assertEqual(taken, self.read(held=given)["held"], given)
        times = ((0.5, 0.5), (float(most), most), (most + 1.0, 0), (-0.1, 0), (True, 0))
        for for_s, known_s in times:
            named = {"id": "D-1", "queue": "q", "task": "t"}
            (job,) = self.read(jobs=[{**named, "for_s": for_s}])["jobs"]
            self.assertEqual({**named, "for_s": known_s}, job)
            (row,) = self.read(behind=[{"queue": "q", "queued": 2, "oldest_s": for_s}])["behind"]
            self.assertEqual({"queue": "q", "queued": 2, "oldest_s": known_s}, row)
        for share, known in ((0, 0), (0.25, 0.25), (1, 1), (1.1, 0), (-1, 0), ("1", 0)):
            (job,) = self.read(jobs=[{"progress": share, "note": "half"}])["jobs"]
            self.assertEqual((known, "half"), (job["progress"], job["note"]))

    def test_sizes(self) -> None:
        """Texts have 256 characters, and lists 100 items."""
        for size in (255, 256, 257, 1_000):
            self.assertEqual("é" * min(size, 256), self.read(host="é" * size)["host"])
        for size in (99, 100, 101):
            names = [str(number) for number in range(size)]
            found = self.read(queues=names, tasks=names, jobs=[{}] * size, behind=[{}] * size)
            self.assertEqual((names[:100], names[:100]), (found["queues"], found["tasks"]))
            self.assertEqual([min(size, 100)] * 2, [len(found["jobs"]), len(found["behind"])])
        self.assertEqual(["a", ""], self.read(queues=["a", 1])["queues"])
        self.assertEqual([], self.read(jobs=[1, "x"])["jobs"])

    def test_words(self) -> None:
        """States are those that there are, and flags are true or not; who has no usable ID, or no
        name, is nobody."""
        for state in ("taking", "idle", "stopping"):
            self.assertEqual(state, self.read(state=state)["state"])
        self.assertEqual("taking", self.read(state="dancing")["state"])
        for name in ("control", "cut"):
            for given, taken in ((True, True), (1, False), ("true", False), (None, False)):
                self.assertIs(taken, self.read(**{name: given})[name])
        for changes in ({"id": ""}, {"id": "a-b"}, {"id": "\u00e9"}, {"id": 1}, {"worker": ""}):
            self.assertIsNone(read(json.dumps({"id": "a1", "worker": "w", **changes}).encode()))
