"""Schedules over HTTP."""

from __future__ import annotations

from typing import Any

from tests.protocols.http.httpbench import Answer, HttpCase, parsed, request, whole

_NIGHTLY = "/api/v1/schedules/nightly"
_NEW: dict[str, Any] = {"cron": "0 3 * * *", "queue": "reports", "body": "make"}


class ScheduleTests(HttpCase):
    """Jobs that recur."""

    def put(self, **members: Any) -> Answer:
        """Set the schedule; a member that is ``None`` is left out."""
        body = {name: value for name, value in (_NEW | members).items() if value is not None}
        return self.http("PUT", _NIGHTLY, body)

    def test_set(self) -> None:
        """A schedule is set with all its options, and shows when it is due."""
        options = {"tz": "Europe/Berlin", "missed": "one", "retry_s": 60, "replicate": 1}
        answer = self.put(**options)
        self.assertEqual(200, answer.status, answer.body)
        shown = answer.json
        self.assertEqual(shown, self.http("GET", _NIGHTLY).json)
        self.assertEqual(("0 3 * * *", "Europe/Berlin"), (shown["when"], shown["zone"]))
        self.assertEqual(("reports", "make", "one"), tuple(shown[n] for n in _SHOWN))
        self.assertEqual(["REPLICATE", "1", "RETRY", "60"], shown["options"])
        self.assertEqual((5, None, False), (len(shown["next_s"]), shown["last_s"], shown["paused"]))
        listed = self.http("GET", "/api/v1/schedules").json
        names = [schedule["name"] for schedule in listed["schedules"]]
        self.assertEqual((1, ["nightly"]), (listed["total"], names))

    def test_replaced(self) -> None:
        """Setting it again replaces it: what is not named is not kept."""
        self.put(retry_s=60)
        shown = self.put(cron=None, every_s=30, body=None, body_base64="/w==").json
        self.assertEqual(("EVERY 30", []), (shown["when"], shown["options"]))
        self.assertEqual("/w==", shown["body_base64"])

    def test_pause(self) -> None:
        """A schedule can be paused and resumed, and the answer says whether that changed it."""
        self.put()
        for verb, changed in (("pause", True), ("pause", False), ("resume", True)):
            answer = self.http("POST", f"{_NIGHTLY}/{verb}")
            self.assertEqual({"changed": changed}, answer.json)
        self.http("POST", f"{_NIGHTLY}/pause")
        shown = self.http("GET", _NIGHTLY).json
        self.assertEqual((True, []), (shown["paused"], shown["next_s"]))

    def test_run(self) -> None:
        """Its job can be added now."""
        self.put()
        answer = self.http("POST", f"{_NIGHTLY}/run")
        self.assertEqual(201, answer.status)
        ((_queue, job_id, body),) = self.call(b"GETJOB", b"FROM", b"reports")
        self.assertEqual((answer.json["id"].encode(), b"make"), (job_id, body))

    def test_delete(self) -> None:
        """It can be deleted; a schedule that is not there is an error for all but that."""
        self.put()
        self.assertEqual({"changed": True}, self.http("DELETE", _NIGHTLY).json)
        self.assertEqual({"changed": False}, self.http("DELETE", _NIGHTLY).json)
        self.problem(404, "NOSCHEDULE", self.http("GET", _NIGHTLY))
        for verb in ("pause", "resume", "skip", "run"):
            self.problem(404, "NOSCHEDULE", self.http("POST", f"{_NIGHTLY}/{verb}"))

    def test_skip(self) -> None:
        """Its next occurrence is left out, and the answer says which."""
        self.put()
        first, second = self.http("GET", _NIGHTLY).json["next_s"][:2]
        self.assertEqual({"skipped_s": first}, self.http("POST", f"{_NIGHTLY}/skip").json)
        self.assertEqual(second, self.http("GET", _NIGHTLY).json["next_s"][0])

    def test_refused(self) -> None:
        """What cannot be is refused with its reason, and nothing is set."""
        for members, word in (
            ({"cron": None}, "cron"), ({"every_s": 5}, "cron"), ({"cron": "x"}, "cron"),
            ({"cron": 5}, "string"), ({"cron": "every"}, "every_s"), ({"queue": None}, "queue"),
            ({"cron": None, "every_s": 0}, "every_s"), ({"tz": "Mars/Base"}, "time zone"),
            ({"missed": "two"}, "MISSED"), ({"unique": "k"}, "unique"), ({"ttl_s": "x"}, "ttl_s"),
            ({"cron": "\ud800"}, "cron"), ({"body": "x" * 20_000}, "Body"),
            ({"tz": "UTC", "missed": "QUEUE"}, "MISSED"),
        ):  # fmt: skip
            answer = self.put(**members)
            self.problem(400, "ERR", answer)
            self.assertIn(word, answer.json["detail"])
        self.assertEqual(0, self.http("GET", "/api/v1/schedules").json["total"])

    def test_pages(self) -> None:
        """Many schedules come in pages."""
        for number in range(5):
            self.http("PUT", f"/api/v1/schedules/s{number}", _NEW)
        page = self.http("GET", "/api/v1/schedules?limit=2&offset=3").json
        self.assertEqual((5, ["s3", "s4"]), (page["total"], [s["name"] for s in page["schedules"]]))

    def test_deleted_meanwhile(self) -> None:
        """A schedule that is deleted while a long list is made is left out, and no other one."""
        names = [f"s{number:03d}" for number in range(40)]
        for name in names:
            words = (b"SCHEDULE", b"SET", name.encode(), b"EVERY", b"60", b"QUEUE", b"q", b"x")
            self.call(*words)
        channel, transport = self.connect()
        channel.dataReceived(request("GET", "/api/v1/schedules?limit=1000"))
        self.assertFalse(whole(transport.value()))
        self.call(b"SCHEDULE", b"DEL", b"s030")
        self.let_answer(transport, complete=True)
        listed = parsed(transport.value())[0].json["schedules"]
        self.assertEqual([n for n in names if n != "s030"], [one["name"] for one in listed])

    def test_readers(self) -> None:
        """Whoever has the read-only password can look at schedules."""
        self.put()
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"
        look = {"Authorization": "Bearer look"}
        self.assertEqual(200, self.http("GET", _NIGHTLY, **look).status)
        self.assertEqual(200, self.http("GET", "/api/v1/schedules", **look).status)
        self.problem(403, "NOPERM", self.http("DELETE", _NIGHTLY, **look))


_SHOWN = ("queue", "body", "missed")
