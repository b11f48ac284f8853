"""Runs commands with redis-py against a daemon, and prints the replies as JSON; run it with the
version to be tested.

``python -m tests.acceptance.redispy <port> <password> <protocol>``; protocol 0 is the default of
the library.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import redis


def jobs_of(client: Any) -> dict[str, Any]:
    """Commands with jobs, from ADDJOB to a failing ADDJOB."""
    call = client.execute_command
    job_id = call("ADDJOB", "q", "body", 0, "RETRY", 10)
    fetched = call("GETJOB", "WITHCOUNTERS", "FROM", "q")
    facts = {
        "id": len(job_id),
        "fetched": [part if part != job_id else "the id" for part in fetched[0]],
        "working": call("WORKING", job_id),
        "acked": call("ACKJOB", job_id),
        "gone": call("SHOW", job_id),
        "nothing": call("GETJOB", "NOHANG", "FROM", "q"),
        "nodes": len(call("HELLO")),
    }
    try:
        call("ADDJOB", "q", "body", -1)
    except redis.ResponseError as error:
        facts["error"] = str(error)
    return facts


def pipelined(client: Any) -> dict[str, Any]:
    """A pipeline of many requests, of which one fails."""
    pipeline = client.pipeline(transaction=False)
    for number in range(100):
        pipeline.execute_command("ADDJOB", "p", str(number), 0)
    pipeline.execute_command("SHOW", "no id")
    pipeline.execute_command("QLEN", "p")
    answers = pipeline.execute(raise_on_error=False)
    return {"ids": len(set(answers[:100])), "failed": str(answers[100]), "length": answers[101]}


def blocking(client: Any, other: Any) -> Any:
    """A GETJOB that waits until another client adds a job."""
    timer = threading.Timer(0.2, other.execute_command, ("ADDJOB", "later", "came", 0))
    timer.start()
    try:
        return client.execute_command("GETJOB", "TIMEOUT", 10_000, "FROM", "later")[0][2]
    finally:
        timer.join()


def facts(port: int, password: str, protocol: int) -> dict[str, Any]:
    """All replies that the test compares, for one version and protocol."""
    options: dict[str, Any] = {"protocol": protocol} if protocol else {}
    client, other = (
        redis.Redis(port=port, password=password, decode_responses=True, **options)
        for _ in range(2)
    )
    limit = client.config_get("maxclients")
    return {
        "version": redis.__version__.split(".")[0],
        "ping": client.ping(),
        "named": [client.client_setname("me"), client.client_getname()],
        "server": client.info("server")["disque_version"],
        "limit": limit,
        "set": client.config_set("maxclients", limit["maxclients"] or ""),
        "clients": any(row["name"] == "me" for row in client.client_list()),
        "commands": client.command_count(),
        "time": len(client.time()),
        "slow": isinstance(client.slowlog_get(), list),
        "jobs": jobs_of(client),
        "pipelined": pipelined(client),
        "blocking": blocking(client, other),
    }


if __name__ == "__main__":
    print(json.dumps(facts(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
