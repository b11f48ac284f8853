"""Pages in a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

_RUN_S: Final = 90
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = (
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
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
_ITSELF: Final = "not an origin"


class BrowserCase(SynchronousTestCase):
    """Chromium without a window and without a network."""

    def browse(self, page: Path, *words: str, query: str = "") -> tuple[bytes, str]:
        """Open a page; returns the output, and what the browser logged."""
        program = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if program is None:
            raise SkipTest("There is no Chromium here, in which the page could be looked at.")
        profile = Path(self.mktemp()).resolve()
        result = subprocess.run(
            [program, *_OPTIONS, f"--user-data-dir={profile}", *words, page.as_uri() + query],
            capture_output=True,
            timeout=_RUN_S,
            check=True,
        )
        return result.stdout, result.stderr.decode(errors="replace")

    def asked_by(self, page: Path) -> tuple[list[str], str]:
        """The addresses that a page asked for, and what the browser logged."""
        network = Path(self.mktemp()).resolve()
        _, log = self.browse(page, "--dump-dom", f"--log-net-log={network}")
        return requests(json.loads(network.read_text())), log


def requests(log: dict[str, Any]) -> list[str]:
    """The addresses that pages asked for, out of a browser's network log. It asks for some by
    itself, and tells them apart."""
    started = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in log["events"] if event["type"] == started]
    by_pages = (each for each in found if each.get("initiator", _ITSELF) != _ITSELF)
    return sorted({each["url"] for each in by_pages})
