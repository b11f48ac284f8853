"""Makes the pictures in ``docs/how-to/images``: ``python -m tests.acceptance.consolepictures``, or
with ``--every-page FOLDER`` pictures of every page, in that folder: ``make console-shots``.

Where Pillow is installed, they get few colours, and so a third of the size.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.consolebench import Api, fill, reported
from tests.acceptance.daemon import free_port
from tests.acceptance.devtools import Browser

_IMAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "images"
_LOAD_S: Final = 60.0
_SHOTS_LOAD_S: Final = 20.0
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
_COLOURS: Final = 200
_SIZE: Final = (1200, 780)
_FLOWS: Final = (("mail", 14, 3), ("thumbnails", 9, 2), ("search:index", 6, 4))


def _load(api: Api, done: threading.Event) -> None:
    """Some jobs come, and some are done."""
    turn = 0
    while not done.wait(0.25):
        turn += 1
        for queue, rate, late in _FLOWS:
            for number in range(rate // 3 + turn % late):
                api.add(queue, f'{{"number": {number}, "turn": {turn}}}', retry_s=300)
            count = rate // 3 + (turn + 1) % late
            jobs = api("POST", f"queues/{quote(queue)}/lease?count={count}")["jobs"]
            if jobs and turn % 20:
                api("POST", "jobs/ack", {"ids": [job["id"] for job in jobs]})


def _save(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with contextlib.suppress(ImportError):
        image = importlib.import_module("PIL.Image").open(path).convert("RGB")
        image.quantize(_COLOURS, dither=0).save(path, optimize=True)


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
        thread = threading.Thread(target=_load, args=(api, done))
        thread.start()
        browser = Browser(folder / "profile")
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


def _themes(browser: Browser, path: str, *, whole: bool) -> None:
    """A picture with light colours, and one with dark ones."""
    for theme in ("light", "dark"):
        browser.run(f"document.documentElement.dataset.theme = '{theme}'")
        time.sleep(0.5)
        _save(Path(f"{path}-{theme}.png"), browser.picture(whole=whole))


def for_docs() -> None:
    """The pictures of the documentation."""
    with _console() as (api, browser, url, job):
        browser.size(*_SIZE)
        browser.open(url)
        browser.run("localStorage.setItem('span', '15m')")
        time.sleep(_LOAD_S)
        _IMAGES.mkdir(exist_ok=True)
        for name in ("overview", "queues", "queue", "job", "nodes"):
            browser.open(f"{url}#/{_PAGES[name].format(job=job)}")
            if name == "job":
                time.sleep(4)
                api("POST", "queues/invoices/lease")
                api("POST", f"jobs/{job}/nack", {"reason": "no such customer"})
                time.sleep(2)
                api("POST", "queues/invoices/lease")
                api("POST", f"jobs/{job}/working", {"progress": 0.4, "note": "line 40 of 100"})
            time.sleep(20 if name in ("queues", "queue") else 4)
            _themes(browser, str(_IMAGES / f"console-{name}"), whole=False)


def every_page(folder: Path) -> None:
    """Pictures of every page, on a screen and on a phone."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with _console() as (api, browser, url, job):
        found = api("GET", "queues/mail/dead-letters?scope=cluster")["reasons"]
        letter = quote(found[0]["letters"][0]["id"], safe="")
        flying = reported(api).removeprefix("jobs/")
        time.sleep(_SHOTS_LOAD_S)
        for width, height in _WIDTHS:
            browser.size(width, height, phone=width < 500)
            for name, place in _PAGES.items():
                browser.open(f"{url}#/{place.format(job=job, letter=letter, flying=flying)}")
                time.sleep(_SETTLE_S)
                _themes(browser, str(folder / f"{name}-{width}"), whole=True)
            browser.press("k", ctrl=True)
            time.sleep(1)
            _themes(browser, str(folder / f"find-{width}"), whole=False)
            browser.press("Escape")


def main() -> None:
    """Start a cluster under load, and look at it."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--every-page", type=Path, metavar="FOLDER")
    folder = words.parse_args().every_page
    if folder is None:
        for_docs()
    else:
        every_page(folder)


if __name__ == "__main__":
    main()
