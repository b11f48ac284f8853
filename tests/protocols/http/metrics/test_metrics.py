"""Metrics, read as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.metrics.perqueue import NameFilter
from disque_tx.protocols.http.server.problems import Problem
from tests.protocols.http.api.queues.test_queues import SlicedCase

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def values(families: list[Metric]) -> dict[str, float]:
    """Samples by name and labels."""
    return {
        sample.name + "".join(f",{name}={text}" for name, text in sorted(sample.labels.items())):
        sample.value
        for family in families
        for sample in family.samples
    }  # fmt: skip


class SummaryTests(SlicedCase):
    """The node as a whole."""

    def scrape(self) -> dict[str, float]:
        """All samples of the page."""
        answer = self.http("GET", "/metrics")
        self.assertEqual(200, answer.status, answer.body)
        self.assertTrue(answer.headers["content-type"].startswith("text/plain"))
        return values(list(text_string_to_metric_families(answer.body.decode())))

    def test_counters(self) -> None:
        """Jobs are counted from their addition to their end."""
        self.scrape()
        self.call(b"ADDJOB", b"q", b"x", b"0")
        ((_queue, job_id, _body),) = self.call(b"GETJOB", b"FROM", b"q")
        self.call(b"ADDJOB", b"q", b"y", b"0")
        self.call(b"ACKJOB", job_id)
        found = self.scrape()
        for name, value in (
            ("disque_jobs_added_total", 2), ("disque_jobs_acked_total", 1),
            ("disque_jobs_queued", 1), ("disque_queues", 1), ("disque_aof_write_ok", 1),
            ("disque_command_calls_total,command=addjob", 2), ("disque_clients", 1),
            ("disque_cluster_nodes,state=failed", 0), ("disque_job_wait_seconds_count", 1),
            ("disque_job_run_seconds_count", 1), ("disque_job_run_seconds_bucket,le=+Inf", 1),
            ("disque_protocol_clients,protocol=embedded", 1),
            ("disque_protocol_connections_total,protocol=embedded", 2),
            ("disque_protocol_commands_total,protocol=resp", 4),
        ):  # fmt: skip
            self.assertEqual(value, found.get(name), name)
        self.assertIn("disque_build_info,protocol=1.0-rc1,version=", str(list(found)))
        spent_s = found["disque_command_seconds_total,command=addjob"]
        self.assertTrue(0 < spent_s < 1, spent_s)

    def test_openmetrics(self) -> None:
        """Prometheus asks for OpenMetrics, whose parser is strict."""
        self.call(b"ADDJOB", b"q", b"x", b"0")
        for path in ("/metrics", "/metrics/detailed"):
            answer = self.accepting(path, _OPENMETRICS)
            families = list(openmetrics_families(answer))
            self.assertGreater(len(families), 5, path)

    def accepting(self, path: str, accept: str) -> str:
        """A page in a format."""
        answer = self.http("GET", path, Accept=accept)
        self.assertEqual(200, answer.status, answer.body)
        return answer.body.decode()

    def test_strange_accept(self) -> None:
        """A header that cannot be understood gets plain text."""
        for accept in ("application/openmetrics-text; version=x", ";;,,", "*/*"):
            self.assertIn("disque_clients 1.0", self.accepting("/metrics", accept))

    def test_unasked(self) -> None:
        """A node whose metrics nobody reads spends no time on histograms."""
        self.assertIsNone(self.root.runtime.node.outbox.events)


class DetailedTests(SlicedCase):
    """Figures per queue."""

    def scrape(self, query: str = "") -> dict[str, float]:
        """All samples of the page."""
        answer = self.slow("GET", f"/metrics/detailed{query}")
        self.assertEqual(200, answer.status, answer.body)
        return values(list(text_string_to_metric_families(answer.body.decode())))

    def test_queues(self) -> None:
        """Every queue has its figures, also when there are many."""
        for number in range(300):
            self.call(b"ADDJOB", b"q%d" % number, b"x", b"0")
        found = self.scrape()
        self.assertEqual(300 * 11, len(found))
        self.assertEqual(1, found["disque_queue_jobs,queue=q7,state=queued"])
        self.assertEqual(1, found["disque_queue_jobs_in_total,queue=q7"])

    def test_states(self) -> None:
        """A job is counted where it is, so the states of a queue can be summed up."""
        for body in (b"1", b"2", b"3"):
            self.call(b"ADDJOB", b"q", body, b"0")
        self.call(b"GETJOB", b"COUNT", b"2", b"FROM", b"q")
        self.call(b"ADDJOB", b"q", b"later", b"0", b"DELAY", b"60")
        found = self.scrape("?family=disque_queue_jobs")
        states = [
            found[f"disque_queue_jobs,queue=q,state={state}"]
            for state in ("queued", "in_flight", "delayed", "backoff", "loaded")
        ]
        self.assertEqual([1, 2, 1, 0, 0], states)

    def test_chosen(self) -> None:
        """A scraper takes only what it needs."""
        for name in (b"mail", b"mail.eu", b"other"):
            self.call(b"ADDJOB", name, b"x", b"0")
        found = self.scrape("?family=disque_queue_jobs&queue=mail.*")
        self.assertEqual(
            {
                f"disque_queue_jobs,queue={name},state={state}"
                for name in ("mail", "mail.eu")
                for state in ("queued", "in_flight", "delayed", "backoff", "loaded")
            },
            set(found),
        )
        self.problem(400, "ERR", self.http("GET", "/metrics/detailed?family=nothing"))

    def test_hostile_names(self) -> None:
        """The name of a queue cannot add samples of its own."""
        name = b'a"} 1\ndisque_clients 99\n#\\'
        self.call(b"ADDJOB", name, b"x", b"0")
        found = self.scrape("?family=disque_queue_paused")
        self.assertEqual([f"disque_queue_paused,queue={name.decode()}"], list(found))


class PatternTests(SynchronousTestCase):
    """Which queues a pattern means."""

    def test_matches(self) -> None:
        """Patterns match the whole name, as in Prometheus."""
        for pattern, name, expected in (
            ("mail", b"mail", True), ("mail", b"mails", False), ("ma.l", b"mail", True),
            ("a|b.*", b"bcd", True), ("a|b.*", b"ac", False), (r"a\.b", b"a.b", True),
            (r"a\.b", b"axb", False), (r"a\*", b"a*", True), (r"a\*", b"ab", False),
            (".*", b"x" * 2_000, False),
        ):  # fmt: skip
            self.assertEqual(expected, NameFilter(pattern).matches(name), (pattern, name))

    def test_refused(self) -> None:
        """A pattern that could occupy the node for hours is refused."""
        for pattern in ("(a+)+", "a{9}", "[a", "a*", "^a$", "\\d"):
            self.assertRaises(Problem, NameFilter, pattern)
