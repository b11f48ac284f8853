"""A Spark session that is ready for the formats of this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Final

from pyspark.sql import SparkSession

from disque_tx.spark.java import java_home

_EVERYWHERE: Final[Mapping[str, str]] = {
    # Times of jobs and events are UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
#: On one machine: nothing listens to others, and the memory is that of the one process.
_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}


def session(
    name: str,
    master: str | None = "local[*]",
    conf: Mapping[str, str] | None = None,
    environment: MutableMapping[str, str] = os.environ,
) -> SparkSession:
    """The session of this process; one that is there already is given new settings.

    ``name``: what Spark calls the application. ``master``: where it runs, ``None`` if
    ``spark-submit`` said so. ``conf``: settings of Spark, which go before those made here: UTC, few
    log lines, and on a local master 2 GiB of memory and no web page. ``environment``: of this
    process, where ``JAVA_HOME`` and ``PYSPARK_PYTHON`` are set.

    :raises JavaMissing: when there is no Java that Spark runs on.
    """
    prepare(environment)
    if _is_local(master):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: SparkSession.Builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in settings(master, conf or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def settings(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of Spark for a session."""
    return {**_EVERYWHERE, **(_LOCAL if _is_local(master) else {}), **conf}


def _is_local(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Let Spark find a suitable Java, and this Python. Under ``spark-submit`` both are chosen.

    :raises JavaMissing: when there is no Java that Spark runs on.
    """
    if "PYSPARK_GATEWAY_PORT" in environment:
        return
    home = java_home(environment)
    if home is None:
        environment.pop("JAVA_HOME", None)
    else:
        environment["JAVA_HOME"] = home
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
