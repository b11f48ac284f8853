"""Protocols of other authors, in a separate process: the test process has already imported
Twisted's plugins."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.acceptance.daemon import environment

_GOPHER = """\
from disque_tx.services.clients.discovery import RespPlugin
gopher = RespPlugin("gopher", "not really")
"""
_FIND = """\
from disque_tx.services.clients.discovery import client_protocol
print(client_protocol("gopher").description)
"""


class ProtocolTests(SynchronousTestCase):
    """``listen`` with a protocol that is not part of the package."""

    def test_found_on_the_path(self) -> None:
        """A protocol is found anywhere on Python's path, as the how-to guide says."""
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
