"""Service level objectives."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.cli.program import command
from disque_tx.spark.pipeline.report import ReportScope
from disque_tx.spark.pipeline.report.slo import BadSlo, Burn, Slo
from tests.spark.pipeline.logs import EPOCH, Node, job_id
from tests.spark.pipeline.report.test_queries import ShownCase, run

_BEGIN_S = int(EPOCH.timestamp())


class WordsTests(SynchronousTestCase):
    """Objectives as people write them."""

    def test_words(self) -> None:
        """The name of a queue may have colons, as it often does."""
        self.assertEqual(Slo("mail", "99", 30_000), Slo.of("mail:99%:30s"))
        self.assertEqual(Slo("acme:*", "99.95", 100), Slo.of("acme:*:99.95%:100ms"))

    def test_mistakes(self) -> None:
        """What is no objective is refused with what is wrong."""
        for text, why in {
            "mail": "PATTERN:SHARE%:SPAN is expected",
            ":99%:30s": "PATTERN:SHARE%:SPAN is expected",
            "mail:99:30s": "PATTERN:SHARE%:SPAN is expected",
            "mail:x%:30s": "PATTERN:SHARE%:SPAN is expected",
            "mail:nan%:30s": "PATTERN:SHARE%:SPAN is expected",
            "mail:0%:30s": "above 0 % and below 100 %",
            "mail:100%:30s": "above 0 % and below 100 %",
            "mail:99%:soon": "'soon' is not a span of time",
        }.items():
            with self.assertRaises(BadSlo) as raised:
                Slo.of(text)
            self.assertIn(why, str(raised.exception), text)

    def test_option(self) -> None:
        """The error names the option."""
        words = ["report", "out", "--html", str(Path(self.mktemp())), "--slo", "mail"]
        wrong = CliRunner().invoke(command, words)
        self.assertEqual(2, wrong.exit_code)
        self.assertIn("Invalid value for --slo: 'mail' is not", wrong.output)

    def test_rounding(self) -> None:
        """A share that is reached exactly is met, whatever floating point makes of it, and 100 % is
        shown only if no job was late."""
        burn = Burn(Slo.of("*:90%:1s"), "slo-1", 10, 1, None)
        self.assertEqual((True, 1.0, 90.0), (burn.is_met, burn.rate, burn.reached_percent))
        burn = Burn(Slo.of("*:99.9%:1s"), "slo-1", 10**7, 1, None)
        self.assertEqual(99.999, burn.reached_percent)


class BurnTests(ShownCase):
    """What was reached."""

    def burn(self, node: Node, text: str = "*:90%:1min") -> Burn:
        """The only objective of a report on a node; the page shows the query for it."""
        page, figures = self.made(node, asked=ReportScope(slos=(Slo.of(text),)))
        (burn,) = figures.burns
        rows = run(page, "slo-1")
        self.assertEqual(burn.late, sum(row["late"] for row in rows))
        self.assertEqual(burn.jobs, sum(row["jobs"] for row in rows))
        self.page = page
        return burn

    def delivered(self, node: Node, number: int, at_s: float, wait_s: float) -> None:
        """A job waits, and is worked on."""
        node.add(at_s, job_id(number))
        wait_ms = int(wait_s * 1000)
        node.log(at_s + wait_s, "delivered", job_id(number), wait_ms=wait_ms)
        node.log(at_s + wait_s + 1, "acked", job_id(number), run_ms=1000)

    def test_below_since(self) -> None:
        """Ten jobs are in time; then workers stop, and the objective is below from the step on in
        which the first job became late, although none has been delivered since."""
        node = Node("a")
        for number in range(10):
            self.delivered(node, number, 60.0 * number, 2)
        for number in range(10, 14):
            node.add(60.0 * number, job_id(number))
        # The end of what is known: the last job may still be in time.
        node.log(60 * 13 + 30, "working", job_id(9))
        burn = self.burn(node)
        self.assertEqual((13, 3), (burn.jobs, burn.late))
        self.assertEqual(_BEGIN_S + 11 * 60, burn.below_s)
        self.assertAlmostEqual(3 / 13 / 0.1, burn.rate)
        self.assertIn("below since Fri 2026-11-20 19:11 UTC", self.page)
        self.assertIn("76.923 %", self.page)

    def test_met_now(self) -> None:
        """A bad hour that is over does not call anybody: the share of the period is too low, and
        the objective is met now."""
        node = Node("a")
        for number in range(4):
            self.delivered(node, number, 60.0 * number, 90 if number < 2 else 1)
        burn = self.burn(node)
        self.assertEqual((4, 2, None, False), (burn.jobs, burn.late, burn.below_s, burn.is_met))
        self.assertIn("met now", self.page)

    def test_only_its_queues(self) -> None:
        """Only queues like the pattern count, whose characters are those of the protocol."""
        node = Node("a")
        for number, queue in enumerate(("mail-a", "mail-b", "sms", "mail*", "it's")):
            node.add(number, job_id(number), queue=queue)
            node.log(number + 90, "delivered", job_id(number), queue=queue, wait_ms=90_000)
        for pattern, jobs in {
            "*": 5,
            "mail*": 3,
            "mail-[^a]": 1,
            "mail-?": 2,
            r"mail\*": 1,
            "it's": 1,
            "' OR true --": 0,
        }.items():
            self.assertEqual(jobs, self.burn(node, f"{pattern}:99%:1s").jobs, pattern)
        self.assertIn("no jobs", self.page)

    def test_not_delivered(self) -> None:
        """A job that expired undelivered is late, also before the limit; one that was deleted, or
        waits for its delay, is not."""
        node = Node("a")
        node.add(0, job_id(1), ttl_s=5)
        node.log(5, "expired", job_id(1))
        node.add(0, job_id(2))
        node.log(5, "deleted", job_id(2), reason="command")
        node.log(0, "added", job_id(3), retry_s=60, ttl_s=86_400, delay_s=3600, replicate=1)
        node.log(0, "added", job_id(4), retry_s=60, ttl_s=86_400, delay_s=60, replicate=1)
        self.delivered(node, 5, 300, 1)
        burn = self.burn(node)
        self.assertEqual((3, 2), (burn.jobs, burn.late))
