"""The files of the console."""

from __future__ import annotations

import gzip
import re

from disque_tx.protocols.http.files import FOLDER, read_files
from tests.protocols.http.httpbench import HttpCase

#: Of all files, as they are sent to browsers; a page does not load all of them.
_BYTES_MAX = 80_000
#: What makes markup or programs of texts.
_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    r"|createContextualFragment|DOMParser"
)
_IMPORT = re.compile(r'(?:from|import)\s*\(?["`](/console/[\w.]+)["`]')
_LOADED = re.compile(r'(?:src|href)="(/console/[^"]+)"')


class FileTests(HttpCase):
    """What a browser loads."""

    def test_start(self) -> None:
        """The address of the node is that of its console, with a password, too: the page itself
        tells nothing of the node."""
        self.settings.requirepass = b"secret"
        answer = self.http("GET", "/")
        self.assertEqual(200, answer.status)
        self.assertEqual("text/html; charset=utf-8", answer.headers["content-type"])
        self.assertEqual("no-cache", answer.headers["cache-control"])
        policy = answer.headers["content-security-policy"]
        self.assertIn("default-src 'self'", policy)
        self.assertNotIn("unsafe", policy)

    def test_types(self) -> None:
        """Browsers run programs only with their right type."""
        types = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        for name in ("main.js", "style.css", "icon.svg"):
            answer = self.http("GET", f"/console/{name}")
            kind = answer.headers["content-type"].partition(";")[0]
            self.assertEqual((200, types[name.rpartition(".")[2]]), (answer.status, kind))
            self.assertEqual("nosniff", answer.headers["x-content-type-options"])

    def test_tags(self) -> None:
        """What the browser has is not sent again, and a new version is."""
        tag = self.http("GET", "/console/main.js").headers["etag"]
        for value in (tag, f"W/{tag}", f'"x", {tag}'):
            answer = self.http("GET", "/console/main.js", If_None_Match=value)
            self.assertEqual((304, b"", tag), (answer.status, answer.body, answer.headers["etag"]))
        self.assertEqual(200, self.http("GET", "/console/main.js", If_None_Match='"x"').status)

    def test_compressed(self) -> None:
        """Whoever takes gzip gets a third of the bytes; whoever does not, or refuses it, gets the
        file as it is; no cache takes one for the other."""
        plain = self.http("GET", "/console/main.js")
        self.assertNotIn("content-encoding", plain.headers)
        for value in ("gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8, *;q=0.1"):
            packed = self.http("GET", "/console/main.js", Accept_Encoding=value)
            self.assertEqual("gzip", packed.headers["content-encoding"], value)
            self.assertEqual("Accept-Encoding", packed.headers["vary"])
            self.assertEqual(plain.body, gzip.decompress(packed.body))
            self.assertNotEqual(plain.headers["etag"], packed.headers["etag"])
            tag = packed.headers["etag"]
            again = self.http("GET", "/console/main.js", Accept_Encoding=value, If_None_Match=tag)
            self.assertEqual((304, b""), (again.status, again.body))
        for value in ("identity", "gzip;q=0", "gzip; q=0.0, br", "xgzip", "*"):
            answer = self.http("GET", "/console/main.js", Accept_Encoding=value)
            self.assertNotIn("content-encoding", answer.headers, value)

    def test_names(self) -> None:
        """Nothing but these files is served."""
        for name in ("x", "..%2Ffiles.py", "%2Fetc%2Fpasswd", "index.html%00", "main.js%2F", "%FF"):
            self.problem(404, "PATH", self.http("GET", f"/console/{name}"))
        self.problem(400, "ERR", self.http("GET", "/console/../site.py"))
        self.problem(405, "METHOD", self.http("POST", "/console/main.js"))

    def test_small(self) -> None:
        """The console is loaded in no time, over a slow line, too."""
        files = read_files()
        self.assertEqual({path.name for path in FOLDER.iterdir()}, set(files))
        self.assertLess(sum(len(file.packed) for file in files.values()), _BYTES_MAX)

    def test_no_markup(self) -> None:
        """No file makes markup of data, or runs it; no page holds a program or style of its own,
        which the browser would refuse."""
        for name, file in read_files().items():
            text = file.data.decode()
            self.assertEqual([], _MARKUP.findall(text), name)
            if name.endswith(".html"):
                self.assertEqual([], re.findall(r"<script>|<style|\son\w+=|\sstyle=", text))

    def test_whole(self) -> None:
        """Everything that is loaded is there, and nothing comes from elsewhere."""
        files = read_files()
        for name, file in files.items():
            text = file.data.decode()
            for path in [*_IMPORT.findall(text), *_LOADED.findall(text)]:
                self.assertIn(path.removeprefix("/console/"), files, name)
            addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
            self.assertLessEqual(addresses, {"http://www.w3.org/2000/svg"}, name)
