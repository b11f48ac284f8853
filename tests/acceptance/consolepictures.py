"""Makes the pictures of every page of the console that the documentation shows, on a screen and on
a phone, with light colours and with dark ones: ``make console-shots``."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.consolebench import Api, announcement, fill, reported
from tests.acceptance.daemon import free_port
from tests.acceptance.devtools import Browser

_IMAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "images"
#: How long jobs come and go before the first picture.
_LOAD_S: Final = 60.0
#: How long a page has until its picture is made.
_SETTLE_S: Final = 4.0
_WIDTHS: Final = ((1440, 900), (390, 800))
_PAGES: Final = {
    "overview": "",
    "queues": "queues",
    "queue": "queues/mail",
    "job": "jobs/{job}",
    "letter": "jobs/{letter}",
    "in-flight": "jobs/{flying}",
    "search": "search?text=ada",
    "schedules": "schedules",
    "nodes": "nodes",
    "workers": "workers",
    "clients": "clients",
    "slowlog": "slowlog",
    "actions": "actions",
}
_FLOWS: Final = (("mail", 14, 3), ("thumbnails", 9, 2), ("search:index", 6, 4))


def _workers(fleet: Fleet) -> Callable[[], None]:
    """Two workers, at two nodes; each call lets both report."""
    busy, other = fleet.nodes[0].client(), fleet.nodes[1].client()
    more = {"id": "1", "worker": "web2:311", "host": "web2", "pid": 311, "held": 0, "running": 0}

    def report() -> None:
        busy.call("CLIENT", "ANNOUNCE", announcement())
        other.call("CLIENT", "ANNOUNCE", announcement(**more, jobs=[]))

    return report


def _load(api: Api, report: Callable[[], None], done: threading.Event) -> None:
    """Some jobs come, some are done, and workers report."""
    turn = 0
    while not done.wait(0.25):
        if turn % 20 == 0:
            report()
        turn += 1
        for queue, rate, late in _FLOWS:
            for number in range(rate // 3 + turn % late):
                api.add(queue, f'{{"number": {number}, "turn": {turn}}}', retry_s=300)
            count = rate // 3 + (turn + 1) % late
            jobs = api("POST", f"queues/{quote(queue)}/lease?count={count}")["jobs"]
            if jobs and turn % 20:
                api("POST", "jobs/ack", {"ids": [job["id"] for job in jobs]})


@contextlib.contextmanager
def _console() -> Iterator[tuple[Api, Browser, str, str]]:
    """A cluster of five nodes under load, one of which is dead: the API of a node, a browser, the
    address of the console, and a job, quoted."""
    here, folder = Path.cwd(), Path(tempfile.mkdtemp())
    os.chdir(folder)
    fleet = Fleet(5)
    ports = [free_port() for _ in fleet.nodes]
    for node, port in zip(fleet.nodes, ports, strict=True):
        node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
    done = threading.Event()
    thread = browser = None
    try:
        fleet.start()
        api = Api(fleet.nodes[0].ip, ports[0])
        job = quote(fill(api), safe="")
        fleet.nodes[4].kill()
        thread = threading.Thread(target=_load, args=(api, _workers(fleet), done))
        thread.start()
        browser = Browser()
        os.chdir(here)
        yield api, browser, f"http://{fleet.nodes[0].ip}:{ports[0]}/", job
        print(browser.log)
    finally:
        done.set()
        if thread is not None:
            thread.join()
        if browser is not None:
            browser.close()
        fleet.discard()
        shutil.rmtree(folder)


def _themes(browser: Browser, name: str, *, whole: bool) -> None:
    """A picture with light colours, and one with dark ones."""
    for theme in ("light", "dark"):
        browser.run(f"document.documentElement.dataset.theme = '{theme}'")
        time.sleep(0.5)
        (_IMAGES / f"console-{name}-{theme}.webp").write_bytes(browser.picture(whole=whole))


def _live(api: Api, job: str) -> None:
    """Let the job whose page is shown have a life: an attempt that failed, and one under way."""
    api("POST", "queues/invoices/lease")
    api("POST", f"jobs/{job}/nack", {"reason": "no such customer"})
    time.sleep(2)
    api("POST", "queues/invoices/lease")
    api("POST", f"jobs/{job}/working", {"progress": 0.4, "note": "line 40 of 100"})


def main() -> None:
    """Start a cluster under load, and take pictures of its console."""
    _IMAGES.mkdir(exist_ok=True)
    with _console() as (api, browser, url, job):
        found = api("GET", "queues/mail/dead-letters?scope=cluster")["reasons"]
        letter = quote(found[0]["letters"][0]["id"], safe="")
        flying = reported(api).removeprefix("jobs/")
        browser.open(url)
        browser.run("localStorage.setItem('span', '15m')")
        time.sleep(_LOAD_S)
        _live(api, job)
        for width, height in _WIDTHS:
            browser.size(width, height, phone=width < 500)
            for name, place in _PAGES.items():
                browser.open(f"{url}#/{place.format(job=job, letter=letter, flying=flying)}")
                time.sleep(_SETTLE_S)
                _themes(browser, f"{name}-{width}", whole=True)
            browser.press("k", ctrl=True)
            time.sleep(1)
            _themes(browser, f"find-{width}", whole=False)
            browser.press("Escape")


if __name__ == "__main__":
    main()
