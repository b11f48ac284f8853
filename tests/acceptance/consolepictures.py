"""Makes the pictures in ``docs/how-to/images``: ``python -m tests.acceptance.consolepictures``.

Where Pillow is installed, they get few colours, and so a third of the size.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.consolebench import Api, fill
from tests.acceptance.daemon import free_port
from tests.acceptance.devtools import Browser

_IMAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "images"
_LOAD_S: Final = 60.0
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


def main() -> None:
    """Start a cluster under load, and look at it."""
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    fleet = Fleet(5)
    ports = [free_port() for _ in fleet.nodes]
    for node, port in zip(fleet.nodes, ports, strict=True):
        node.words += ["--listen", "http", f"tcp:{port}:interface={node.ip}"]
    done = threading.Event()
    browser = None
    try:
        fleet.start()
        api = Api(fleet.nodes[0].ip, ports[0])
        job = quote(fill(api), safe="")
        fleet.nodes[4].kill()
        thread = threading.Thread(target=_load, args=(api, done))
        thread.start()
        browser = Browser(folder / "profile")
        browser.size(*_SIZE)
        url = f"http://{fleet.nodes[0].ip}:{ports[0]}/"
        browser.open(url)
        browser.run("localStorage.setItem('span', '15m')")
        time.sleep(_LOAD_S)
        pages = {
            "overview": "",
            "queues": "queues",
            "queue": "queues/mail",
            "job": f"jobs/{job}",
            "nodes": "nodes",
        }
        _IMAGES.mkdir(exist_ok=True)
        for name, place in pages.items():
            browser.open(f"{url}#/{place}")
            if name == "job":
                time.sleep(4)
                api("POST", "queues/invoices/lease")
                api("POST", f"jobs/{job}/nack", {"reason": "no such customer"})
                time.sleep(2)
                api("POST", "queues/invoices/lease")
            time.sleep(20 if name in ("queues", "queue") else 4)
            for theme in ("light", "dark"):
                browser.run(f"document.documentElement.dataset.theme = '{theme}'")
                time.sleep(0.5)
                _save(_IMAGES / f"console-{name}-{theme}.png", browser.picture())
        done.set()
        thread.join()
        print(browser.log)
    finally:
        done.set()
        if browser is not None:
            browser.close()
        fleet.discard()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
