"""What each package may import, and each folder of the larger packages: the lists that
``test_layers`` holds the source to. A folder stands below all that import it.
"""

from __future__ import annotations

from typing import Final

#: Modules that every package may use.
COMMON: Final = {"errors", "messages", "text"}
#: Package → other parts of ``disque_tx`` that it may use.
ALLOWED: Final = {
    "errors": set[str](),
    "text": {"errors"},
    "messages": {"errors", "text"},
    "config": {"errors", "text"},
    "wire": COMMON,
    "core": COMMON,
    "commands": COMMON | {"core"},
    "engine": COMMON | {"config", "commands", "core", "wire"},
    "plugins": COMMON | {"commands", "core"},
    "services": COMMON | {"config", "commands", "core", "engine", "plugins", "wire", "workqueue"},
    # Dead letters of workers are read as workers read them.
    "protocols": {"errors", "text", "plugins", "worker", "client", "diagnosis"},
    "sim": COMMON | {"config", "commands", "core", "engine", "wire"},
    "client": {"errors"},
    "diagnosis": {"errors", "client", "text"},
    "worker": {"errors", "client", "text"},
    "integrations": {"errors", "client", "worker"},
    "workqueue": {"errors", "client"},
    "spark": COMMON | {"wire", "client"},
    "cli": COMMON
    | {"client", "commands", "config", "core", "diagnosis", "integrations", "services", "spark"}
    | {"wire", "worker", "workqueue"},
}

#: Package → folder in it → other folders of the package that its modules may use, from the ground
#: up. The modules that lie directly in the package are ``.``; where that is not listed, they stand
#: above all folders, and may use all of them.
ROOMS: Final = {
    "wire": {
        "resp": "",
        "jobs": "",
        "events": "",
        "bus": "jobs",
        "files": "bus jobs",
    },
    "core": {
        "base": "",
        "lookup": "",
        "admission": "",
        "policies": "base",
        "jobs": "base lookup policies",
        "nodes": "admission base jobs",
        "keys": "base jobs nodes",
        "queues": "base jobs lookup policies",
        "statistics": "base jobs lookup queues",
        "tables": "base jobs nodes policies",
        "state": "base jobs keys lookup nodes policies queues statistics tables",
        "delivery": "base jobs policies queues state",
        "adding": "base delivery jobs nodes queues state",
        "healing": "adding base delivery jobs lookup nodes state",
        "redelivery": "adding base delivery jobs policies queues state",
        "unique": "adding base delivery jobs keys nodes queues state",
        "counting": "base delivery jobs policies queues state",
        "recurring": "adding base jobs keys nodes queues state tables",
        "getting": "adding base delivery jobs nodes queues redelivery state tables unique",
        "leaving": "adding base delivery getting healing jobs queues redelivery state",
    },
    "commands": {
        "base": "",
        "jobs": "base",
        "tables": "base jobs",
        "server": "base jobs",
    },
    "services": {
        "turns": "",
        "machine": "turns",
        "net": "machine turns",
        "events": "machine",
        "bus": "machine net turns",
        "clients": "events machine net turns",
        "discovery": "machine turns",
        "node": "bus clients discovery events machine net turns",
        "processes": "bus machine",
        "processes.parent": "bus clients machine net processes",
        "processes.member": "clients machine net node processes processes.parent",
    },
    "protocols.http": {
        "server": "",
        "api.base": "server",
        "api.jobs": "api.base server",
        "api.queues": "api.base api.jobs server",
        "metrics": "api.queues server",
        "api": "api.base api.queues metrics server",
    },
    "sim": {
        "world": "",
        "machines": "world",
        "faults": "machines world",
        "stage": "faults machines world",
        "actors": "machines stage world",
        "checkers.queues": "actors machines stage world",
        "checkers.tables": "actors machines stage world",
        "checkers": "actors checkers.queues checkers.tables machines stage world",
    },
    "client": {
        ".": "",
        "requests": ".",
        "steps": ". requests",
        "blocking": ". requests steps",
        "aio": ". blocking requests steps",
        "tx": ". requests steps",
    },
    "worker": {
        "base": "",
        "remote": "base",
        "tasks": "base",
        "running": "base tasks",
        "settling": "base running tasks",
    },
}
