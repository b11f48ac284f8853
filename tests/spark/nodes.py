"""Scripted nodes for the tests of the Spark part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader

from disque_tx.client.addresses import Address, address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests.selection import Selection
from disque_tx.spark.options import Cluster, read_options
from disque_tx.spark.source.fetching import Fetching
from disque_tx.spark.source.readers import JobStreamReader
from tests.client.scripted import ScriptedNode, ScriptedTestCase, array, bulk

IDS = [f"D-aaaaaaaa-{number:024d}-05a1" for number in range(10)]
GONE = b"-NOJOB Job not known in the context of this node.\r\n"
NIL = b"$-1\r\n"


def shown(job_id: str, **changed: bytes) -> bytes:
    """A reply to SHOW: a delivered job, with these changes."""
    fields = {
        "id": bulk(job_id),
        "queue": bulk("q"),
        "state": bulk("active"),
        "repl": b":1\r\n",
        "ttl": b":1000\r\n",
        "ctime": b":1700000000123000007\r\n",
        "delay": b":0\r\n",
        "retry": b":60\r\n",
        "nacks": b":1\r\n",
        "additional-deliveries": b":2\r\n",
        "nodes-delivered": b"*0\r\n",
        "nodes-confirmed": b"*0\r\n",
        "next-requeue-within": b":50000\r\n",
        "next-awake-within": b":50000\r\n",
        "body": bulk("body"),
    }
    changed_fields = {
        **fields,
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    return array(*[part for name, value in changed_fields.items() for part in (bulk(name), value)])


def fetched(*ids: str) -> bytes:
    """A reply to GETJOB with these jobs."""
    counters = (bulk("nacks"), b":0\r\n", bulk("additional-deliveries"), b":0\r\n")
    return array(*[array(bulk("q"), bulk(job_id), bulk("x"), *counters) for job_id in ids])


def counts(queued: int, in_flight: int = 0, oldest_ms: int = 0) -> bytes:
    """A reply to QCOUNT."""
    return array(*_fields(queued, in_flight, oldest_ms), bulk("nodes"), b":1\r\n", *_NONE_MISSING)


def listed(cursor: str, *queues: tuple[str, int]) -> bytes:
    """A reply to QLIST: names of queues, and how many jobs are queued in each."""
    rows = [array(bulk("name"), bulk(name), *_fields(queued, 0, 0)) for name, queued in queues]
    page = (bulk("cursor"), bulk(cursor), bulk("queues"), array(*rows), bulk("nodes"), b":1\r\n")
    return array(*page, *_NONE_MISSING)


_NONE_MISSING = (bulk("nodes-missing"), array())


def _fields(queued: int, in_flight: int, oldest_ms: int) -> list[bytes]:
    numbers = {"queued": queued, "delayed": 0, "backoff": 0, "in-flight": in_flight, "dead": 0}
    numbers |= {"blocked-clients": 0, "oldest-ms": oldest_ms, "loaded": 0}
    found = [part for name, number in numbers.items() for part in (bulk(name), b":%d\r\n" % number)]
    return [*found, bulk("in-per-s"), bulk("0.000"), bulk("out-per-s"), bulk("0.000")]


class NodesTestCase(ScriptedTestCase):
    """Tests with scripted nodes and connections to them."""

    def servers(self, *nodes: ScriptedNode) -> Servers:
        """Connections to these nodes."""
        servers = Servers([address_of(node) for node in nodes], ConnectionOptions(timeout_s=5.0))
        self.addCleanup(servers.close)
        return servers

    def fetching(self, *nodes: ScriptedNode, timeout_s: float = 5.0) -> Fetching:
        """What gets jobs of the queue ``q`` from these nodes, by the clock of the test."""
        options = ConnectionOptions(timeout_s=timeout_s)
        cluster = Cluster(tuple(address_of(node) for node in nodes), options)
        fetching = Fetching(cluster, Selection.of(["q"]), self.time.now_s)
        self.addCleanup(fetching.close)
        return fetching


class StreamTestCase(NodesTestCase):
    """Tests of readers of one checkpoint, each as if in a process of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.checkpoint = Path(self.mktemp()).resolve()

    def reader(self, node: ScriptedNode, **more: str) -> JobStreamReader:
        """A reader of the queue ``q`` of this node."""
        options = {"disque.servers": node.address, "subscribe": "q", **more}
        options["checkpointLocation"] = str(self.checkpoint)
        reader = JobStreamReader(read_options(options, streaming=True))
        self.addCleanup(reader.stop)
        return reader

    def commit(self, offset: dict[str, Any], *logs: str) -> None:
        """What Spark writes until a batch is committed."""
        for log in logs or ("offsets", "commits"):
            (self.checkpoint / log).mkdir(exist_ok=True)
            (self.checkpoint / log / "0").write_text(f"v1\n{{}}\n{json.dumps(offset)}")

    def rows(
        self,
        reader: DataSourceStreamReader,
        start: dict[str, Any],
        end: dict[str, Any],
        column: str = "id",
    ) -> list[str]:
        """The IDs of a batch, or another column, as tasks read them."""
        parts = reader.partitions(start, end)
        return [value for part in parts for value in self.column(reader.read(part), column)]

    def column(self, read: Iterator[Any], name: str) -> list[str]:
        """A column of what a task reads."""
        batches = [cast(pa.RecordBatch, batch) for batch in read]
        return [value for batch in batches for value in batch.column(name).to_pylist()]


def address_of(node: ScriptedNode) -> Address:
    """The address of a node."""
    return address(node.address)
