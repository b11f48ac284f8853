"""The console by keyboard alone, on a phone, over a slow line, and in the browser's language."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from tests.acceptance.consolebench import PageCase, announcement, letter, reported

#: Every page, and a text of it that shows that it has its data.
PAGES: Final = (
    ("", "thumbnails"), ("queues", "thumbnails"), ("queues/mail", "timeout after"),
    ("search?text=ada", "that is all"), ("schedules", "reports:daily"), ("slowlog", "No delays"),
    ("nodes", "This node is alone"), ("clients", "http"), ("workers", "web1:4711"),
    ("actions", "SCHEDULE SET"),
)  # fmt: skip
#: What is visible, and yet not to be seen without moving the page or a table to the side.
_CUT: Final = (
    "[...document.querySelectorAll('body :is(a, button, input, select, td, th, dd, dt, h1, h2, h3,"
    " p, li, .badge, .tile, .card, svg)')]"
    ".filter((one) => one.checkVisibility() && one.getClientRects().length"
    " && !one.matches('.skip, pre *'))"
    ".filter((one) => { const box = one.getBoundingClientRect();"
    " return box.right > innerWidth + 1 || box.left < -1; })"
    ".map((one) => one.outerHTML.slice(0, 200))"
)
_WIDTH: Final = "document.documentElement.scrollWidth"
_FOCUS: Final = (
    "(() => { const {outlineStyle, outlineWidth} = getComputedStyle(document.activeElement);"
    " return [document.activeElement.innerText ?? '', outlineStyle, outlineWidth]; })()"
)
_OPTIONS: Final = (
    "[...document.querySelectorAll('[role=option]')]"
    ".map((one) => one.innerText.replace('\\n', ' '))"
)
_SAID: Final = (
    "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))"
)


class PaletteTests(PageCase):
    """Ctrl-K."""

    def find(self, text: str, wanted: str) -> None:
        """Open the palette, and type until this is offered."""
        self.page.press("k", ctrl=True)
        self.page.wait("document.activeElement.matches('dialog.palette input')")
        self.page.type(text)
        self.page.wait(f"{_OPTIONS}.includes('{wanted}')", wanted)

    def test_queue(self) -> None:
        """One goes to a queue among many by a part of its name, with no hand at the mouse."""
        self.go("", "Queues that wait longest")
        self.find("umbna", "Queue thumbnails")
        self.page.press("Enter")
        self.page.wait("location.hash === '#/queues/thumbnails'")
        self.page.wait("!document.querySelector('dialog')")

    def test_job(self) -> None:
        """A job's ID, pasted, leads to its page; a text leads to the search for it."""
        self.go("", "Queues that wait longest")
        self.find(self.job, f"Job {self.job}")
        self.page.press("Enter")
        self.page.wait_for_text("2026-1107")
        self.find("ada@", "Jobs Search jobs for “ada@”")
        self.page.press("ArrowUp")
        self.page.press("Enter")
        self.page.wait_for_text("that is all")
        self.page.wait("document.querySelectorAll('main tbody tr').length > 10")

    def test_action(self) -> None:
        """What the buttons of a page do can be done by name, with the same question before jobs
        end; Escape changes nothing."""
        self.go("queues/mail", "timeout after")
        self.find("flush", "Action Flush…")
        self.page.press("Enter")
        self.page.wait_for_text("Flush mail on all nodes")
        self.page.press("Escape")
        self.page.wait("!document.querySelector('dialog')")
        before = self.queued("mail")
        self.find("drop all", "Action Drop all…")
        self.page.press("Escape")
        self.page.wait("!document.querySelector('dialog')")
        self.assertEqual(before, self.queued("mail"))
        self.find("stop", "Action Stop updates")
        self.page.press("Enter")
        self.page.wait("document.getElementById('live').innerText === 'Updates stopped'")

    def test_said(self) -> None:
        """A reader for the blind hears which entry Enter would take."""
        self.go("", "Queues that wait longest")
        self.find("queue", "Page Queues")
        first = self.page.run(f"{_SAID}.innerText")
        self.page.press("ArrowDown")
        self.assertNotEqual(first, self.page.run(f"{_SAID}.innerText"))
        self.assertEqual("true", self.page.run(f"{_SAID}.ariaSelected"))
        self.page.press("ArrowUp")
        self.assertEqual(first, self.page.run(f"{_SAID}.innerText"))


class ListTests(PageCase):
    """Rows of lists by keys."""

    def rows(self, keys: str) -> list[str]:
        """The texts that get the focus, one after the other; each must be visible as such."""
        found = []
        for key in keys:
            self.page.press(key)
            text, style, width = self.page.run(_FOCUS)
            self.assertEqual(("solid", "2px"), (style, width), text)
            found.append(text)
        return found

    def test_every_list(self) -> None:
        """On each page with a list, j and k walk through its rows, and one sees where one is."""
        self.node.client().call("NOTE", "deployed 1")
        for place, text in PAGES:
            if place == "slowlog":  # which has none
                continue
            self.load(place, text)
            self.page.wait("!!document.querySelector('main :is(tbody tr, ol li)')", place)
            self.page.press("p")  # a refresh may change the order of rows
            self.page.run("document.activeElement.blur()")
            self.rows("jj")
            here = "document.activeElement.closest('tr, li') !== null"
            self.assertTrue(self.page.run(here), place)
            self.page.press("p")

    def test_opens(self) -> None:
        """From a list one opens what has the focus, forwards and backwards."""
        self.go("queues", "thumbnails", "search:index")
        self.page.press("p")
        first, second, again = self.rows("jjk")
        self.assertEqual(first, again)
        self.assertNotEqual(first, second)
        self.page.press("ArrowDown")
        self.assertEqual(second, self.page.run(_FOCUS)[0])
        self.page.press("Enter")
        self.page.wait(f"document.querySelector('h1').innerText === '{second}'")


