"""A Spark session for the formats, and the Java that it runs on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

from pyspark.sql import Row
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import JavaMissing, RemoteSession, SparkTooOld
from disque_tx.spark.schema import EVENTS_DDL, EVENTS_READ_DDL, arrow_schema
from disque_tx.spark.sessions import (
    check_classic,
    check_version,
    java_home,
    prepare,
    settings,
    version,
)
from tests.spark.shared import shared_session


class SettingsTests(SynchronousTestCase):
    """Settings and environment of a session."""

    def test_settings(self) -> None:
        """Settings of the user have precedence; those that suit only one machine are omitted on a
        cluster."""
        found = settings("local[2]", {"spark.driver.memory": "9g"})
        self.assertEqual("9g", found["spark.driver.memory"])
        self.assertEqual("127.0.0.1", found["spark.driver.host"])
        self.assertNotIn("spark.driver.host", settings("spark://a:1", {}))
        self.assertEqual("UTC", settings(None, {})["spark.sql.session.timeZone"])

    def test_submitted(self) -> None:
        """Under spark-submit nothing is changed."""
        environment = {"PYSPARK_GATEWAY_PORT": "1"}
        prepare(environment)
        self.assertEqual({"PYSPARK_GATEWAY_PORT": "1"}, environment)

    def test_remote(self) -> None:
        """A session of Spark Connect, which has no context, is refused before anything is written,
        with what to do."""
        with self.assertRaises(RemoteSession) as raised:
            check_classic(object(), "ingest")
        self.assertIn("and ingest needs a classic session. Make one", str(raised.exception))
        check_classic(shared_session(), "ingest")

    def test_too_old(self) -> None:
        """PySpark 3.5, which would not find the formats, is refused with what to do."""
        error = self.assertRaises(SparkTooOld, check_version, "3.5.9")
        self.assertIn("This is PySpark 3.5.9", str(error))
        self.assertIn("pip install 'pyspark>=4.0'", str(error))
        check_version("4.0.0")

    def test_session(self) -> None:
        """The session computes in UTC, and with this version of Python."""
        spark = shared_session()
        rows = spark.sql("SELECT CAST(TIMESTAMP'2026-01-01 00:00:00' AS BIGINT) AS s").collect()
        self.assertEqual([Row(s=1767225600)], rows)
        found = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.version_info[:2]).collect()
        self.assertEqual([sys.version_info[:2]], found)

    def test_ddl(self) -> None:
        """Spark parses the published columns of events like this package."""
        for ddl in (EVENTS_DDL, EVENTS_READ_DDL):
            columns = shared_session().createDataFrame([], ddl).schema
            self.assertEqual(arrow_schema(ddl).names, columns.names)


class JavaTests(SynchronousTestCase):
    """The order is ``JAVA_HOME``, ``PATH``, the packaged Java."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()
        self.environment = {"PATH": str(self.root / "path"), "XDG_CACHE_HOME": str(self.root / "c")}

    def java(self, place: str, output: str) -> Path:
        """A program that prints a version, or else its arguments."""
        path = self.root / place / "java"
        path.parent.mkdir(parents=True)
        path.write_text(
            f"#!/bin/sh\n[ \"$1\" = -version ] && echo '{output}' >&2 && exit 0\n"
            'for word do echo "<$word>"; done\n'
        )
        path.chmod(0o755)
        return path

    def home(self, packaged: Path | None = None) -> str | None:
        """The Java that is found."""
        return java_home(self.environment, lambda: packaged)

    def test_home_has_precedence(self) -> None:
        """A suitable ``JAVA_HOME`` is used before any other Java."""
        self.java("home/bin", 'openjdk version "21.0.2" 2024-01-16')
        self.java("path", 'openjdk version "17.0.1"')
        self.environment["JAVA_HOME"] = str(self.root / "home")
        self.assertEqual(str(self.root / "home"), self.home())

    def test_unsuitable_home(self) -> None:
        """A ``JAVA_HOME`` with a version that Spark does not support is skipped."""
        self.java("home/bin", 'java version "1.8.0_392"')
        self.environment["JAVA_HOME"] = str(self.root / "home")
        with self.assertRaises(JavaMissing) as raised:
            self.home()
        self.assertIn(f"not {self.root}/home/bin/java (JAVA_HOME)", str(raised.exception))
        self.assertIn("pip install 'disque-tx[spark]'", str(raised.exception))
        self.java("path", 'openjdk version "25" 2025-09-16')
        self.assertIsNone(self.home())

    def test_versions(self) -> None:
        """All formats of versions are parsed; a program that fails has no version."""
        for number, (output, expected) in enumerate(
            [
                ('version "1.8.0_392"', 8),
                ('version "17"', 17),
                ('version "21.0.2+9"', 21),
                ("", None),
            ]
        ):
            self.assertEqual(expected, version(self.java(str(number), output)))
        self.assertIsNone(version(self.root / "nothing"))

    def test_packaged(self) -> None:
        """The packaged Java is started without the argument it does not support, and with all
        others unchanged."""
        packaged = self.java("odd 'name", 'openjdk version "25.0.2"')
        home = self.home(packaged)
        words = ["a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=x"]
        finished = subprocess.run([f"{home}/bin/java", *words], capture_output=True, check=True)
        self.assertEqual(
            ["<a b>", "<>", "<$HOME>", "<--add-modules=x>"], finished.stdout.decode().splitlines()
        )

    def test_packaged_again(self) -> None:
        """The script is written once, and again when it is damaged; several processes may write it
        at the same time."""
        packaged = self.java("p", 'openjdk version "25.0.2"')
        threads = [Thread(target=self.home, args=(packaged,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        script = Path(str(self.home(packaged)), "bin", "java")
        self.assertEqual(["java"], os.listdir(script.parent))
        made = script.stat().st_ino
        self.home(packaged)
        self.assertEqual(made, script.stat().st_ino)
        script.write_text("torn")
        self.home(packaged)
        self.assertIn("exec", script.read_text())

    def test_no_writable_cache(self) -> None:
        """When the script cannot be written, the error names the path and the variable to set."""
        (self.root / "c").parent.mkdir(parents=True, exist_ok=True)
        (self.root / "c").write_text("a file")
        with self.assertRaises(JavaMissing) as raised:
            self.home(self.java("p", 'version "25"'))
        self.assertIn("XDG_CACHE_HOME", str(raised.exception))
