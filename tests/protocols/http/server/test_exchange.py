"""What of a request is read, and what is refused with which words: exact limits."""

from __future__ import annotations

import json
import math

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.server.exchange import exact, whole
from disque_tx.protocols.http.server.problems import Problem
from tests.protocols.http.httpbench import HttpCase, request

_QUEUES = "/api/v1/queues"
_ACK = "/api/v1/jobs/ack"


class NumberTests(SynchronousTestCase):
    """Numbers in requests and answers."""

    def test_whole(self) -> None:
        """Numbers are numbers or digits, within their limits, which are allowed themselves."""
        for given, number in (("1", 1), ("9", 9), (1, 1), (9, 9), ("09", 9), ("0" * 19 + "9", 9)):
            self.assertEqual(number, whole("n", given, 1, 9))
        for wrong in ("0", "10", 0, 10, "", "-1", "+1", " 1", "1.0", 1.0, True, None, "\u0661"):
            error = self.assertRaises(Problem, whole, "n", wrong, 1, 9)
            self.assertEqual("n must be a whole number from 1 to 9.", error.detail)
        self.assertRaises(Problem, whole, "n", "0" * 20 + "9", 1, 9)

    def test_exact(self) -> None:
        """Numbers that JavaScript would round are text, and those that JSON does not have are
        null, however deep they are."""
        most = 2**53 - 1
        given = {"a": [most, -most, most + 1, -most - 1], "b": (True, 1.5, math.inf, -math.nan)}
        expected = {"a": [most, -most, str(most + 1), str(-most - 1)], "b": [True, 1.5, None, None]}
        self.assertEqual(expected, exact(given))
        self.assertIs(True, exact(True))


class WordTests(HttpCase):
    """Words of the query, and members of the body."""

    def said(self, path: str, status: int = 400) -> str:
        """Why this path is refused."""
        answer = self.http("GET", path)
        self.assertEqual(status, answer.status, answer.body)
        return str(answer.json["detail"])

    def test_query(self) -> None:
        """A word that is wrong in any way is named, with what would be right."""
        cases = {
            "match=" + "x" * 257: "match has 256 bytes at most.",
            "match=" + "%C3%A9" * 129: "match has 256 bytes at most.",
            "sort=size": "sort must be one of name, queued, oldest_s, blocked, jobs_in, jobs_out.",
            "limit=0": "limit must be a whole number from 1 to 1000.",
            "limit=1001": "limit must be a whole number from 1 to 1000.",
            "offset=100001": "offset must be a whole number from 0 to 100000.",
            "limit=": "limit must be a whole number from 1 to 1000.",
            "zz=1&yy=1": "There is no parameter 'yy' here.",
            "y" * 60 + "=1": f"There is no parameter {'y' * 50!r} here.",
            "limit=1&limit=2": "A parameter occurs twice.",
            "match=%FF": "The query is malformed.",
            "&".join(f"a{number}=1" for number in range(51)): "The query is malformed.",
            "&".join(f"a{number}=1" for number in range(50)): "There is no parameter 'a0' here.",
        }
        for query, why in cases.items():
            self.assertEqual(why, self.said(f"{_QUEUES}?{query}"), query)
        for query in (
            "match=" + "x" * 256,
            "match=" + "%C3%A9" * 128,
            "limit=1000",
            "offset=100000",
        ):
            self.assertEqual(200, self.http("GET", f"{_QUEUES}?{query}").status, query)
        self.assertEqual("The parameter text is missing.", self.said("/api/v1/search"))

    def refused(self, body: object, kind: str = "application/json") -> tuple[int, str]:
        """The status and the reason for a body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.exchange(request("POST", _ACK, data, Content_Type=kind))
        return answer.status, str(answer.json.get("detail"))

    def test_body(self) -> None:
        """A body is an object of the members that the route knows, in JSON, and says that it is
        JSON."""
        self.assertEqual(400, self.refused({"ids": []})[0])
        not_json = (400, "The body is not valid JSON.")
        for data in (b"{", b"[" * 30_000, b'{"ids":[NaN]}', b"\xff", b'{"ids":[-Infinity]}'):
            self.assertEqual(not_json, self.refused(data), data[:20])
        others: list[object] = [[], 1, "x", None]
        for value in others:
            self.assertEqual((400, "The body must be an object."), self.refused(value))
        unknown = {"zz": 1, "y" * 60: 1}
        self.assertEqual((400, f"There is no member {'y' * 50!r} here."), self.refused(unknown))
        kind = (415, "The body must be JSON, of type application/json.")
        for name in ("text/plain", "", "application/jsonx"):
            self.assertEqual(kind, self.refused({}, name))
        for name in ("Application/JSON", "application/json; charset=utf-8"):
            self.assertEqual(400, self.refused({}, name)[0])

    def test_values(self) -> None:
        """A large body has 12,000 values at most; a small one as many as there is room for."""
        many = (413, "The body of this request may have 12000 values at most.")
        padding = b" " * 65_536
        for data in (b"[" * 12_001, b"{" * 12_001, b"," * 12_001, b"[,{" * 4_000 + b"["):
            self.assertEqual(many, self.refused(data + padding))
            self.assertEqual(400, self.refused(data + padding[: 65_536 - len(data)])[0])
        self.assertEqual(400, self.refused(b"[" * 12_000 + padding)[0])
