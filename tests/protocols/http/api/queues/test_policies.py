"""Policies over HTTP."""

from __future__ import annotations

from typing import Any

from tests.protocols.http.httpbench import HttpCase

_MAIL = "/api/v1/policies/mail%3A%2A"


class PolicyTests(HttpCase):
    """Settings of queues by pattern."""

    def test_page(self) -> None:
        """A page costs as much as the policies on it: each is asked for alone, and no other."""
        for number in range(20):
            self.call(b"QPOLICY", b"SET", b"p%02d*" % number, b"ttl", b"60")
        before = self.calls()
        page = self.http("GET", "/api/v1/policies?limit=2&offset=5").json
        self.assertEqual(["p05*", "p06*"], [policy["pattern"] for policy in page["policies"]])
        self.assertEqual((20, 2), (page["total"], self.calls() - before))

    def calls(self) -> int:
        """How often QPOLICY was called."""
        return sum(n for name, n, _us in self.host.view.commands() if name == "qpolicy")

    def test_set(self) -> None:
        """Settings of all types arrive; those that are not named stay."""
        settings = {"ttl": 60, "retry-delay": 0.5, "retry-on-timeout": True, "overflow": "reject"}
        answer = self.http("POST", _MAIL, {"settings": settings})
        self.assertEqual(200, answer.status, answer.body)
        shown = {"ttl": "60", "retry-delay": "0.5", "retry-on-timeout": "yes", "overflow": "reject"}
        self.assertEqual({"pattern": "mail:*", "url": _MAIL, "settings": shown}, answer.json)
        changed = self.http("POST", _MAIL, {"settings": {"ttl": 61}}).json["settings"]
        self.assertEqual(shown | {"ttl": "61"}, changed)
        self.assertEqual(answer.json | {"settings": changed}, self.http("GET", _MAIL).json)

    def test_sizes(self) -> None:
        """A request sets 1 to 100 settings; others are refused before the node sees them."""
        said = "settings must be an object with 1 to 100 members."
        many = {f"s{number}": 1 for number in range(101)}
        wrong: list[Any] = [{}, many, [], None, "ttl"]
        for settings in wrong:
            answer = self.http("POST", _MAIL, {"settings": settings})
            self.assertEqual((400, said), (answer.status, answer.json["detail"]))
        del many["s100"]
        answer = self.http("POST", _MAIL, {"settings": many})
        self.assertEqual(400, answer.status)
        self.assertNotEqual(said, answer.json["detail"])

    def test_in_force(self) -> None:
        """A queue shows which settings it has, and from which patterns."""
        self.http("POST", _MAIL, {"settings": {"ttl": 60, "retry": 5}})
        self.http("POST", "/api/v1/policies/mail%3Aa", {"settings": {"ttl": 90}})
        found = self.http("GET", "/api/v1/queues/mail%3Aa/policy").json["settings"]
        self.assertEqual({"value": "90", "pattern": "mail:a"}, found["ttl"])
        self.assertEqual({"value": "5", "pattern": "mail:*"}, found["retry"])
        self.assertEqual({"settings": {}}, self.http("GET", "/api/v1/queues/x/policy").json)

    def test_pages(self) -> None:
        """Many policies come in pages."""
        for number in range(5):
            self.http("POST", f"/api/v1/policies/p{number}", {"settings": {"ttl": 60}})
        page = self.http("GET", "/api/v1/policies?limit=2&offset=1").json
        names = [policy["pattern"] for policy in page["policies"]]
        self.assertEqual((5, ["p1", "p2"]), (page["total"], names))

    def test_delete(self) -> None:
        """Some settings of a pattern can be deleted, or all."""
        self.http("POST", _MAIL, {"settings": {"ttl": 60, "retry": 5, "delay": 1}})
        self.assertEqual({"count": 2}, self.http("DELETE", f"{_MAIL}?settings=ttl,delay").json)
        self.assertEqual({"retry": "5"}, self.http("GET", _MAIL).json["settings"])
        self.assertEqual({"count": 1}, self.http("DELETE", _MAIL).json)
        self.problem(404, "NOPOLICY", self.http("GET", _MAIL))

    def test_refused(self) -> None:
        """A typing error changes nothing: all settings of a request are checked first."""
        refused: list[Any] = [
            {}, [], None, {"ttl": 60, "tll": 1}, {"ttl": None}, {"ttl": [1]}, {"ttl": 1.5},
            {"ttl": "x"}, {"\ud800": "1"}, {"copy-to": "\ud800"}, {"retry-delay": 1e300},
            {f"s{number}": 1 for number in range(101)},
        ]  # fmt: skip
        for settings in refused:
            self.problem(400, "ERR", self.http("POST", _MAIL, {"settings": settings}))
        self.problem(400, "ERR", self.http("POST", _MAIL, {"ttl": 60}))
        self.problem(400, "ERR", self.http("DELETE", f"{_MAIL}?settings="))
        self.assertEqual(0, self.http("GET", "/api/v1/policies").json["total"])
