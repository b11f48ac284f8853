"""What a benchmark runs on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def compiled() -> str:
    """Whether the package under measurement is the compiled one."""
    from disque_tx.core import node

    return "compiled" if str(node.__file__).endswith(".so") else "not compiled"


def machine() -> str:
    """The processor, the kernel, the interpreter, and the package under measurement."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    return (
        f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python "
        f"{platform.python_version()}, disque-tx {compiled()}"
    )


def redis_version() -> str:
    """The version of the redis-server in the path."""
    version = ["redis-server", "--version"]
    redis = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    return redis.split("v=")[1].split()[0]
