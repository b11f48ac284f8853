"""Protocols of others, in a process of its own: tests have imported Twisted's plugins already."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.daemon import environment

_GOPHER = """\
from disque_tx.services.clients.plugins import RespPlugin
gopher = RespPlugin("gopher", "not really")
"""
_FIND = """\
from disque_tx.services.clients.plugins import client_protocol
print(client_protocol("gopher").description)
"""


class ProtocolTests(SynchronousTestCase):
    """``listen`` with a protocol that does not come with the package."""

    def test_found_on_the_path(self) -> None:
        """Whoever writes a protocol puts it anywhere on Python's path, as the how-to says."""
        with tempfile.TemporaryDirectory() as folder:
            plugins = Path(folder, "twisted", "plugins")
            plugins.mkdir(parents=True)
            (plugins / "gopher_plugin.py").write_text(_GOPHER)
            paths = os.pathsep.join([environment()["PYTHONPATH"], folder])
            result = subprocess.run(
                [sys.executable, "-c", _FIND],
                env=environment(PYTHONPATH=paths),
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(("not really\n", ""), (result.stdout, result.stderr))
