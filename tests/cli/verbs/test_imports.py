"""``disque import``: which jobs of RQ can be moved, and addresses of beanstalkd."""

from __future__ import annotations

import io
import json
import os
import pickle
import zlib
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.imports.beanstalk import address_of
from disque_tx.cli.verbs.imports.outcome import ImportOutcome, SourceFailed
from disque_tx.cli.verbs.imports.rqjobs import CannotMove, RQCall, call_of


class _Attack:
    """Would run a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return (os.system, ("touch hacked",))


def _fields(call: object, **more: bytes) -> dict[bytes, bytes]:
    data = call if isinstance(call, bytes) else pickle.dumps(call)
    fields = {b"data": zlib.compress(data), b"status": b"queued"}
    return fields | {name.encode(): value for name, value in more.items()}


def _moved(call: object, ttl_ms: int = -1, **more: bytes) -> RQCall:
    return call_of("id", "q", _fields(call, **more), ttl_ms)


class CallTests(SynchronousTestCase):
    """``call_of``."""

    def reason(self, call: object, **more: bytes) -> str:
        """Why a job stays."""
        return str(self.assertRaises(CannotMove, _moved, call, **more))

    def test_call(self) -> None:
        """A plain call becomes the call of a task, and says which job of RQ it was."""
        call = ("shop.mail", None, (1, "ü", None), {"a": [1.5, {"b": (True,)}]})
        found = _moved(call, timeout=b"180", created_at=b"2026-11-23T00:00:00.000000Z")
        about = {"id": "id", "queue": "q", "created_at": "2026-11-23T00:00:00.000000Z"}
        self.assertEqual(
            {
                "task": "shop.mail",
                "args": [1, "ü", None],
                "kwargs": {"a": [1.5, {"b": [True]}]},
                "rq": about | {"timeout": "180"},
            },
            json.loads(found.body),
        )
        self.assertIsNone(found.ttl_s)

    def test_all_protocols(self) -> None:
        """Every protocol of pickle can be read, and RQ's JSON, and data that is not compressed."""
        call: Any = ("f", None, ("x", 2**70), {"k": {}})
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            data = pickle.dumps(call, protocol)
            self.assertIn(b'"task":"f"', _moved(data).body)
            self.assertIn(b'"task":"f"', call_of("id", "q", {b"data": data}, -1).body)
        self.assertIn(b'"task":"f"', _moved(json.dumps(["f", None, [1], {}]).encode()).body)

    def test_ttl(self) -> None:
        """A job that RQ would drop after some time is dropped after it here, too."""
        self.assertEqual(1.5, _moved(("f", None, (), {}), 1500).ttl_s)

    def test_ttl_over(self) -> None:
        """A job that RQ deletes in this moment does not get a new life by being moved."""
        for ttl_ms in (0, -2):
            error = self.assertRaises(CannotMove, _moved, ("f", None, (), {}), ttl_ms)
            self.assertIn("expired", str(error))

    def test_no_code(self) -> None:
        """To read a job never runs code that somebody has put into Redis."""
        self.assertIn("system", self.reason(("f", None, (_Attack(),), {})))
        self.assertFalse(os.path.exists("hacked"))

    def test_values(self) -> None:
        """Arguments that JSON would change or cannot carry are left with RQ."""
        for value in (b"bytes", {1: 2}, float("nan"), {1, 2}, print):
            self.assertIn("its arguments hold a", self.reason(("f", None, (value,), {})))

    def test_more_than_a_call(self) -> None:
        """Jobs that others depend on, or that do more than a call, are left with RQ."""
        call: Any = ("f", None, (), {})
        for name in ("dependency_ids", "success_callback_name", "repeats_left", "group_id"):
            self.assertTrue(self.reason(call, **{name: b'["x"]'}))
        self.assertIn("started", self.reason(call, status=b"started"))
        self.assertIn("method", self.reason(("f", "object", (), {})))
        _moved(call, group_id=b"", dependency_ids=b"[]")

    def test_damaged(self) -> None:
        """Damaged and hostile data is a reason to stay, not a crash."""
        wide: list[Any] = [1]
        for _ in range(40):
            wide = [wide, wide]
        loop: list[Any] = []
        loop.append(loop)
        for value in (wide, loop):
            self.assertRaises(CannotMove, _moved, ("f", None, (value,), {}))
        deep = b'["f",null,' + b"[" * 100_000 + b"]" * 100_000 + b",{}]"
        self.assertRaises(CannotMove, _moved, deep)
        for data in (b"", b"\x80", b"[", b"x", pickle.dumps(1), pickle.dumps((1, 2, 3, 4))):
            self.assertRaises(CannotMove, _moved, data)
        for arguments in (b"{},{}", b"[],[]", b"null,{}", b"[],null"):
            self.assertRaises(CannotMove, _moved, b'["f",null,' + arguments + b"]")
        self.assertRaises(CannotMove, call_of, "id", "q", {}, -2)
        cut = zlib.compress(pickle.dumps(("f", None, ("x" * 1000,), {})))[:-5]
        self.assertRaises(CannotMove, call_of, "id", "q", {b"data": cut}, -1)


class AddressTests(SynchronousTestCase):
    """``address_of``."""

    def test_addresses(self) -> None:
        """Addresses are written as everywhere; those that cannot be used are errors for people."""
        for text, expected in (
            ("a", ("a", 11300)),
            ("a:1", ("a", 1)),
            ("[::1]:2", ("::1", 2)),
            ("[::1]", ("::1", 11300)),
            ("beanstalk://a:1/", ("a", 1)),
        ):
            self.assertEqual(expected, address_of(text))
        for text in ("", ":1", "a:b", "a:0", "a:99999"):
            self.assertRaises(SourceFailed, address_of, text)


class OutcomeTests(SynchronousTestCase):
    """``ImportOutcome``."""

    def test_figures(self) -> None:
        """Every job that was looked at is in the figures: moved, moved perhaps twice, or left with
        its reason."""
        seen: list[int] = []
        outcome = ImportOutcome(False, seen.append)
        output, error = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(error):
            outcome.add()
            outcome.add(again=True)
            outcome.leave("mail", "id-1", "its arguments hold a set")
            outcome.leave("mail", "3 jobs", "they depend on other jobs", 3)
            outcome.report()
        left = "left\tmail\tid-1\tits arguments hold a set\n"
        left += "left\tmail\t3 jobs\tthey depend on other jobs\n"
        self.assertEqual(left, output.getvalue())
        figures, again = error.getvalue().splitlines()
        self.assertEqual("2 jobs moved, 4 left", figures)
        self.assertTrue(again.startswith("1 of them"), again)
        self.assertEqual([1, 1], seen)

    def test_reader_gone(self) -> None:
        """The figures count a job that stays even if nobody reads the list, such as ``head``."""
        reading, writing = os.pipe()
        os.close(reading)
        outcome = ImportOutcome(True, lambda count: None)
        output = os.fdopen(writing, "w", buffering=1)
        with redirect_stdout(output):
            self.assertRaises(BrokenPipeError, outcome.leave, "mail", "3 jobs", "reserved", 3)
        self.assertEqual(3, outcome.left)
        self.assertRaises(BrokenPipeError, output.close)
