"""Queries among the workers of their nodes."""

from __future__ import annotations

from tests.acceptance.consolebench import Api
from tests.acceptance.daemon import free_port, wait_for
from tests.acceptance.spark.case import SparkTestCase, add_many, address


class AnnouncingTests(SparkTestCase):
    """A stream that runs for longer."""

    def test_listed(self) -> None:
        """A running query is listed with how far it is behind, by which the console shows it on the
        page of its queue, and has left the list soon after its end."""
        port = free_port()
        daemon = self.running(f"listen http tcp:{port}:interface=127.0.0.1")
        api = Api("127.0.0.1", port)
        folder = self.folder()
        stream = self.stream(address(daemon), folder, queryName="into the lake")
        daemon.client().call("PAUSE", "q", "out")
        add_many(address(daemon), "q", 7)
        query = self.started(stream, folder, once=False)

        def behind() -> list[tuple[str, int]]:
            found = api("GET", "workers?queue=q")["workers"]
            return [(row["worker"], row["behind"][0]["queued"]) for row in found]

        wait_for(lambda: behind() == [("Spark query into the lake", 7)], "it is listed", 30)
        query.stop()
        wait_for(
            lambda: not any(row["connected"] for row in api("GET", "workers")["workers"]),
            "it is not connected any more",
        )
