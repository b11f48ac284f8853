"""The pages of the console in a real browser, on a node with data."""

from __future__ import annotations

import os
import signal
from urllib.parse import quote

from tests.acceptance.consolebench import ConsoleCase, PageCase, fill
from tests.acceptance.daemon import wait_for

#: What is visible, and yet not to be seen without moving the page or a table to the side.
_CUT = (
    "[...document.querySelectorAll('main :is(td, th, button, .badge), .top > *')]"
    ".filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)"
    ".map((one) => one.textContent)"
)
_HIDE = (
    "Object.defineProperty(document, 'hidden', {configurable: true, value: %s});"
    "document.dispatchEvent(new Event('visibilitychange'))"
)
_COUNT = (
    "window.asked = 0; const real = fetch; window.fetch = (...a) => { asked++; return real(...a); }"
)


class PageTests(PageCase):
    """What each page shows."""

    def test_overview(self) -> None:
        """One sees at first sight what the node does, and for how long back."""
        self.go("", "Queues that wait longest", "thumbnails", "jobs in memory only")
        self.page.click("14 d")
        self.page.wait("document.querySelector('[data-value=\"14d\"]').ariaPressed === 'true'")
        shown = self.page.run("document.querySelector('svg.chart').getAttribute('aria-label')")
        self.assertIn("Jobs/s: now added", shown)
        self.clean(self.page)

    def test_every_page(self) -> None:
        """All pages are reached by their names, and none of them fails."""
        self.go("", "Overview")
        for name, text in (
            ("Queues", "reports:daily"), ("Delayed, recurring", "nightly"),
            ("Nodes", "This node is alone"), ("Workers", "web1:4711"), ("Clients", "http"),
            ("Slow log", "No delays were recorded"), ("Actions", "started"),
            ("Overview", "Memory of jobs"),
        ):  # fmt: skip
            self.page.click(name)
            self.page.wait_for_text(text)
        self.clean(self.page)

    def test_queues(self) -> None:
        """A queue among many is found by a part of its name, and the order is one's own."""
        self.go("queues", "search:index")
        self.page.click("Queue")
        first = "document.querySelector('tbody th').innerText"
        self.page.wait(f"{first} === 'dead:mail'")
        self.page.click_at("document.getElementById('search')", "the search")
        self.page.type("index")
        self.page.wait(f"{first} === 'search:index'")
        self.page.type("es")
        self.page.wait_for_text("No queue has such a name")
        self.clean(self.page)

    def test_left(self) -> None:
        """A question is about the page that one sees: who goes back leaves it, and nothing is
        done."""
        self.go("queues", "thumbnails")
        self.go("queues/search%3Aindex", "search:index", "Flush…")
        self.page.click("Flush…")
        self.page.wait("!!document.querySelector('dialog')")
        self.page.type("search:index")
        self.page.run("history.back()")
        self.page.wait_for_text("thumbnails")
        self.page.wait("!document.querySelector('dialog')")
        self.assertEqual(7, self.queued("search:index"))

    def test_states(self) -> None:
        """Jobs that are delayed or in the hands of a worker are found on the page of their queue,
        and when they will be queued."""
        self.go("queues/mail", "Not queued")
        self.page.wait_for_text("No policy")  # everything is in its place
        self.page.click("Not queued")
        self.page.wait("document.querySelectorAll('main table tbody tr').length >= 3")
        self.page.wait_for_text("queued in 9 min")
        self.assertIn("later", self.page.text())
        self.clean(self.page)

    def test_job_from_the_log(self) -> None:
        """With the event log on, the life of a job is shown after its end, too."""
        self.node.client().call("CONFIG", "SET", "eventlog", "yes")
        job_id = self.api("POST", "queues/logged/jobs", {"body": "x"})["id"]
        self.api("POST", "queues/logged/lease")
        path = f"jobs/{quote(job_id, safe='')}"
        self.api("POST", f"{path}/ack")
        wait_for(lambda: len(self.api("GET", f"{path}/events")["events"]) >= 4, "it is logged")
        self.go(path, "No node knows the job", "The past is from the event log")
        for text in ("Added", "Delivered to a worker after", "Acknowledged: done after"):
            self.assertIn(text, self.page.text())

    def test_error(self) -> None:
        """What the node refuses is shown in its own words, and stays until it was read."""
        self.go("queues/thumbnails", "Flush…")
        self.node.client().call("CONFIG", "SET", "readonly-password", "x")
        self.node.client().call("CONFIG", "SET", "requirepass", "y")
        self.page.wait_for_text("Log in to this node")

    def test_gone(self) -> None:
        """A node that stops is missed, and found again."""
        self.go("nodes", "all connected")
        self.node.terminate()
        self.page.wait_for_text("This node does not answer")
        self.node.start()
        self.page.wait("document.getElementById('live').innerText.startsWith('Live')")

    def test_unreached(self) -> None:
        """When a node hangs, one sees on the map which others have lost it, too."""
        others = [self.running(), self.running()]
        for other in others:
            self.node.client().call("CLUSTER", "MEET", "127.0.0.1", str(other.port))
        nodes = [self.node, *others]
        wait_for(
            lambda: all(
                b"reachable_nodes:2" in node.client().call("CLUSTER", "INFO") for node in nodes
            ),
            "all know each other",
        )
        witness, hanging = [other.client().call("HELLO")[1].decode()[:8] for other in others]
        self.go("nodes", witness, hanging, "3 nodes, all connected")
        os.kill(others[1].pid, signal.SIGSTOP)
        self.addCleanup(os.kill, others[1].pid, signal.SIGCONT)
        self.page.wait_for_text("1 not reached by others")
        arrow = "document.querySelector('svg.map .lack title').textContent"
        self.assertEqual(f"{witness} does not reach {hanging}", self.page.run(arrow))

    def test_workers(self) -> None:
        """A worker of an earlier version, which says no more than the name of its connections, is
        listed once, however many it has, and has no buttons."""
        for _ in range(2):
            worker = self.node.client()
            self.addCleanup(worker.close)
            name = "disque-worker/shop%3Ca%3E%20%25/8/14/mail,images%2Fsmall,"
            worker.call("CLIENT", "SETNAME", name)
        self.go("workers", "shop<a> %", "cannot be controlled from here")
        rows = self.page.run(
            "[...document.querySelectorAll('tbody tr')].slice(0, 1)"
            ".map((row) => [0, 3, 4, 7].map((at) => row.children[at].innerText.split('\\n')[0]))"
        )
        self.assertEqual([["shop<a> %", "14", "8", "mail, images/small, …"]], rows)
        buttons = "[...document.querySelectorAll('tbody button')]"
        shown = self.page.run(f"{buttons}.filter((one) => one.checkVisibility()).length")
        self.assertEqual(2, shown)  # of the other worker
        self.go("clients", "worker shop<a> %")

    def test_hidden(self) -> None:
        """A tab that nobody sees asks nothing, and says so; seen again, it goes on at once."""
        self.go("clients", "Connected for")
        self.page.run(_COUNT)
        self.page.wait("asked >= 1", "the page asks by itself")
        self.page.run(_HIDE % "true")
        self.page.wait("document.title.startsWith('⏸')")
        asked = self.page.run("asked")
        self.assertIn("No updates while this tab is hidden", self.page.text())
        # Longer than the interval of the page, by the clock of the page.
        self.page.run("new Promise((done) => setTimeout(done, 6000))")
        self.assertEqual(asked, self.page.run("asked"))
        self.page.run(_HIDE % "false")
        self.page.wait(f"asked > {asked}")
        self.page.wait("document.getElementById('live').innerText.startsWith('Live')")

    def test_highlights(self) -> None:
        """No page has a highlighted button that ends jobs: what is highlighted is clicked."""
        letter_id = self.api("GET", "queues/mail/dead-letters")["reasons"][0]["letters"][0]["id"]
        for place, text in (
            ("queues", "thumbnails"), ("queues/mail", "Requeue all…"), ("schedules", "nightly"),
            (f"jobs/{quote(self.job, safe='')}", "Acknowledge…"), ("clients", "http"),
            (f"jobs/{quote(letter_id, safe='')}", "Drop…"),
        ):  # fmt: skip
            self.go(place, text)
            self.assertEqual(0, self.page.run("document.querySelectorAll('button.main').length"))

    def test_stop_updates(self) -> None:
        """Figures that one wants to read hold still, and that has another name than the pause of a
        queue."""
        self.go("queues", "thumbnails")
        self.page.click("Stop updates")
        self.page.wait("document.getElementById('live').innerText === 'Updates stopped'")
        self.assertEqual("none", self.api("GET", "queues/thumbnails")["pause"])
        self.page.click("Resume updates")
        self.page.wait("document.getElementById('live').innerText.startsWith('Live')")