class MouseTests(PageCase):
    """The mouse, while the page shows what is new."""

    def test_links_stay(self) -> None:
        """A link is the same element after a refresh, on every page: a click that begins before it
        and ends after it opens the link."""
        self.node.client().call("NOTE", "deployed 1")
        letters = self.api("GET", "queues/mail/dead-letters")["reasons"][0]["letters"]
        jobs = (f"jobs/{quote(letters[0]['id'], safe='')}", f"jobs/{quote(self.job, safe='')}")
        for place, text in (*PAGES, (jobs[0], "Drop…"), (jobs[1], "2026-1107")):
            self.load(place, text, "Live, every")
            self.page.run("window.before = [...document.querySelectorAll('main a[href]')]; null")
            self.page.run("document.activeElement.blur()")
            self.page.press("p")
            self.page.wait_for_text("Updates stopped")
            self.page.press("p")
            self.page.wait_for_text("Live, every")
            gone = "before.filter((one) => !one.isConnected).map((one) => one.outerHTML)"
            self.assertEqual([], self.page.run(gone), place)


class PhoneTests(PageCase):
    """A phone of 360 pixels."""

    def test_every_page(self) -> None:
        """Nothing is wider than a phone, no figure and no button is cut, and the menu opens."""
        failed = self.api("GET", "queues/mail/dead-letters")["reasons"][0]["letters"][0]["id"]
        self.node.client().call("NOTE", "deployed " + "4711-" * 30)
        self.api.add("dead:" + "long" * 40, letter(1, "E" * 300), retry_s=300)
        self.api.add("a" * 200, "b" * 500, retry_s=300)
        names = ["t" * 100] * 3
        self.announce(announcement(id="1", worker="w" * 90, queues=names, tasks=names))
        self.page.size(360, 740, phone=True)
        jobs = tuple(
            (f"jobs/{quote(job, safe='')}", text)
            for job, text in ((self.job, "2026-1107"), (failed, "Drop…"))
        )
        api, note = self.api, "n" * 256
        flying = reported(api)
        api("POST", f"{flying}/working", {"progress": 1, "note": note})
        jobs = (*jobs, (flying, note))
        long = ((f"queues/{'a' * 200}", "Flush…"), (f"queues/{'long' * 40}", "EEE"))
        for place, text in (*PAGES, *jobs, *long):
            self.load(place, text)
            self.assertEqual(360, self.page.run(_WIDTH), place)
            self.assertEqual([], self.page.run(_CUT), place)
        self.page.click("Flush…")
        self.page.wait("!!document.querySelector('dialog')")
        self.assertEqual([], self.page.run(_CUT), "dialog")
        self.page.press("Escape")
        self.page.click("Menu")
        self.page.click("Nodes")
        self.page.wait_for_text("This node is alone")


class LanguageTests(PageCase):
    """The language of the browser."""

    def test_numbers_and_dates(self) -> None:
        """Numbers and dates are written as the reader is used to it."""
        self.page.call("Emulation.setLocaleOverride", locale="de-DE")
        node = self.node.client()
        for _ in range(1_234):
            node.send("ADDJOB", "viele", "x", "0", "RETRY", "300")
        for _ in range(1_234):
            node.read()
        self.go("queues/viele", "1.234")
        self.go("actions", "SCHEDULE SET")
        moment = self.page.run("document.querySelector('td[title]').title")
        self.assertRegex(moment, r"^\d{2}\.\d{2}\.\d{4}, \d{2}:\d{2}:\d{2}$")

    def test_zones(self) -> None:
        """When a recurring job is due is said by the reader's clock, and by that of its zone."""
        words = {"cron": "0 3 * * *", "tz": "Asia/Tokyo", "queue": "reports", "body": "x"}
        self.api("PUT", "schedules/early", words)
        self.page.call("Emulation.setLocaleOverride", locale="de-DE")
        self.page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
        self.go("schedules", "03:00:00 Asia/Tokyo", "23:30:00")


class ColdTests(PageCase):
    """The first visit."""

    def test_small(self) -> None:
        """A page is loaded in no time over a slow line, and asks no host but its node."""
        for place, text in PAGES:
            page = self.browser()
            page.open(f"{self.url}#/{place}")
            page.wait_for_text(text)
            page.run("document.title")
            self.assertLess(page.loaded_bytes, 150 * 1024, place)
            others = {one for one in page.requested if not one.startswith(self.url)}
            self.assertEqual(set(), others - {"about:blank"}, place)
            self.clean(page)

    def test_strict(self) -> None:
        """The browser lets no page make programs of texts."""
        self.go("", "Queues that wait longest")
        tried = "(() => { try { return eval('1 + 1'); } catch (error) { return error.name; } })()"
        self.page.run("window.tried = null; 0")
        script = "document.body.append(Object.assign(document.createElement('script'),"
        self.page.run(f"{script} {{textContent: 'window.tried = 2'}})); 0")
        self.assertIsNone(self.page.run("window.tried"))
        self.assertEqual("EvalError", self.page.run(tried))
