"""The process in which handlers may crash: what it makes of requests."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Job
from disque_tx.worker import Context, Hopeless, Queue, current_job
from disque_tx.worker.running.child import ProcessContext, resolve, serve

tasks = Queue("tasks")
_CALL = json.dumps({"task": "double", "args": [21], "reply": "result:" + "0" * 32}).encode()


@tasks.job(result=True)
def double(number: int) -> int:
    """A task with a result."""
    return 2 * number


def described(job: Context) -> None:
    """Say what is known of the job, as the reason of a failure."""
    assert job is current_job()
    words = (job.queue, job.id, job.body, job.job.nacks, job.job.additional_deliveries, job.worker)
    raise ValueError(repr(words))


def hopeless(job: Context) -> None:
    """Fail for good, after some progress."""
    job.progress(0.25, "begun")
    raise Hopeless("no such customer")


def leave(job: Context) -> None:
    """End the process, as far as a handler can."""
    raise SystemExit(3)


class ServeTests(SynchronousTestCase):
    """``serve``."""

    def answers(self, *requests: tuple[str, bytes]) -> list[dict[str, Any]]:
        """The lines that follow these requests: targets and bodies."""
        asked = io.BytesIO()
        for target, body in requests:
            request = {"target": target, "queue": "q", "id": "D-1", "worker": "w"}
            request["body"] = b64encode(body).decode()
            asked.write(json.dumps({**request, "nacks": 1, "additional_deliveries": 2}).encode())
            asked.write(b"\n")
        asked.seek(0)
        given = io.BytesIO()
        serve(asked, given)
        return [json.loads(line) for line in given.getvalue().splitlines()]

    def test_each(self) -> None:
        """One job after the other is done in the same process, whatever the one before did; each
        has one answer, behind its progress."""
        first, begun, second, third, fourth = self.answers(
            (f"{__name__}:described", b"\xff"),
            (f"{__name__}:hopeless", b""),
            (f"{__name__}:leave", b""),
            (f"{__name__}:double", _CALL),
        )
        self.assertEqual("ValueError: ('q', 'D-1', b'\\xff', 1, 2, 'w')", first["error"])
        self.assertIn("in described", first["trace"])
        self.assertFalse(first["hopeless"])
        self.assertEqual({"progress": [0.25, "begun"]}, begun)
        self.assertEqual(
            ("Hopeless: no such customer", True), (second["error"], second["hopeless"])
        )
        self.assertEqual(("SystemExit: 3", False), (third["error"], third["hopeless"]))
        self.assertEqual({"error": None, "value": b64encode(b"42").decode()}, fourth)

    def test_between(self) -> None:
        """When a handler has ended, however it ended, there is no current job, so that what runs
        afterwards in the process is not taken for a part of it."""
        for name in ("double", "leave", "hopeless"):
            self.answers((f"{__name__}:{name}", _CALL))
            self.assertRaises(LookupError, current_job)

    def test_missing(self) -> None:
        """A handler that is gone, for example after a new version, is a failure of its job."""
        ((gone,), (away,)) = (
            self.answers((f"{__name__}:gone", b"")),
            self.answers(("no_such_module:gone", b"")),
        )
        self.assertIn("AttributeError", gone["error"])
        self.assertIn("ModuleNotFoundError", away["error"])

    def test_resolve(self) -> None:
        """Methods of classes are found as well."""
        self.assertIs(ServeTests.test_resolve, resolve(f"{__name__}:ServeTests.test_resolve"))


class ProgressTests(SynchronousTestCase):
    """A handler that reports often."""

    def test_latest(self) -> None:
        """The first report is passed on at once, and later the latest of those that follow; after
        the end nothing is, so no answer is taken for that of the next job."""
        sent: list[dict[str, Any]] = []
        context = ProcessContext(Job("q", "D-1", b""), "w", sent.append)
        for number in range(4):
            context.progress(number / 4, "n")
        self.assertEqual([{"progress": [0.0, "n"]}], sent)
        assert context._timer is not None
        context._timer.join(10)
        self.assertEqual([{"progress": [0.0, "n"]}, {"progress": [0.75, "n"]}], sent)
        self.assertIsNone(context._timer)
        context.progress(0.8)
        context.end()
        self.assertTrue(context._timer.finished.is_set())
        context.progress(0.9)
        assert context.reported is not None
        context._after(context.reported)
        self.assertEqual({"progress": [0.8, ""]}, sent[-1])
        self.assertEqual(3, len(sent))
