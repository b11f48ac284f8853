"""What the console costs: ``python -m benchmarks.console [QUEUES] [SECONDS]``.

Starts a node with many queues, and measures how long a browser takes until it shows the first rows,
and the processor time of the node without a console, and with one on each page. Needs Chromium.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.acceptance.daemon import Daemon, free_port
from tests.acceptance.devtools import Browser

_ROUNDS: Final = 5
_PAGES: Final = {
    "overview": "",
    "queues": "queues",
    "one queue": "queues/queue-1",
    "nodes": "nodes",
}
_FIRST_ROW: Final = """new Promise((done) => {
  const row = () => document.querySelector('tbody tr');
  const look = () => row() ? done(performance.now()) : requestAnimationFrame(look);
  look();
})"""


def processor_s(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def share(pid: int, seconds: float) -> float:
    """The part of a core that a process uses, in percent."""
    before = processor_s(pid)
    time.sleep(seconds)
    return 100 * (processor_s(pid) - before) / seconds


def fill(node: Daemon, queues: int) -> None:
    """A job in each queue."""
    client = node.client()
    for first in range(0, queues, 500):
        names = range(first, min(first + 500, queues))
        for number in names:
            client.send("ADDJOB", f"queue-{number}", "x", "0")
        for _ in names:
            client.read()


def main() -> None:
    """Measure, and print."""
    queues = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        http = free_port()
        node = Daemon(folder, f"listen http tcp:{http}:interface=127.0.0.1").start()
        browser = Browser()
        try:
            fill(node, queues)
            url = f"http://127.0.0.1:{http}/"
            times = []
            for _ in range(_ROUNDS):
                browser.open("about:blank")
                browser.open(f"{url}#/queues")
                times.append(browser.run(_FIRST_ROW))
            print(f"first rows of {queues} queues: {statistics.median(times):.0f} ms")
            browser.open("about:blank")
            print(f"no console: {share(node.pid, seconds):.2f} % of a core")
            for page, place in _PAGES.items():
                browser.open(f"{url}#/{place}")
                time.sleep(2)
                print(f"console on {page}: {share(node.pid, seconds):.2f} % of a core")
                browser.open("about:blank")
        finally:
            browser.close()
            node.discard()


if __name__ == "__main__":
    main()
