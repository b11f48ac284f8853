"""Options of the formats, and their parsed values."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.options import TLS, AddOptions
from disque_tx.spark.errors import BadOption
from disque_tx.spark.options import read_options, write_options

_LEAST = {"disque.servers": "a:1", "subscribe": "q", "checkpointLocation": "/c"}


class ReadingTests(SynchronousTestCase):
    """Options of ``read`` and ``readStream``."""

    def refused(self, **options: str) -> str:
        """The error message for these options."""
        given = {**_LEAST, **{name.replace("_", "."): value for name, value in options.items()}}
        with self.assertRaises(BadOption) as raised:
            read_options(given, streaming=True)
        return str(raised.exception)

    def test_defaults(self) -> None:
        """Options that are not set have the documented defaults."""
        found = read_options(_LEAST, streaming=True)
        self.assertEqual((Address("a", 1),), found.cluster.addresses)
        self.assertEqual(
            (("q",), 50_000, None, True),
            (found.queues, found.jobs_max, found.partitions, found.strict),
        )
        self.assertEqual(("/c", 128 << 20), (found.checkpoint, found.bytes_max))

    def test_password_file(self) -> None:
        """The password may be in a file; a file that has none is an error, and so are two
        passwords."""
        file = Path(self.mktemp())
        for written in ("secret\n", "secret\r\nmore"):
            file.write_text(written)
            found = read_options({**_LEAST, "disque.passwordFile": str(file)}, streaming=True)
            self.assertEqual("secret", found.cluster.connection.password)
        both = {"disque.passwordfile": str(file), "disque.password": "x"}
        self.assertIn("not both", self.refused(**both))
        file.write_text("\n")
        self.assertIn("empty", self.refused(disque_passwordfile=str(file)))
        self.assertIn("cannot be read", self.refused(disque_passwordfile=f"{file}.none"))

    def test_all(self) -> None:
        """Names are in lower case, as Spark passes them; lists are stripped of duplicates and
        spaces."""
        found = read_options(
            {
                "disque.servers": "a:1, b:2,a:1",
                "subscribe": "x, y,x",
                "maxjobspertrigger": "7",
                "minpartitions": "3",
                "failondataloss": "False",
                "disque.password": "secret",
                "disque.tls": "true",
                "disque.tls.ca": "/ca.pem",
                "disque.tls.checkhostname": "no",
                "checkpointlocation": "/somewhere",
            },
            streaming=True,
        )
        self.assertEqual((Address("a", 1), Address("b", 2)), found.cluster.addresses)
        self.assertEqual(
            (("x", "y"), 7, 3, False),
            (found.queues, found.jobs_max, found.partitions, found.strict),
        )
        self.assertEqual(TLS("/ca.pem", check_hostname=False), found.cluster.connection.tls)
        self.assertNotIn("secret", repr(found))

    def test_refused(self) -> None:
        """Each wrong option has a message that names it and the possible values."""
        for options, words in (
            ({"startingOffsets": "latest"}, "startingOffsets"),
            ({"group": "x"}, "no option 'group' here. Its options are: checkpointLocation"),
            ({"subscribe": "a,,b"}, "names of queues"),
            ({"subscribe": ""}, "needs the option subscribe"),
            ({"maxJobsPerTrigger": "1000001"}, "from 1 to 1000000, not '1000001'"),
            ({"maxBytesPerTrigger": "0"}, "from 1 to 1073741824, not '0'"),
            ({"checkpointLocation": ""}, "needs the option checkpointLocation"),
            ({"maxJobsPerTrigger": "-1"}, "not '-1'"),
            ({"failOnDataLoss": "maybe"}, "true or false"),
            ({"mode": "drain"}, "no option 'mode' here"),
            ({"disque_servers": "a:0"}, "not the address of a node"),
        ):
            self.assertIn(words, self.refused(**options))

    def test_patterns(self) -> None:
        """A stream may have queues, patterns, or both; a table has names only."""
        pattern = {"disque.servers": "a:1", "checkpointLocation": "/c", "subscribepattern": "m*,n*"}
        found = read_options(pattern, streaming=True)
        self.assertEqual(((), ("m*", "n*")), (found.queues, found.patterns))
        both = read_options({**pattern, "subscribe": "q"}, streaming=True).selection
        self.assertEqual(((b"q",), (b"m*", b"n*")), (both.queues, both.match))
        self.assertRaises(BadOption, read_options, {**_LEAST, **pattern}, False)

    def test_password_in_servers(self) -> None:
        """Servers must not contain a password, because plans show them; nor does the message."""
        error = self.refused(disque_servers="disque://:hush@a:1")
        self.assertIn("disque.password", error)
        self.assertNotIn("hush", error)


class WritingTests(SynchronousTestCase):
    """Options of ``write`` and ``writeStream``."""

    def test_all(self) -> None:
        """The options of jobs are passed to ADDJOB."""
        found = write_options(
            {
                "disque.servers": "a",
                "queue": "q",
                "retry": "0",
                "ttl": "60",
                "disque.replicate": "2",
                "disque.timeout": "100",
                "deliverymode": "STAGED",
            }
        )
        self.assertEqual(
            ("q", AddOptions(timeout_ms=100, replicate=2, retry_s=0, ttl_s=60), True),
            (found.queue, found.adding, found.staged),
        )

    def test_staged_delay(self) -> None:
        """A staged job is hidden by its delay, so no other delay is possible."""
        with self.assertRaises(BadOption):
            write_options({"disque.servers": "a", "deliverymode": "staged", "delay": "5"})
