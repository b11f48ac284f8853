"""What is done with the console: no single click, key or link ends a job."""

from __future__ import annotations

import json
from urllib.parse import quote

import attrs

from disque_tx.protocols.http.server.routes import segment
from disque_tx.worker.settling.deadletters import Letter
from tests.acceptance.consolebench import PageCase, letter
from tests.acceptance.daemon import wait_for

_BUTTONS = "[...document.querySelectorAll('main .head .end button')].map((one) => one.innerText)"
_CHOOSE = (
    "{ const field = document.getElementById('pausing'); field.value = '%s';"
    " field.dispatchEvent(new Event('change')) }"
)
_TRICKS = (
    "jobs/..\\queues\\mail\\flush#", "jobs/..\\queues\\mail\\flush?", "jobs/x%00", "jobs/%ED%A0",
    "jobs/..%5Cqueues%5Cmail%5Cflush%23", "jobs/..%2fqueues%2fmail%2fflush%3f", "jobs/%25%32%66",
    "jobs/%2e%2e%2fqueues%2fmail%2fflush%23", "jobs/%E0%80%AF",
)  # fmt: skip
_NO_PAGES = (
    "jobs/../queues/mail/flush", "jobs/..", "jobs/%2e%2e", "jobs/.%2E", "queues/..", "jobs/",
    "queues/mail/flush", "queues/.", "nodes/x", "toString/x", "constructor", "nothing",
)  # fmt: skip
_ANSWERED = (
    "!document.getElementById('problem').hidden || "
    "document.querySelector('main').innerText.includes('No node knows the job')"
)


