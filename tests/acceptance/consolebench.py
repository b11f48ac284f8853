"""A node with something to see in its console, and a browser that looks at it."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import quote

from disque_tx.worker.settling.deadletters import Letter
from tests.acceptance.daemon import DaemonTestCase, free_port
from tests.acceptance.devtools import Browser

PASSWORD: Final = "a long secret"
READING: Final = "look only"
#: Says so in every place where a page would take it for markup.
MARKUP: Final = (
    "<img src=x onerror=\"document.title='markup'\"><script>document.title='markup'</script>"
)


class Api:
    """Requests to the API of a node."""

    def __init__(self, host: str, port: int, password: str = "") -> None:
        self._place = host, port
        self._headers = {"Authorization": f"Bearer {password}"} if password else {}

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer; fails if it is a problem."""
        connection = HTTPConnection(*self._place, timeout=60)
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        try:
            connection.request(method, f"/api/v1/{path}", body and json.dumps(body), headers)
            response = connection.getresponse()
            value = json.load(response)
        finally:
            connection.close()
        if response.status >= 300:
            raise AssertionError(value)
        return value

    def add(self, queue: str, body: str, **members: Any) -> str:
        """Add a job; returns its ID."""
        path = f"queues/{quote(queue, safe='')}/jobs"
        return str(self("POST", path, {"body": body, "replicate": 1, **members})["id"])


def letter(number: int, reason: str, *, at_s: float = 1_790_000_000.0) -> str:
    """A dead letter of the queue ``mail``."""
    dead = Letter(
        queue="mail", id=f"D-dcb833cf-{number:024d}-05a1", body=b'{"to": "ada@example.com"}',
        reason=reason, traceback="", worker="worker-1", nacks=3, additional_deliveries=0,
        failed_at_s=at_s, retry_s=300,
    )  # fmt: skip
    return dead.encoded().decode()


def fill(api: Api) -> str:
    """Jobs in every state; returns the ID of the one in ``invoices``."""
    body = {"to": "ada@example.com", "template": "welcome", "attempt": 1, "tags": ["new", "eu"]}
    for number in range(12):
        api.add("mail", json.dumps({**body, "attempt": number}), retry_s=300)
    for queue, jobs in (("thumbnails", 9), ("reports:daily", 4), ("search:index", 7)):
        for number in range(jobs):
            api.add(queue, f"{queue} {number}", retry_s=300)
    api("POST", "queues/thumbnails/lease?count=3")
    api("POST", "queues/mail/lease?count=2")
    api.add("mail", "later", delay_s=600, retry_s=300)
    for number in range(7):
        reason = "the mail server refused the address" if number < 5 else "timeout after 30 s"
        api.add("dead:mail", letter(number, reason), retry_s=300)
    api("PUT", "schedules/nightly", {"cron": "0 3 * * *", "queue": "reports:daily", "body": "all"})
    return api.add("invoices", json.dumps({"number": "2026-1107", "lines": [body]}), retry_s=300)


def reported(api: Api) -> str:
    """A job in flight whose worker reports how far it is: the place of its page."""
    api.add("export", "all pages", retry_s=300)
    (job,) = api("POST", "queues/export/lease")["jobs"]
    place = f"jobs/{quote(job['id'], safe='')}"
    api("POST", f"{place}/working", {"progress": 0.4, "note": "page 40"})
    return place


def announcement(**more: Any) -> str:
    """What a worker says about itself: it does a job that is not there."""
    job_id = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"
    job = {"id": job_id, "queue": "mail", "task": "mail.send", "for_s": 12.5, "progress": 0.25,
           "note": "attachment 3 of 12"}  # fmt: skip
    values: dict[str, Any] = {
        "id": "00c0ffee00c0ffee", "worker": "web1:4711", "host": "web1", "pid": 4711,
        "version": "1.1.0", "slots": 8, "control": True, "state": "taking", "held": 3, "running": 1,
        "done": 4_100, "failed": 12, "queues": ["mail", "thumbnails"], "cut": False,
        "tasks": ["mail.send", "mail.digest", "thumbnails.make"], "jobs": [job],
    }  # fmt: skip
    return json.dumps(values | more)


class ConsoleCase(DaemonTestCase):
    """Looks at the console of a daemon."""

    def serve(self, *directives: str, password: str = "") -> None:
        """Start a daemon with a console."""
        self.http = free_port()
        self.node = self.running(f"listen http tcp:{self.http}:interface=127.0.0.1", *directives)
        self.url = f"http://127.0.0.1:{self.http}/"
        self.api = Api("127.0.0.1", self.http, password)

    def announce(self, text: str, password: str = "") -> None:
        """A worker that stays connected says this about itself."""
        worker = self.node.client()
        if password:
            worker.call("AUTH", password)
        worker.call("CLIENT", "ANNOUNCE", text)

    def browser(self) -> Browser:
        """A browser without cookies."""
        browser = Browser()
        self.addCleanup(browser.close)
        browser.size(1280, 860)
        return browser

    def clean(self, browser: Browser) -> None:
        """Neither the console nor the browser complained."""
        self.assertEqual([], browser.log)


class PageCase(ConsoleCase):
    """A browser at the console of a node with data."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.job = fill(self.api)
        self.announce(announcement())
        self.page = self.browser()

    def go(self, place: str, *texts: str) -> None:
        """Open a page of the console, and wait until it shows these texts."""
        self.page.open(f"{self.url}#/{place}")
        for text in texts:
            self.page.wait_for_text(text)

    def load(self, place: str, *texts: str) -> None:
        """The same, with nothing of the page before that could be taken for it."""
        self.page.open("about:blank")
        self.go(place, *texts)

    def queued(self, queue: str) -> int:
        """The length of a queue."""
        return int(self.api("GET", f"counts/{quote(queue, safe='')}")["queued"])
