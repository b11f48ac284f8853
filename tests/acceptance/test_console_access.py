"""Who may use the console, and what strangers can do to it."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPSConnection
from urllib.parse import quote

from tests.acceptance.consolebench import MARKUP, PASSWORD, READING, ConsoleCase, fill, letter
from tests.acceptance.daemon import free_port
from tests.acceptance.devtools import Browser
from tests.services.net.certificates import Authority

_STATUS = "fetch({path}, {{method: 'POST'}}).then(async (r) => [r.status, (await r.json()).code])"
_NAMES = "[...document.querySelectorAll('main button')].map((b) => b.ariaLabel ?? b.innerText)"


class LoginTests(ConsoleCase):
    """A node with both passwords."""

    def setUp(self) -> None:
        super().setUp()
        words = (f'requirepass "{PASSWORD}"', f'readonly-password "{READING}"')
        self.serve(*words, password=PASSWORD)
        fill(self.api)
        self.page = self.browser()
        self.page.open(self.url)
        self.page.wait_for_text("Log in to this node")

    def log_in(self, page: Browser, password: str) -> None:
        """Type the password and press Enter."""
        page.wait("document.activeElement.type === 'password'")
        page.run("document.activeElement.select()")
        page.type(password)
        page.press("Enter")

    def test_life(self) -> None:
        """A wrong password is refused, the right one opens what one came for, and after the logout
        all is closed again."""
        self.page.open(f"{self.url}#/queues")
        self.log_in(self.page, "guess")
        self.page.wait_for_text("This is not the password.")
        self.log_in(self.page, PASSWORD)
        self.page.wait_for_text("thumbnails")
        self.assertEqual("", self.page.run("document.cookie"))
        self.page.click("Log out")
        self.page.wait_for_text("Log in to this node")
        self.assertNotIn("thumbnails", self.page.text())
        self.page.call("Page.reload")
        self.page.wait_for_text("Log in to this node")

    def test_guesses(self) -> None:
        """Who guesses is told to wait."""
        for _ in range(10):
            self.page.run("document.querySelector('p.bad').textContent = ''")
            self.log_in(self.page, "guess")
            self.page.wait("document.querySelector('p.bad').textContent !== ''")
        self.log_in(self.page, PASSWORD)
        self.page.wait_for_text("Too many wrong passwords")

    def test_reader(self) -> None:
        """Who may only read sees no actions, and gets 403 by hand."""
        self.log_in(self.page, READING)
        self.page.wait_for_text("read-only")
        for place, text, absent in (
            ("queues", "thumbnails", "Pause thumbnails on all nodes"),
            ("queues/mail", "timeout", "Requeue all…"),
            ("schedules", "nightly", "Run nightly now"),
        ):  # fmt: skip
            self.page.open(f"{self.url}#/{place}")
            self.page.wait_for_text(text)
            names = self.page.run(_NAMES)
            self.assertNotIn(absent, names)
            self.assertNotIn("Flush…", names)
        for path in ("queues/mail/flush", "queues/mail/dead-letters/requeue", "jobs/x/ack"):
            found = self.page.run(_STATUS.format(path=json.dumps(f"/api/v1/{path}")))
            self.assertEqual([403, "NOPERM"], found)

    def test_other_port(self) -> None:
        """A page of another port of this host, to which the browser sends the cookie, reads and
        changes nothing."""
        self.log_in(self.page, PASSWORD)
        self.page.wait_for_text("Queues that wait longest")
        other = free_port()
        self.running(f"listen http tcp:{other}:interface=127.0.0.1")
        self.page.open(f"http://127.0.0.1:{other}/")
        for path in ("info", "queues/mail/flush"):
            found = self.page.run(
                f"fetch('{self.url}api/v1/{path}', {{method: '{'POST' if '/' in path else 'GET'}',"
                " credentials: 'include'}).then(() => 'read', () => 'refused')"
            )
            self.assertEqual("refused", found, path)
        self.assertEqual(10, self.api("GET", "counts/mail")["queued"])

    def test_password_changed(self) -> None:
        """Whoever is logged in while the password is changed is asked for the new one."""
        self.log_in(self.page, PASSWORD)
        self.page.wait_for_text("Queues that wait longest")
        node = self.node.client()
        node.call("AUTH", PASSWORD)
        node.call("CONFIG", "SET", "requirepass", "another")
        self.page.wait_for_text("Log in to this node")


class MarkupTests(ConsoleCase):
    """Names, bodies and reasons that contain markup."""

    def test_text(self) -> None:
        """Whatever a producer puts into names, bodies and reasons is shown as text."""
        self.serve()
        queue = quote(MARKUP, safe="")
        job = self.api.add(MARKUP, MARKUP, retry_s=300)
        self.api.add(f"dead:{MARKUP}", letter(1, MARKUP), retry_s=300)
        schedule = {"every_s": 3600, "queue": MARKUP, "body": MARKUP}
        self.api("PUT", f"schedules/{quote(MARKUP, safe='')[:200]}", schedule)
        node = self.node.client()
        node.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        node.call("QLEN", MARKUP)
        page = self.browser()
        for place in ("", "queues", f"queues/{queue}", f"jobs/{quote(job, safe='')}", "schedules",
                      "slowlog"):  # fmt: skip
            page.open(f"{self.url}#/{place}")
            page.wait_for_text("<img src=x")
            self.assertEqual(
                0, page.run("document.querySelectorAll('main img, main script').length")
            )
            self.assertNotEqual("markup", page.run("document.title"))
        self.clean(page)


class TlsTests(ConsoleCase):
    """The console with TLS."""

    def test_secure(self) -> None:
        """The cookie of a session never leaves TLS."""
        folder = self.folder()
        certificate, key = Authority(folder, "ca").issue("node")
        port = free_port()
        files = f"privateKey={key}:certKey={certificate}:interface=127.0.0.1"
        self.running(f"listen http ssl:{port}:{files}", "requirepass secret")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        client = HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        self.addCleanup(client.close)
        headers = {"Content-Type": "application/json"}
        client.request("POST", "/login", '{"password": "secret"}', headers)
        answer = client.getresponse()
        answer.read()
        self.assertEqual(200, answer.status)
        self.assertIn("; Secure", answer.getheader("Set-Cookie", ""))
