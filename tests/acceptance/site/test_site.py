"""The site as readers see it: from files, in a real browser, without a network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.browser import BrowserCase

_ROOT: Final = Path(__file__).resolve().parents[3]
_SITE: Final = _ROOT / "build" / "site"
_HOME: Final = _SITE / "docs" / "index.html"
#: Virtual time in the browser before it prints the page.
_WAIT: Final = "--virtual-time-budget=20000"


class ReaderTests(BrowserCase):
    """Pages in Chromium."""

    def seen(self, page: Path, query: str = "") -> str:
        """The page after its scripts ran."""
        return self.browse(page, "--dump-dom", _WAIT, query=query)[0].decode()

    def test_no_requests(self) -> None:
        """No font, script or picture is requested from the network, and the browser logs no
        error."""
        for page in (_HOME, _SITE / "docs/how-to/run-workers.html", _SITE / "search.html"):
            requested, log = self.addresses_requested_by(page)
            self.assertEqual([], [url for url in requested if not url.startswith("file:")])
            self.assertNotIn("CONSOLE", log)

    def test_search(self) -> None:
        """The search works on a machine without a network."""
        page = self.seen(_SITE / "search.html", "?q=replicate")
        found = re.findall(r'<a href="([^"]+)" data-score', page)
        self.assertEqual("docs/explanation/replication-and-delivery.html", found[0])
        self.assertIn("docs/how-to/run-a-cluster.html", found)

    def test_entry(self) -> None:
        """A reader who opens the folder sees the home page."""
        self.assertTrue("<h1>Documentation of disque-tx" in self.seen(_SITE / "index.html"))


class NavigationTests(SynchronousTestCase):
    """The navigation beside every page."""

    def test_groups(self) -> None:
        """A newcomer finds tutorials, guides by goal, reference, explanation and the Python API."""
        page = _HOME.read_text()
        captions = re.findall(r'caption-text">([^<]+)<', page)
        guides = ["Run nodes", "Queues", "Clients", "Workers", "Data", "Move", "Extend"]
        self.assertEqual(["Tutorials", *guides, "Reference", "Explanation", "Project"], captions)
        self.assertTrue(">Python API</a>" in page)

    def test_api(self) -> None:
        """Public names are described, with inherited methods."""
        for page, name in (
            ("client", "disque_tx.Disque.add_job"),
            ("client", "disque_tx.client.DisqueClient.add_job"),
            ("client", "disque_tx.client.NotEnoughReplicas"),
            ("worker", "disque_tx.worker.Worker"),
            ("workqueue", "disque_tx.workqueue.WorkQueue"),
            ("spark", "disque_tx.spark.session"),
            ("embedding", "disque_tx.services.clients.embedded.NodeService.call"),
            ("interfaces", "disque_tx.plugins.IClientProtocol.factory"),
        ):
            text = (_SITE / "docs" / "reference" / "api" / f"{page}.html").read_text()
            self.assertTrue(f'id="{name}"' in text, f"{name} is not on the page of {page}")


class StrictTests(SynchronousTestCase):
    """Warnings of the build are errors."""

    def test_warnings(self) -> None:
        """A broken link, a missing heading, and a page in no index fail the build, before readers
        see them."""
        folder = Path(self.mktemp())
        (folder / "docs").mkdir(parents=True)
        shutil.copy(_ROOT / "docs" / "conf.py", folder / "docs")
        (folder / "docs" / "alone.md").write_text("# Alone\n")
        (folder / "docs" / "listed.md").write_text("# Listed\n[x](index.md#nothing)\n")
        (folder / "docs" / "index.md").write_text(
            "# Home\n\n## Tutorials\n\n- [Listed](listed.md)\n\n[away](gone.md)\n"
        )
        build = subprocess.run(
            [
                *(sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"),
                *("-c", folder / "docs", folder, folder / "site"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(1, build.returncode, build.stderr)
        for page, warning in (
            ("alone", "isn't included in any toctree"),
            ("listed", "nothing"),
            ("index", "gone.md"),
        ):
            self.assertTrue(
                any(f"{page}.md" in line and warning in line for line in build.stderr.split("\n")),
                build.stderr,
            )