class KeyTests(ConsoleCase):
    """The console without a mouse, and on a phone."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        fill(self.api)
        self.page = self.browser()
        self.page.open(self.url)
        self.page.wait_for_text("Queues that wait longest")

    def test_keys(self) -> None:
        """Pages, the search and the list of keys are reached by keys; typing is no command."""
        for key, text in (("q", "Queues 1 to"), ("n", "This node is alone"), ("o", "Memory of")):
            self.page.press("g")
            self.page.press(key)
            self.page.wait_for_text(text)
        self.page.press("?", shift=True)
        self.page.wait_for_text("Keyboard shortcuts")
        self.page.press("Escape")
        self.page.wait("!document.querySelector('dialog')")
        self.page.press("g")
        self.page.press("q")
        self.page.wait_for_text("Queues 1 to")
        self.page.press("/")
        self.page.wait("document.activeElement.id === 'search'")
        for letter_ in "go":
            self.page.press(letter_)
        self.page.wait("document.getElementById('search').value === 'go'")
        self.assertEqual("#/queues", self.page.run("location.hash"))

    def test_tab(self) -> None:
        """The first stop skips to the content, every stop can be seen, and Enter acts."""
        self.page.press("Tab")
        self.assertEqual("Skip to the content", self.page.run("document.activeElement.innerText"))
        seen = set()
        for _ in range(30):
            self.page.press("Tab")
            name, outline = self.page.run(
                "[document.activeElement.ariaLabel ?? document.activeElement.innerText ?? '',"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
            if name and outline is not None:
                seen.add(name)
                self.assertNotEqual("none", outline, name)
            if name == "Nodes":
                break
        self.assertLessEqual({"Stop updates", "Queues", "Nodes"}, seen)
        self.page.press("Enter")
        self.page.wait_for_text("This node is alone")
        self.page.run("document.querySelector('.skip').focus()")
        self.page.press("Enter")
        self.page.wait("document.activeElement.id === 'main'")
        self.assertEqual("#/nodes", self.page.run("location.hash"))

    def test_failed_schedule(self) -> None:
        """What is wrong with a schedule is readable, and takes no room from what can be done."""
        self.node.client().call("PAUSE", "locked", "in")
        self.api("PUT", "schedules/broken", {"every_s": 1, "queue": "locked", "body": "x"})
        self.page.open(f"{self.url}#/schedules")
        self.page.wait_for_text("PAUSED Queue paused in input, try later")
        for width in (1000, 390):
            self.page.size(width, 740)
            self.assertEqual([], self.page.run(_CUT), width)
            self.page.click("Pause broken" if width == 1000 else "Resume broken")

    def test_colours(self) -> None:
        """One chooses light or dark, and the choice is kept."""
        for name in ("light", "dark"):
            self.page.press("t")
            self.page.wait(f"document.documentElement.dataset.theme === '{name}'")
        self.page.open(f"{self.url}#/nodes")
        self.page.call("Page.reload")
        self.page.wait("document.documentElement.dataset.theme === 'dark'")
        colour = self.page.run("getComputedStyle(document.body).backgroundColor")
        self.assertEqual("rgb(18, 22, 26)", colour)
