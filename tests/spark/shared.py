"""One Spark session for all tests of a process, because starting one takes some six seconds."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache

from pyspark.sql import SparkSession

from disque_tx.spark import session
from tests.acceptance.daemon import environment


@cache
def shared_session() -> SparkSession:
    """The session, with two cores; its Python workers run the package under test."""
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]
    folder = tempfile.mkdtemp(prefix="spark-", dir=".")
    spark = session(
        "tests",
        "local[2]",
        {
            # Tests check the exceptions.
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": os.path.abspath(os.path.join(folder, "warehouse")),
            "spark.local.dir": os.path.abspath(folder),
        },
    )
    atexit.register(spark.stop)
    return spark
