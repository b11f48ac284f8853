"""A machine without Java, with nothing but pip."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.acceptance.daemon import DaemonTestCase, environment

_PROGRAM = """
from disque_tx.spark import session
spark = session("packaged", "local[1]")
print(spark.range(10).repartition(2).selectExpr("SUM(id) AS s").collect()[0].s)
print(spark.sparkContext._jvm.System.getProperty("java.version"))
"""


class PackagedJavaTests(DaemonTestCase):
    """The wheel's Java, started by its script."""

    def test_session(self) -> None:
        """A session starts and shuffles data, and the script is in the cache."""
        folder = self.folder()
        programs = folder / "bin"
        programs.mkdir()
        for name in (
            "bash",
            "sh",
            "dirname",
            "basename",
            "env",
            "uname",
            "mkdir",
            "rm",
            "cat",
            "nice",
        ):
            found = next(
                f"{place}/{name}"
                for place in ("/usr/bin", "/bin")
                if os.path.exists(f"{place}/{name}")
            )
            (programs / name).symlink_to(found)
        variables = environment(PATH=str(programs), XDG_CACHE_HOME=str(folder / "cache"))
        variables.pop("JAVA_HOME", None)
        ran = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=variables,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.assertEqual(0, ran.returncode, ran.stderr)
        total, version = ran.stdout.split()
        self.assertEqual("45", total)
        self.assertTrue(version.startswith("25"))
        self.assertEqual(1, len([*(folder / "cache/disque-tx").glob("java-*/bin/java")]))
