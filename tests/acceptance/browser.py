"""Opens pages in a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

_RUN_S: Final = 90
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.*",
)
_NO_PAGE: Final = "not an origin"


class BrowserCase(SynchronousTestCase):
    """Runs Chromium without a window and without network access."""

    def browse(self, page: Path, *words: str, query: str = "") -> tuple[bytes, str]:
        """Open a page; returns the output, and what the browser logged."""
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        if program is None:
            raise SkipTest("Chromium is not installed; this test opens a page in it.")
        profile = Path(self.mktemp()).resolve()
        result = subprocess.run(
            [program, *OPTIONS, f"--user-data-dir={profile}", *words, page.as_uri() + query],
            capture_output=True,
            timeout=_RUN_S,
            check=True,
        )
        return result.stdout, result.stderr.decode(errors="replace")

    def addresses_requested_by(self, page: Path) -> tuple[list[str], str]:
        """The addresses that a page requested, and what the browser logged."""
        network = Path(self.mktemp()).resolve()
        _, log = self.browse(page, "--dump-dom", f"--log-net-log={network}")
        return requests(json.loads(network.read_text())), log


def requests(log: dict[str, Any]) -> list[str]:
    """The addresses that pages requested, from a browser's network log. Requests of the browser
    itself are left out: the log gives them a special initiator."""
    started = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in log["events"] if event["type"] == started]
    by_pages = (each for each in found if each.get("initiator", _NO_PAGE) != _NO_PAGE)
    return sorted({each["url"] for each in by_pages})
