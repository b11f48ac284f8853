"""``disque import rq``, from a Redis server with scripted replies."""

from __future__ import annotations

import json
import pickle
import time
import zlib

from disque_tx.cli.verbs.imports.outcome import SourceFailed
from disque_tx.cli.verbs.imports.rqsource import RQSource
from tests.cli.livenode import VerbCase
from tests.client.scripted import ScriptedNode, array, bulk

_OK = b"+OK\r\n"
_NONE = array()
_QUEUED = b"+QUEUED\r\n"


def stored(*call: object) -> bytes:
    """What EXEC replies of a job with this call: its fields, without a TTL and dependents."""
    fields = array(bulk("status"), bulk("queued"), bulk("data"), bulk(_packed(call)))
    return array(fields, b":-1\r\n", b":0\r\n")


def _packed(call: tuple[object, ...]) -> bytes:
    return zlib.compress(pickle.dumps(call))


class ImportTests(VerbCase):
    """Two jobs wait in RQ's queue ``mail``, of which one has an argument that cannot be moved."""

    def setUp(self) -> None:
        super().setUp()
        jobs = [stored("shop.send", None, (1,), {}), stored("shop.send", None, (b"x",), {})]
        ids = [bulk("one"), bulk(b"two\xff")]
        self.redis = ScriptedNode(
            CLIENT=_OK,
            SMEMBERS=array(bulk("rq:queue:mail")),
            LLEN=[b":2\r\n", b":0\r\n"],
            ZCARD=b":0\r\n",
            HGETALL=[_NONE, _QUEUED],
            LRANGE=[array(*ids), array(*ids[1:]), _NONE],
            ZRANGE=_NONE,
            MULTI=_OK,
            PTTL=_QUEUED,
            EXISTS=_QUEUED,
            EXEC=jobs,
            EVALSHA=b":1\r\n",
        )
        self.redis.answer("CLIENT LIST", bulk("id=1 addr=127.0.0.1:5 name=worker\n"))
        self.addCleanup(self.redis.close)
        self.url = f"redis://{self.redis.address}?protocol=2"

    def run_import(self, *words: str) -> tuple[int, str, str]:
        """Run the program to its end."""
        return self.disque("import", "rq", self.url, *words)

    def source(self) -> RQSource:
        """A connection to the server."""
        source = RQSource(self.url, None)
        self.addCleanup(source.close)
        return source

    def scripts(self) -> list[list[bytes]]:
        """The keys and arguments of each script that was run."""
        return [words[3:] for words in self.redis.requests if words[0] == b"EVALSHA"]

    def test_moved(self) -> None:
        """What can be moved is claimed, stored here, and deleted there; what cannot be moved is
        listed with its name, whatever bytes that has."""
        status, output, error = self.run_import()
        self.assertEqual((0, "1 job moved, 1 left\n"), (status, error))
        self.assertTrue(output.startswith("left\tmail\ttwo?\t"), output)
        self.assertIn("its arguments hold a bytes", output)
        ((_, _, body),) = self.call("GETJOB", "FROM", "mail")
        self.assertEqual(("shop.send", [1]), tuple(json.loads(body)[n] for n in ("task", "args")))
        claim, finish = self.scripts()
        note = {"key": "rq:queue:mail", "queue": "mail", "at_s": None}
        keys = [b"rq:queue:mail", b"rq:disque-import", b"rq:job:one:dependents"]
        self.assertEqual([*keys, b"one"], claim[:4])
        self.assertEqual(note, json.loads(claim[4]))
        self.assertEqual([b"rq:job:one", b"rq:disque-import", b"one"], finish)
        asked = [words for words in self.redis.requests if words[0] in (b"HGETALL", b"PTTL")]
        self.assertEqual([[b"PTTL", b"rq:job:one"], [b"PTTL", b"rq:job:two\xff"]], asked[2::2])

    def test_positions(self) -> None:
        """What is moved makes room for those behind it, and what stays does not: of a long queue
        each job is looked at, by a hundred at a time."""
        self.run_import()
        found = [words[1:] for words in self.redis.requests if words[0] == b"LRANGE"]
        ranges = [(b"0", b"99"), (b"1", b"100"), (b"2", b"101"), (b"0", b"99")]
        self.assertEqual([[b"rq:queue:mail", *one] for one in ranges], found)

    def test_scheduled(self) -> None:
        """A job that RQ is to begin later is moved from its own list, and waits here as long as it
        would have there; if it has to be given back it goes to that list."""
        at_s = int(time.time()) + 100
        self.redis.answer("LRANGE", _NONE)
        self.redis.answer("ZRANGE", array(bulk("later"), bulk(str(at_s))), _NONE)
        status, _, error = self.run_import()
        self.assertEqual((0, "1 job moved, 0 left\n"), (status, error))
        asked = [words[1] for words in self.redis.requests if words[0] in (b"LRANGE", b"ZRANGE")]
        self.assertEqual([b"rq:queue:mail", b"rq:scheduled:mail"], list(dict.fromkeys(asked)))
        note = {"key": "rq:scheduled:mail", "queue": "mail", "at_s": at_s}
        claim = self.scripts()[0]
        self.assertEqual((b"rq:scheduled:mail", note), (claim[0], json.loads(claim[4])))
        (job,) = self.call("JSCAN", "QUEUE", "mail", "REPLY", "all")[1]
        self.assertIn(job[job.index(b"delay") + 1], range(95, 102))
        self.assertEqual(0, self.length("mail"))

    def test_dry_run(self) -> None:
        """Looking changes nothing at the source, and stores nothing here."""
        self.redis.answer("HGETALL", _QUEUED)
        self.redis.answer("LRANGE", array(bulk("one"), bulk("two")), _NONE)
        status, _, error = self.run_import("--dry-run")
        self.assertEqual((0, "1 job would be moved, 1 left\n"), (status, error))
        self.assertEqual(([], 0), (self.scripts(), self.length("mail")))

    def test_refused(self) -> None:
        """A job that cannot be stored here is given back to RQ's workers."""
        self.call("PAUSE", "mail", "in")
        status, _, error = self.run_import()
        self.assertEqual(1, status)
        self.assertIn("PAUSED", error)
        self.assertEqual([b"rq:queue:mail", b"rq:disque-import", b"one", b""], self.scripts()[-1])

    def test_resumed(self) -> None:
        """A job that a killed import has claimed is moved first, and counted as one that may be
        here twice."""
        note = json.dumps({"key": "rq:queue:mail", "queue": "mail", "at_s": None})
        self.redis.answer("HGETALL", array(bulk("one"), bulk(note)), _QUEUED)
        self.redis.answer("LRANGE", _NONE)
        status, _, error = self.run_import()
        self.assertEqual((0, 1), (status, self.length("mail")))
        self.assertTrue(error.startswith("1 job moved, 0 left\n1 of them had been begun"), error)
        self.assertEqual([[b"rq:job:one", b"rq:disque-import", b"one"]], self.scripts())
        self.assertIn([b"HGETALL", b"rq:job:one"], self.redis.requests)

    def test_names(self) -> None:
        """Queues may have any name, and are asked for by it."""
        names = (bulk("rq:queue:mail"), bulk("rq:queue:a:b"), bulk(b"rq:queue:\xff"))
        self.redis.answer("SMEMBERS", array(*names))
        source = self.source()
        self.assertEqual(["a:b", "mail", "\udcff"], source.queues())
        self.assertEqual(2, source.counts("\udcff"))
        self.assertIn([b"LLEN", b"rq:queue:\xff"], self.redis.requests)

    def test_staying(self) -> None:
        """Jobs that are in no queue of RQ are listed with the reason why they stay."""
        self.redis.answer("LLEN", b":2\r\n")
        self.redis.answer("ZCARD", b":3\r\n", b":0\r\n", b":0\r\n", b":0\r\n", b":4\r\n", b":0\r\n")
        counts = [(count, why.partition(":")[0]) for count, why in self.source().staying("mail")]
        being, running = (2, "being fetched by workers of RQ"), (3, "running")
        self.assertEqual([being, running, (4, "failed; requeue them with rq to move them")], counts)

    def test_claims(self) -> None:
        """What is no claim of an import is not taken for one: nothing is moved or deleted then."""
        source = self.source()
        for note in ("x", "[]", '{"key": "k"}', '{"key": "k", "queue": "q", "at_s": "soon"}'):
            self.redis.answer("HGETALL", array(bulk("one"), bulk(note)))
            self.assertRaises(SourceFailed, source.claimed)
        note = '{"key": "k", "queue": "q", "at_s": 1.5}'
        self.redis.answer("HGETALL", array(bulk(b"one\xff"), bulk(note)))
        expected = {"one\udcff": {"key": "k", "queue": "q", "at_s": 1.5}}
        self.assertEqual(expected, source.claimed())

    def test_alone(self) -> None:
        """Another import of the same server would take these claims for its own."""
        other = bulk("id=2 addr=10.0.0.9:5 name=disque-import-other\n")
        self.redis.answer("CLIENT LIST", other)
        slept: list[float] = []
        error = self.assertRaises(SourceFailed, self.source().wait_until_alone, slept.append)
        self.assertIn("from 10.0.0.9:5", str(error))
        self.assertGreater(sum(slept), 1)
