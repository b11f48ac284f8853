"""The console for people who cannot see it, or not well: the rules of axe-core."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from twisted.trial.unittest import SkipTest

from tests.acceptance.consolebench import ConsoleCase, announcement, fill, reported
from tests.acceptance.devtools import Browser
from tests.acceptance.test_console_everyone import PAGES

_RUN = """axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
  violations.map((rule) => [rule.id, rule.help, ...rule.nodes.map((node) => node.html)]))"""


def axe() -> str:
    """The program of axe-core."""
    spec = find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        raise SkipTest("axe-core-python is not installed; it is in the extra 'test'.")
    return Path(spec.origin).with_name("axe.min.js").read_text()


class AxeTests(ConsoleCase):
    """Labels, names, roles, contrast."""

    def test_rules(self) -> None:
        """No page breaks a rule, with light colours or with dark ones, with a dialog or without."""
        self.program = axe()
        self.serve("requirepass secret", password="secret")
        job = quote(fill(self.api), safe="")
        flying = reported(self.api)
        self.announce(announcement(), "secret")
        self.announce(announcement(id="1", worker="idle", state="idle", jobs=[]), "secret")
        letters = self.api("GET", "queues/mail/dead-letters")["reasons"][0]["letters"]
        dead = quote(letters[0]["id"], safe="")
        page = self.browser()
        page.open(self.url)
        page.wait_for_text("Log in to this node")
        self.check(page, "login")
        page.type("secret")
        page.press("Enter")
        page.wait_for_text("Queues that wait longest")
        for theme in ("light", "dark"):
            page.run(f"localStorage.setItem('theme', '{theme}')")
            jobs = ((f"jobs/{job}", "2026-1107"), (f"jobs/{dead}", "Drop…"), (flying, "page 40"))
            for place, text in (*PAGES, *jobs, ("search", "Find a job by"), ("none", "no such")):
                page.open("about:blank")
                page.open(f"{self.url}#/{place}")
                page.wait_for_text(text)
                colours = page.run("document.documentElement.dataset.theme")
                self.assertEqual(theme, colours)
                self.check(page, f"{theme} {place}")
            page.open(f"{self.url}#/queues/mail")
            page.click("Show: the mail server refused the address")
            page.wait_for_text("Requeue selected…")
            self.check(page, f"{theme} letters")
            for name in ("Flush…", "Requeue all…", "Keyboard shortcuts", "Find… Ctrl K"):
                page.click(name)
                page.wait("!!document.querySelector('dialog')")
                self.check(page, f"{theme} {name}")
                page.press("Escape")
                page.wait("!document.querySelector('dialog')")

    def check(self, page: Browser, where: str) -> None:
        """No rule is broken now."""
        if page.run("typeof axe") == "undefined":
            page.run(self.program)
        self.assertEqual([], page.run(_RUN), where)