class ActionTests(PageCase):
    """Buttons and links."""

    def test_pause(self) -> None:
        """Pausing a queue really pauses it, and one sees that."""
        self.go("queues", "thumbnails")
        self.page.click("Pause thumbnails on all nodes")
        self.page.wait_for_text("thumbnails is paused on all nodes")
        self.assertEqual("all", self.api("GET", "queues/thumbnails")["pause"])
        self.page.click("Resume thumbnails on all nodes")
        self.page.wait_for_text("thumbnails goes on at all nodes")
        self.assertEqual("none", self.api("GET", "queues/thumbnails")["pause"])

    def test_pause_everywhere(self) -> None:
        """A pause holds at every node of the cluster and after a restart, and the page of a queue
        says where it is paused, and by what."""
        other = self.running()
        self.node.client().call("CLUSTER", "MEET", "127.0.0.1", str(other.port))
        self.go("queues/thumbnails", "Pause on all nodes")
        self.page.run(_CHOOSE % "in")
        self.page.wait_for_text("Paused on all nodes: new jobs")
        wait_for(lambda: other.client().call("PAUSE", "thumbnails", "state") == "in", "it is told")
        self.node.client().call("PAUSE", "thumbnails", "out")
        self.page.wait_for_text("Paused on all nodes, and at this node by PAUSE: everything")
        self.page.run(_CHOOSE % "none")
        self.page.wait_for_text("The queue goes on at all nodes.")
        wait_for(
            lambda: other.client().call("PAUSE", "thumbnails", "state") == "none", "it is told"
        )
        self.node.client().call("PAUSE", "thumbnails", "out")
        self.page.wait_for_text("Paused at this node, by PAUSE: deliveries")
        self.node.client().call("PAUSE", "thumbnails", "none")
        self.node.client().call("QPOLICY", "SET", "thumb*", "pause", "all")
        self.page.wait_for_text("Paused on all nodes by the policy of thumb*: everything")

    def test_flush(self) -> None:
        """Nobody empties a queue by a wrong click: its name must be typed."""
        self.go("queues/search%3Aindex", "search:index", "Flush…")
        self.page.click("Flush…")
        button = "document.querySelector('dialog button[value]')"
        self.assertTrue(self.page.wait(f"{button}?.disabled"))
        self.page.type("search:inde")
        self.assertTrue(self.page.run(f"{button}.disabled"))
        self.page.type("x")
        self.page.click("End the jobs")
        self.page.wait_for_text("7 jobs ended.")
        self.assertEqual(0, self.queued("search:index"))
        self.page.wait_for_text("No job waits here")

    def test_dead_letters(self) -> None:
        """Jobs that failed for one reason are put back together, and others stay."""
        reason = "the mail server refused the address"
        self.go("queues/mail", reason, "timeout after 30 s")
        before = self.queued("mail")
        self.page.click(f"Requeue: {reason}")
        self.page.wait_for_text("Requeue 5 jobs?")
        self.page.click("Requeue")
        self.page.wait_for_text("5 jobs requeued.")
        self.assertEqual(before + 5, self.queued("mail"))
        self.page.wait(f"!document.querySelector('main').innerText.includes({json.dumps(reason)})")
        self.page.click("Drop: timeout after 30 s")
        self.page.click("Drop")
        self.page.click("Now")
        self.page.wait_for_text("2 jobs dropped.")
        self.assertEqual(0, self.queued("dead:mail"))

    def test_dead_letters_undone(self) -> None:
        """Who has dropped letters by mistake has ten seconds to undo it, on any page, and nothing
        is lost by that."""
        self.go("queues/mail", "timeout after 30 s")
        self.page.click("Drop all…")
        self.page.wait_for_text("Drop 7 dead letters of mail?")
        self.page.click("Drop")
        self.page.wait_for_text("7 dead letters of mail will be dropped")
        self.page.click("Slow log")
        self.page.click("Undo")
        self.page.wait("!document.querySelector('.undo')")
        self.assertEqual(7, self.queued("dead:mail"))

    def test_dead_letters_selected(self) -> None:
        """Of a group, those that are selected are put back, and no others."""
        self.go("queues/mail", "timeout after 30 s")
        self.page.click("Show: the mail server refused the address")
        self.page.wait("document.querySelectorAll('tbody [type=checkbox]').length === 5")
        self.page.run("[...document.querySelectorAll('tbody [type=checkbox]')].slice(0, 2)"
                      ".forEach((one) => one.click())")  # fmt: skip
        self.page.click("Requeue selected…")
        self.page.wait_for_text("Requeue 2 jobs?")
        self.page.click("Requeue")
        self.page.wait_for_text("2 jobs requeued.")
        self.assertEqual(5, self.queued("dead:mail"))

    def test_dead_letters_found(self) -> None:
        """Those with a text in them are put back, spread over a time."""
        self.go("queues/mail", "timeout after 30 s")
        self.page.click_at("document.querySelector('[aria-label=\"Text in dead letters\"]')", "it")
        self.page.type("TIMEOUT")
        self.page.wait_for_text("2 letters of 7 have “TIMEOUT” in them.")
        self.page.click("Requeue all…")
        self.page.wait_for_text("Those with “TIMEOUT” in them.")
        self.page.run("const rate = document.querySelector('[aria-label=\"Jobs per minute\"]');"
                      "rate.value = 1; rate.dispatchEvent(new Event('input'))")  # fmt: skip
        self.page.click("Requeue")
        self.page.wait_for_text("2 jobs requeued.")
        self.assertEqual(5, self.queued("dead:mail"))
        found = self.api("GET", "queues/mail/jobs?count=1000")["jobs"]
        self.assertEqual([60], [job["delay"] for job in found if job["delay"] not in (0, 600)])
        shown = [row["what"] for row in self.api("GET", "actions")["actions"]]
        self.assertEqual("REQUEUE mail matching TIMEOUT", shown[0])

    def test_dead_letter_edited(self) -> None:
        """A job whose arguments were wrong is put back with the right ones; what is no JSON is
        refused before it is sent."""
        group = self.api("GET", "queues/mail/dead-letters")["reasons"][0]
        path = f"jobs/{quote(group['letters'][0]['id'], safe='')}"
        self.go(path, "Edit and requeue…")
        self.page.click("Edit and requeue…")
        change = ("{ const text = document.querySelector('textarea'); text.value = %s;"
                  "text.dispatchEvent(new Event('input')); }")  # fmt: skip
        self.page.run(change % json.dumps('{"to": '))
        self.page.click("Requeue", within="dialog")
        self.assertTrue(self.page.run("document.querySelector('dialog').open"))
        self.page.run(change % json.dumps('{"to": "bob@example.com"}'))
        self.page.click("Requeue", within="dialog")
        self.page.wait_for_text("The job is in mail again.")
        peeked = self.api("GET", "queues/mail/peek?from=newest")["jobs"]
        self.assertIn('{"to": "bob@example.com"}', [job["body"] for job in peeked])

    def test_search(self) -> None:
        """A job is found by what one knows of it, and the address that shows it can be sent to a
        colleague."""
        self.go("search", "Find a job by what you know of it")
        self.page.type("2026-1107")
        self.page.press("Enter")
        self.page.wait_for_text("1 job found; that is all.")
        self.assertEqual("#/search?text=2026-1107", self.page.run("location.hash"))
        self.go(f"search?text={quote(self.job[:18], safe='')}&queue=invoices", "1 job found")
        self.go("search?text=no-such-thing&state=queued", "0 jobs found; that is all.")
        self.page.open("about:blank")
        self.go("search?text=%3Cimg%20src%3Dx%3E", "0 jobs found; that is all.")

    def test_many_dead_letters(self) -> None:
        """Thousands are put back with one click, in batches whose progress is shown."""
        node = self.node.client()
        for number in range(1_200):
            node.send("ADDJOB", "dead:bulk", letter(number, "down"), "0", "RETRY", "300")
        for _ in range(1_200):
            node.read()
        self.go("queues/bulk", "1,200")
        self.page.run(
            "window.seen = []; new MutationObserver(() => seen.push(document.querySelector("
            "'progress').value)).observe(document.querySelector('progress'), {attributes: true})"
        )
        self.page.click("Requeue all…")
        self.page.wait_for_text("Requeue 1,200 jobs?")
        self.page.click("Cancel")
        self.assertEqual(1_200, self.queued("dead:bulk"))
        self.page.click("Requeue all…")
        self.page.click("Requeue")
        self.page.wait_for_text("1,200 jobs requeued.")
        self.assertEqual([0, 500, 1000], sorted(set(self.page.run("seen")))[-3:])
        self.assertEqual(0, self.queued("dead:bulk"))

    def test_more_reasons(self) -> None:
        """What is not listed is said: no reason and no letter vanishes without a hint."""
        node = self.node.client()
        for number in range(103):
            word = chr(97 + number // 26) + chr(97 + number % 26)
            node.call("ADDJOB", "dead:bulk", letter(number, f"error {word}"), "0", "RETRY", "300")
        self.go("queues/bulk", "3 more reasons with 3 jobs are not listed.")

    def test_job(self) -> None:
        """The body of a job is shown in the form that suits it, and its life while it happens."""
        path = f"jobs/{quote(self.job, safe='')}"
        self.go(path, '"number": "2026-1107"', "What happens from now on")
        self.page.click("Hex")
        self.page.wait_for_text("000000  7b 22 6e 75")
        self.api("POST", "queues/invoices/lease")
        self.page.wait_for_text("Delivered to a worker")
        self.page.wait_for_text("In flight at a client for")
        self.page.wait_for_text("; delivered again at")
        self.page.click("Acknowledge…")
        self.page.wait_for_text("End this job of invoices?")
        self.page.press("Enter")  # no key alone ends a job
        self.page.wait("!document.querySelector('dialog')")
        self.assertEqual("active", self.api("GET", path)["state"])
        self.page.click("Acknowledge…")
        self.page.click("Acknowledge")
        self.page.wait_for_text("The job is done.")
        self.page.wait_for_text("No node knows the job")

    def test_dead_letter(self) -> None:
        """The first thing that is offered for a dead letter is to put its job back; nothing that
        ends it is highlighted, or done without a question that names it."""
        found = self.api("GET", "queues/mail/dead-letters")["reasons"]
        first, second = [group["letters"][0]["id"] for group in found]
        self.go(f"jobs/{quote(first, safe='')}", "Body", "Drop…")
        self.assertEqual(["Requeue", "Edit and requeue…", "Drop…"], self.page.run(_BUTTONS))
        before = self.queued("mail")
        self.page.click("Requeue")
        self.page.wait_for_text("The job is in mail again.")
        self.assertEqual((before + 1, 6), (self.queued("mail"), self.queued("dead:mail")))
        self.go(f"jobs/{quote(second, safe='')}", "timeout after 30 s", "Drop…")
        self.page.click("Drop…")
        self.page.wait_for_text("Drop this dead letter of mail?")
        self.assertIn("Its job, D-dcb833cf-", self.page.text())
        self.page.click("Cancel")
        self.assertEqual(6, self.queued("dead:mail"))
        self.page.click("Drop…")
        self.page.click("Drop")
        self.page.click("Now")
        self.page.wait_for_text("The dead letter is dropped.")
        self.assertEqual(5, self.queued("dead:mail"))

    def test_dead_task(self) -> None:
        """The question before a task is dropped names the task."""
        dead = Letter.decoded(letter(1, "down").encode())
        body = attrs.evolve(dead, body=b'{"task": "bill.send", "args": []}').encoded().decode()
        path = f"jobs/{quote(self.api.add('dead:mail', body, retry_s=300), safe='')}"
        self.go(path, "Drop…")
        self.page.click("Drop…")
        self.page.wait_for_text("Its task, bill.send, is lost on all nodes; for ten seconds")

    def test_dead_task_read(self) -> None:
        """The task and its arguments are read, whatever wrote them; each attempt is listed, and the
        traceback has one's own code apart from that of libraries."""
        dead = Letter.decoded(letter(1, "KeyError: 'to'").encode())
        lines = (
            "Traceback (most recent call last):",
            '  File "/app/shop/mail.py", line 7, in send',
            "    render(job)",
            '  File "/usr/lib/python3/site-packages/jinja/x.py", line 9, in y',
            "    z()",
            "KeyError: 'to'",
        )
        body = attrs.evolve(
            dead,
            body=b'{"actor_name": "mail.send", "args": [4711], "kwargs": {}, "message_id": "m"}',
            traceback="\n".join(lines),
            history=((1_790_000_000.0, "timeout"),),
        )
        job_id = self.api.add("dead:mail", body.encoded().decode(), retry_s=300)
        path = f"jobs/{quote(job_id, safe='')}"
        self.go(path, "mail.send", "dramatiq", "4711", "/app/shop/mail.py", "1 frame of libraries")
        self.assertNotIn("jinja", self.page.run("document.querySelector('.trace').innerText"))
        self.page.wait_for_text("timeout")
        self.page.wait_for_text("at worker-1")

    def test_trace(self) -> None:
        """From the page of a job one goes to its trace."""
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        parent = f"00-{trace}-00f067aa0ba902b7-01"
        job_id = self.api.add("q", f'{{"task": "pay", "traceparent": "{parent}"}}', retry_s=300)
        self.node.client().call("CONFIG", "SET", "trace-url", "http://t.example/{trace_id}")
        self.go(f"jobs/{quote(job_id, safe='')}", trace)
        link = "document.querySelector('main dd a[href^=http]')"
        self.page.wait(f"{link} !== null")
        self.assertEqual(f"http://t.example/{trace}", self.page.run(f"{link}.href"))

    def test_links(self) -> None:
        """Whatever is in the address that somebody was sent, no request and no button of the page
        is about something else than the page says."""
        before = self.queued("mail")
        for place in _TRICKS:
            self.go("", "Queues that wait longest")
            self.page.open(f"{self.url}#/{place}")
            self.page.wait(_ANSWERED)
            self.assertEqual([], self.page.run(_BUTTONS), place)
        for place in _NO_PAGES:
            self.go("", "Queues that wait longest")
            self.go(place, "There is no such page")
            self.assertEqual([], self.page.run(_BUTTONS), place)
        self.assertEqual(before, self.queued("mail"))

    def test_odd_names(self) -> None:
        """Queues with odd names have pages, and a flush reaches them and no other."""
        for name in ("..", "a/b", "ä ?#%2F", "\\"):
            self.api("POST", f"queues/{segment(name)}/jobs", {"body": "x"})
            self.go("", "Queues that wait longest")
            self.go(f"queues/{segment(name)}", "Flush…", "Live, every")
            self.assertEqual(name, self.page.run("document.querySelector('h1').innerText"))
            self.page.click("Flush…")
            self.page.type(name)
            self.page.click("End the jobs")
            self.page.wait_for_text("1 job ended.")
        self.api("POST", "queues/%FF/jobs", {"body": "x"})
        self.go("queues/%FF", "Flush…", "\\xff")
        self.page.click("Flush…")
        self.page.type("\\xff")
        self.page.click("End the jobs")
        self.page.wait_for_text("1 job ended.")

    def test_job_deleted(self) -> None:
        """A job is deleted after a question, and not when the question is answered with no."""
        path = f"jobs/{quote(self.job, safe='')}"
        self.go(path, "invoices")
        self.page.click("Delete…")
        self.page.click("Cancel")
        self.assertEqual("queued", self.api("GET", path)["state"])
        self.page.click("Delete…")
        self.page.click("Delete")
        self.page.wait_for_text("The job is deleted.")
        self.assertEqual(0, self.queued("invoices"))

    def test_schedules(self) -> None:
        """A recurring job is run at once, skipped once, paused and deleted; delayed jobs are
        counted."""
        self.go("schedules", "nightly", "0 3 * * *")
        before = self.queued("reports:daily")
        self.page.click("Run nightly now")
        self.page.wait_for_text("The job of nightly is added.")
        self.assertEqual(before + 1, self.queued("reports:daily"))
        self.page.click("Skip the next run of nightly")
        before = self.api("GET", "schedules/nightly")["next_s"]
        self.page.wait_for_text("Skip the next run of nightly?")
        self.page.click("Skip")
        self.page.wait_for_text("is skipped.")
        self.assertEqual(before[1], self.api("GET", "schedules/nightly")["next_s"][0])
        self.page.click("Pause nightly")
        self.page.wait_for_text("nightly is paused.")
        self.assertTrue(self.api("GET", "schedules/nightly")["paused"])
        self.page.click("Delete nightly")
        self.page.click("Delete")
        self.page.wait_for_text("No recurring jobs")
