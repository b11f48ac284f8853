"""The servers of others: as Debian packages them, each in a folder of its own, on loopback."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.daemon.servers import Group, Server, beanstalkd, free_port, redis, started

_RABBITMQ: Final = Path("/usr/lib/rabbitmq/bin")
_START_S: Final = 180.0
#: Debian keeps some servers where only root's path leads.
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
#: What must be installed for the servers: a program, and the Debian package that has it.
NEEDED: Final = {
    "cc": "gcc",
    str(_RABBITMQ / "rabbitmq-server"): "rabbitmq-server",
    "epmd": "rabbitmq-server",
    "nats-server": "nats-server",
    "redis-server": "redis-server",
    "beanstalkd": "beanstalkd",
}


def missing(needed: Mapping[str, str] = NEEDED) -> list[str]:
    """The Debian packages that are not installed, of those that hold the programs."""
    return sorted({package for name, package in needed.items() if _found(name) is None})


def _found(name: str) -> str | None:
    return shutil.which(name, path=_PATH)


class _RabbitNode(Server):
    """A node of RabbitMQ, whose script stays beside the Erlang that it starts."""

    def stop(self) -> None:
        """End all processes of it at once: what it keeps is thrown away."""
        self.kill()


class RabbitMQ(Group):
    """Nodes of RabbitMQ in one cluster, with a port mapper of their own. ``quorum``: whether the
    load generator uses quorum queues or classic ones; both are durable."""

    def __init__(self, folder: Path, size: int, quorum: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        cookie = self._folder / ".erlang.cookie"
        cookie.write_text("BENCHMARK")
        cookie.chmod(0o400)
        mapper = str(free_port())
        self._variables = {
            "HOME": str(self._folder),
            "ERL_EPMD_PORT": mapper,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        self._mapper = subprocess.Popen(
            [str(_found("epmd")), "-port", mapper, "-address", "127.0.0.1"],
            stdout=subprocess.DEVNULL,
        )
        ports = [free_port() for _ in range(size)]
        names = [f"bench-{port}@localhost" for port in ports]
        config = self._folder / "rabbitmq.conf"
        config.write_text(_rabbit_config(names))
        (self._folder / "plugins").write_text("[].")
        kind = "amqp-quorum" if quorum else "amqp"
        try:
            super().__init__(
                started(
                    functools.partial(self._node, kind, name, port)
                    for name, port in zip(names, ports, strict=True)
                )
            )
        except BaseException:
            self._mapper.kill()
            raise
        if size > 1:
            subprocess.run(
                [str(_RABBITMQ / "rabbitmqctl"), "-n", names[0], "await_online_nodes", str(size)],
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **self._variables},
            )

    def _node(self, kind: str, name: str, port: int) -> Server:
        own = self._folder / name
        own.mkdir()
        variables = {
            **self._variables,
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(own),
            "RABBITMQ_LOG_BASE": str(own),
            "RABBITMQ_PID_FILE": str(own / "pid"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(own / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
        }
        return _RabbitNode(kind, [str(_RABBITMQ / "rabbitmq-server")], port, variables, _START_S)

    def stop(self) -> None:
        """End all nodes, and the port mapper."""
        super().stop()
        self._mapper.terminate()
        self._mapper.wait()


def _rabbit_config(names: list[str]) -> str:
    lines = [
        "loopback_users = none",
        "vm_memory_high_watermark.absolute = 4GB",
        "cluster_formation.peer_discovery_backend = rabbit_peer_discovery_classic_config",
        *(
            f"cluster_formation.classic_config.nodes.{i} = {each}"
            for i, each in enumerate(names, 1)
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


class Nats(Group):
    """Nodes of NATS with JetStream in one cluster, streams on disk."""

    def __init__(self, folder: Path, size: int) -> None:
        routes = [free_port() for _ in range(size)]
        watched = [free_port() for _ in routes]
        super().__init__(
            started(
                functools.partial(self._node, folder, web, route, routes)
                for web, route in zip(watched, routes, strict=True)
            )
        )
        deadline_s = time.monotonic() + _START_S
        while not all(_has_leader(web, size) for web in watched):
            if time.monotonic() > deadline_s:
                self.stop()
                raise SystemExit("NATS did not elect a leader")
            time.sleep(0.1)

    def _node(self, folder: Path, web: int, route: int, routes: list[int]) -> Server:
        own = Path(tempfile.mkdtemp(dir=folder))
        port = free_port()
        config = own / "nats.conf"
        config.write_text(_nats_config(own, port, web, route, routes))
        command = [str(_found("nats-server")), "-c", str(config), "-l", str(own / "log")]
        return Server("nats", command, port)


def _nats_config(own: Path, port: int, web: int, route: int, routes: list[int]) -> str:
    others = ", ".join(f'"nats://127.0.0.1:{each}"' for each in routes)
    return f"""
server_name: "bench-{port}"
listen: "127.0.0.1:{port}"
http: "127.0.0.1:{web}"
jetstream {{ store_dir: "{own}", max_memory_store: 4GB, max_file_store: 20GB }}
cluster {{ name: bench, listen: "127.0.0.1:{route}", routes: [{others}] }}
"""


def _has_leader(web: int, size: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/jsz", timeout=5) as answer:
            cluster = json.load(answer).get("meta_cluster", {})
    except OSError:
        return False
    return bool(cluster.get("leader")) and cluster.get("cluster_size") == size


def streams(folder: Path) -> Server:
    """Redis with its append only file, synced every second; for Streams."""
    own = tempfile.mkdtemp(dir=folder)
    options = ("--dir", own, "--appendonly", "yes", "--appendfsync", "everysec")
    return redis(folder, *options, kind="streams")


def beanstalk(folder: Path) -> Server:
    """beanstalkd with its log, synced every second."""
    return beanstalkd("-b", tempfile.mkdtemp(dir=folder), "-f", "1000")
