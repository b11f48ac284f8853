"""The event log of a real daemon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zstandard

from tests.acceptance.daemon import Daemon, DaemonTestCase, wait_for


def logged_events(folder: Path) -> list[dict[str, Any]]:
    """The events in all finished files."""
    found = []
    for path in sorted(folder.rglob("*.zst")):
        if not path.name.startswith("_"):
            with open(path, "rb") as file:
                text = zstandard.ZstdDecompressor().stream_reader(file).read()
            found += [json.loads(line) for line in text.splitlines()]
    return found


class EventLogTests(DaemonTestCase):
    """What users find in the folder of the event log."""

    def daemon_with_log(self, *directives: str) -> Daemon:
        """A daemon with an event log."""
        return self.running("eventlog yes", "eventlog-rotate-time 1", *directives)

    def test_lines(self) -> None:
        """Compressed lines appear while the daemon works; a separate process writes them."""
        daemon = self.daemon_with_log()
        client = daemon.client()
        job_id = client.call("ADDJOB", "q", "body", "0")
        client.call("GETJOB", "FROM", "q")
        client.call("ACKJOB", job_id)
        events = daemon.folder / "events"
        wait_for(lambda: len(logged_events(events)) == 4, "four events are logged")
        types = [line["type"].rpartition(".")[2] for line in logged_events(events)]
        self.assertEqual(["added", "queued", "delivered", "acked"], types)
        self.assertEqual({job_id}, {line["subject"] for line in logged_events(events)})

    def test_stopped(self) -> None:
        """SIGTERM: all events are in the log when the process has ended."""
        daemon = self.daemon_with_log("eventlog-rotate-time 300")
        daemon.client().call("ADDJOB", "q", "body", "0")
        self.assertEqual(0, daemon.terminate())
        self.assertEqual(2, len(logged_events(daemon.folder / "events")))

    def test_killed(self) -> None:
        """SIGKILL: events that were written are finished after the next start."""
        daemon = self.daemon_with_log("eventlog-rotate-time 300")
        daemon.client().call("ADDJOB", "q", "body", "0")
        events = daemon.folder / "events"
        wait_for(
            lambda: any(path.stat().st_size > 100 for path in events.glob("_open-*")),
            "events are on the disk",
        )
        daemon.kill()
        daemon.start()
        wait_for(lambda: len(logged_events(events)) == 2, "two events are logged")

    def test_no_folder(self) -> None:
        """A folder that cannot be made costs the events, but the daemon works."""
        folder = self.folder()
        (folder / "events").write_text("a file")
        daemon = self.daemon_with_log(f"eventlog-dir {folder}/events")
        client = daemon.client()
        client.call("ADDJOB", "q", "body", "0")

        def dropped() -> bool:
            return b"eventlog_dropped:2" in client.call("INFO", "eventlog")

        wait_for(dropped, "two events are dropped")
        self.assertIn("can't be written", daemon.log())
