"""Sums over the processes of a daemon."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.metrics.sums import of_daemon, summed


def figures(number: int, **info: str) -> dict[str, Any]:
    """Of one process."""
    durations = {"bounds_s": [1.0], "counts": [number, 1], "sum_s": number / 2}
    return {
        "info": {"disque_version": "1.0-rc1", **info},
        "commands": [["addjob", number, 10]],
        "protocols": [{"name": "resp", "connected": number}],
        "nodes": {"connected": number, "failed": 0},
        "leaving": False,
        "write_ok": number != 2,
        "wait": durations,
        "run": durations,
    }


class SumTests(SynchronousTestCase):
    """Two processes."""

    def test_sums(self) -> None:
        """Counters of the daemon are the sums, whoever answers: they do not jump from one scrape
        to the next."""
        total = summed(
            [
                figures(2, total_jobs_added="5", used_cpu_user="1.25", aof_last_write="ok"),
                figures(3, total_jobs_added="7", used_cpu_user="0.5", aof_last_write="ok"),
            ]
        )
        self.assertEqual("12", total["info"]["total_jobs_added"])
        self.assertEqual("1.75", total["info"]["used_cpu_user"])
        self.assertEqual("1.0-rc1", total["info"]["disque_version"])
        self.assertEqual("2", total["info"]["processes_counted"])
        self.assertEqual([("addjob", 5, 20)], total["commands"])
        self.assertEqual([{"name": "resp", "connected": 5}], total["protocols"])
        self.assertEqual({"bounds_s": [1.0], "counts": [5, 2], "sum_s": 2.5}, total["wait"])

    def test_greatest(self) -> None:
        """The age of the oldest job is no sum; nodes of the cluster are not counted twice; a log
        that cannot be written is seen, whichever it is."""
        total = summed(
            [
                figures(2, oldest_queued_job_age_seconds="30", cluster_clock_ahead_seconds="-9"),
                figures(3, oldest_queued_job_age_seconds="4", cluster_clock_ahead_seconds="1"),
            ]
        )
        self.assertEqual("30", total["info"]["oldest_queued_job_age_seconds"])
        self.assertEqual("-9", total["info"]["cluster_clock_ahead_seconds"])
        self.assertEqual({"connected": 3, "failed": 0}, total["nodes"])
        self.assertEqual((False, False), (total["leaving"], total["write_ok"]))

    def test_least(self) -> None:
        """The certificate that ends first is what counts."""
        ends = [figures(2, certificate_expires_in_seconds=left) for left in ("900", "400")]
        self.assertEqual("400", summed(ends)["info"]["certificate_expires_in_seconds"])

    def test_ended(self) -> None:
        """What processes had counted before they ended is in the sums, and they are no processes
        of the daemon any more."""
        running = figures(2, total_jobs_added="5", registered_jobs="9")
        ended = {**figures(3, total_jobs_added="7"), "nodes": {}}
        info = of_daemon({0: ended, 2: running})["info"]
        self.assertEqual(("12", "9"), (info["total_jobs_added"], info["registered_jobs"]))
        self.assertEqual("1", info["processes_counted"])
