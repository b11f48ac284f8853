"""What happened to a job."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from disque_tx.messages import events
from disque_tx.messages.records import JobRecord
from disque_tx.protocols.http.api.jobs import life
from disque_tx.wire.events.records import HEADER, MAGIC, EventRecorder
from tests.protocols.http.api.queues.test_queues import SlicedCase
from tests.protocols.http.httpbench import parsed, request

NODE = b"3c0f1d52" * 5
JOB = b"D-3c0f1d52-00000000000000000000/+01-05a1"
_PATH = f"/api/v1/jobs/{quote(JOB.decode(), safe='')}/events"


def _at(second: int) -> str:
    """The time of an event, so many seconds after the first clock's zero."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class LifeTests(SlicedCase):
    """Events of one job in the event log."""

    def log(self, times: int = 1) -> None:
        """A log in which a job was delivered, and returned with a reason."""
        folder = Path(self.mktemp())
        folder.mkdir()
        recorder = EventRecorder()
        job = JobRecord(JOB, b"q", b"x", (NODE,), 0, 0, delay_s=0, retry_s=60, repl=1)
        for _ in range(times):
            recorder.wall_us += 1_000_000
            recorder.job(events.DELIVERED, job, events.NO_REASON, 7, 20)
            recorder.wall_us += 1_000_000
            recorder.noted(events.NACKED, job, events.NO_REASON, 0, 1_000, b"<b>no</b>")
        data = HEADER.pack(MAGIC, NODE, 1, 0, 0) + recorder.take()
        (folder / "_open-3c0f1d52-1-000000000000.events").write_bytes(data)
        self.settings.eventlog, self.settings.eventlog_dir = True, str(folder)

    def test_life(self) -> None:
        """Who looks for a job that failed sees when, where and why, oldest first, also when the
        node does not know the job any more."""
        self.log()
        answer = self.slow("GET", _PATH).json
        self.assertEqual((True, True), (answer["log"], answer["complete"]))
        first, second = answer["events"]
        self.assertEqual(("delivered", 20, "7"), (first["kind"], first["wait_ms"], first["client"]))
        self.assertEqual(("nacked", 1_000), (second["kind"], second["run_ms"]))
        self.assertEqual("<b>no</b>", second["note"])
        self.assertEqual(f"disque:{NODE.decode()}", second["node"])
        self.assertEqual("1970-01-01T00:00:02.000000Z", second["time"])

    def test_off(self) -> None:
        """Without the log there are no events, and the answer says why."""
        answer = self.http("GET", _PATH).json
        self.assertEqual((False, False, []), (answer["log"], answer["complete"], answer["events"]))

    def test_many(self) -> None:
        """A job that never succeeds has more events than anybody reads: the newest are shown."""
        self.log(times=life.EVENTS_MAX)
        answer = self.slow("GET", _PATH).json
        self.assertEqual(False, answer["complete"])
        shown = [event["time"][:19] for event in answer["events"]]
        self.assertEqual(life.EVENTS_MAX, len(shown))
        first, last = life.EVENTS_MAX + 1, 2 * life.EVENTS_MAX
        self.assertEqual([_at(first), _at(last)], [shown[0], shown[-1]])
        self.assertTrue(all(one < other for one, other in pairwise(shown)))

    def test_endless(self) -> None:
        """A node that always has another part does not keep the request busy for ever."""
        self.log(times=100)
        self.patch(life, "PARTS_MAX", 2)
        answer = self.slow("GET", _PATH).json
        self.assertEqual((100, False), (len(answer["events"]), answer["complete"]))

    def test_busy(self) -> None:
        """Few lookups at a time: a log is long, and the node has other work."""
        self.log(times=100)
        waiting = [self.connect() for _ in range(3)]
        for channel, _ in waiting:
            channel.dataReceived(request("GET", _PATH))
        refused = parsed(waiting[2][1].value())[0]
        self.problem(503, "TRYLATER", refused)
        for _, transport in waiting[:2]:
            self.let_answer(transport)
            self.assertEqual(200, parsed(transport.value())[0].status)

    def test_no_id(self) -> None:
        """What is no ID of a job could be found in every line of the log, and is refused."""
        self.log()
        for bad in ("D", "x" * 40, JOB.decode()[:39], JOB.decode().replace("-", "_")):
            path = f"/api/v1/jobs/{quote(bad, safe='')}/events"
            self.problem(400, "BADID", self.http("GET", path))

    def test_gone(self) -> None:
        """Nothing is looked up for a client that went away."""
        self.log()
        for _ in range(5):
            channel, _transport = self.connect()
            channel.dataReceived(request("GET", _PATH))
            self.hang_up(channel)
        self.assertEqual(200, self.slow("GET", _PATH).status)
