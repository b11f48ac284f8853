"""Monitoring with a real Prometheus."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.acceptance.daemon import DaemonTestCase, free_port, wait_for

_MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
_CONFIGURATION = """\
global: {{scrape_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: disque
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: disque-queues
    metrics_path: /metrics/detailed
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def program(name: str) -> str:
    """The path of a program of Prometheus."""
    path = shutil.which(name)
    if path is None:
        raise SkipTest(f"{name} is not in the path; Debian has it in the package prometheus.")
    return path


class MonitoringTests(DaemonTestCase):
    """What is delivered for monitoring works."""

    def test_files(self) -> None:
        """Rules and configuration are accepted by Prometheus' own check."""
        tool = program("promtool")
        for words in (["rules", "alerts.yml"], ["config", "prometheus.yml"]):
            command = [tool, "check", *words]
            result = subprocess.run(command, cwd=_MONITORING, capture_output=True, check=False)
            self.assertEqual(0, result.returncode, result.stderr)

    def test_dashboard(self) -> None:
        """The dashboard is one that Grafana can read, and asks for metrics that exist."""
        dashboard = json.loads((_MONITORING / "grafana-dashboard.json").read_text())
        self.assertTrue(dashboard["panels"])
        port = free_port()
        self.running(f"listen http tcp:{port}:interface=127.0.0.1")
        known = self.get(port, "/metrics") + self.get(port, "/metrics/detailed")
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                text = "".join(c if c.isalnum() or c == "_" else " " for c in target["expr"])
                for name in (word for word in text.split() if word.startswith("disque_")):
                    family = name.removesuffix("_total").removesuffix("_bucket")
                    self.assertIn(family, known)

    def get(self, port: int, path: str) -> str:
        """The body of an answer."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def test_scraped(self) -> None:
        """Prometheus scrapes a node, and its queries have results."""
        server = program("prometheus")
        port, own = free_port(), free_port()
        daemon = self.running(f"listen http tcp:{port}:interface=127.0.0.1")
        daemon.client().call("ADDJOB", "mail", "x", "0")
        folder = self.folder()
        configuration = folder / "prometheus.yml"
        rules = json.dumps(str(_MONITORING / "alerts.yml"))
        configuration.write_text(_CONFIGURATION.format(port=port, rules=rules))
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [server, f"--config.file={configuration}", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{own}"],
                stdout=log, stderr=log,
            )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

        def result(query: str) -> Any:
            where = f"/api/v1/query?query={urllib.parse.quote(query)}"
            try:
                found = json.loads(self.get(own, where))["data"]["result"]
            except (urllib.error.URLError, ConnectionError):
                return None
            return found and found[0]["value"][1]

        for query in ("disque_jobs_added_total", 'disque_queue_jobs{queue="mail",state="queued"}'):
            self.assertEqual("1", wait_for(partial(result, query), query))
        self.assertEqual("1", result('min(up{job=~"disque.*"})'))
