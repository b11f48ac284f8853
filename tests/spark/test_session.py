"""How a session is set up."""

from __future__ import annotations

import sys

from pyspark.sql import Row
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.schema import EVENTS_DDL, EVENTS_READ_DDL, arrow_schema
from disque_tx.spark.session import prepare, settings
from tests.spark.shared import shared_session


class SettingsTests(SynchronousTestCase):
    """Settings and environment."""

    def test_settings(self) -> None:
        """What the user says goes first; what only suits one machine is left out elsewhere."""
        found = settings("local[2]", {"spark.driver.memory": "9g"})
        self.assertEqual("9g", found["spark.driver.memory"])
        self.assertEqual("127.0.0.1", found["spark.driver.host"])
        self.assertNotIn("spark.driver.host", settings("spark://a:1", {}))
        self.assertEqual("UTC", settings(None, {})["spark.sql.session.timeZone"])

    def test_submitted(self) -> None:
        """Where spark-submit has chosen, nothing is changed."""
        environment = {"PYSPARK_GATEWAY_PORT": "1"}
        prepare(environment)
        self.assertEqual({"PYSPARK_GATEWAY_PORT": "1"}, environment)

    def test_session(self) -> None:
        """The session computes, in UTC and with this Python."""
        spark = shared_session()
        rows = spark.sql("SELECT CAST(TIMESTAMP'2026-01-01 00:00:00' AS BIGINT) AS s").collect()
        self.assertEqual([Row(s=1767225600)], rows)
        found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.version_info[:2]).collect()
        self.assertEqual([sys.version_info[:2]], found)

    def test_ddl(self) -> None:
        """Spark reads the published columns of events as we do."""
        for ddl in (EVENTS_DDL, EVENTS_READ_DDL):
            columns = shared_session().createDataFrame([], ddl).schema
            self.assertEqual(arrow_schema(ddl).names, columns.names)
