"""Adding jobs: the options of ADDJOB as members of JSON, and keys of jobs."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.plugins import (
    DELAY_RANGE,
    MAXLEN_RANGE,
    REPLICATE_RANGE,
    RETRY_RANGE,
    TTL_RANGE,
)
from disque_tx.protocols.http.api.base.bodies import take_body
from disque_tx.protocols.http.api.base.values import (
    FLAG,
    NUMBER,
    ROOT,
    TEXT,
    schema,
    take_bytes,
    take_flag,
    text,
    url,
)
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply, whole
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import JOB_BODY_BYTES, Route

#: Members of a new job → word of ADDJOB, least, most.
_OPTIONS: Final = {
    "replicate": (b"REPLICATE", *REPLICATE_RANGE),
    "delay_s": (b"DELAY", *DELAY_RANGE),
    "retry_s": (b"RETRY", *RETRY_RANGE),
    "ttl_s": (b"TTL", *TTL_RANGE),
    "maxlen": (b"MAXLEN", *MAXLEN_RANGE),
}
#: The schemas of body and options of a new job.
JOB_MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "body": TEXT, "body_base64": TEXT, "async": FLAG, **dict.fromkeys(_OPTIONS, NUMBER),
}  # fmt: skip
_TIMEOUT_MS_MAX: Final = 60_000
_KEY_BYTES: Final = 512
_KEY: Final = Parameter("Idempotency-Key", "The same as unique", place="header", longest=_KEY_BYTES)


def option_words(values: dict[str, Any]) -> list[bytes]:
    """The options of ADDJOB among the members of a request."""
    words = []
    for name, (word, least, most) in _OPTIONS.items():
        if values.get(name) is not None:
            words += [word, b"%d" % whole(name, values[name], least, most)]
    if take_flag(values, "async"):
        words.append(b"ASYNC")
    return words


def _key_words(values: dict[str, Any], key: bytes | None) -> list[bytes]:
    """The key of the job, in a member or in the header; no words if it has none."""
    seconds = values.get("unique_for_s")
    if values.get("unique") is not None or values.get("unique_base64") is not None:
        if key is not None:
            raise bad_request(f"Give either unique or the header {_KEY.name}.")
        key = take_bytes(values, "unique")
    if key is None:
        if seconds is not None:
            raise bad_request("unique_for_s needs unique.")
        return []
    words = [b"UNIQUE", key]
    if seconds is not None:
        words += [b"FOR", b"%d" % whole("unique_for_s", seconds, *TTL_RANGE)]
    return [*words, b"WITHNEW"]


async def add(exchange: Exchange) -> Reply:
    """ADDJOB; with a key that another job has, the answer is that job."""
    values = await exchange.flat_json()
    body = await take_body(values, exchange.slices)
    timeout = whole("timeout_ms", values.get("timeout_ms", 5_000), 1, _TIMEOUT_MS_MAX)
    words = [b"ADDJOB", exchange.path["queue"], body, b"%d" % timeout, *option_words(values)]
    key = _key_words(values, exchange.header(_KEY))
    added = await exchange.call(*words, *key)
    job_id, fresh = added if key else (added.text, 1)
    return added_reply(job_id, bool(fresh))


def added_reply(job_id: bytes, fresh: bool = True) -> Reply:
    """The answer with the ID of a job that was added, or was there already."""
    where = url("jobs", job_id)
    values = {"id": text(job_id), "url": where, "new": fresh}
    return Reply(values, 201 if fresh else 200, headers={"Location": where})


#: What :func:`added_reply` answers.
ADDED: Final = schema(id=TEXT, url=TEXT, new=FLAG)


def adding_routes() -> list[Route]:
    """The operation that adds a job."""
    members = {
        **JOB_MEMBERS, "timeout_ms": NUMBER, "unique": TEXT, "unique_base64": TEXT,
        "unique_for_s": NUMBER,
    }  # fmt: skip
    return [
        Route(
            "POST", f"{ROOT}/queues/{{queue}}/jobs", add, "Add a job, or find the one that has its"
            " key", (_KEY,), body=schema(**members), body_max=JOB_BODY_BYTES, answer=ADDED,
            status=201, also=(200,), errors=(409, 503, 507),
        )
    ]  # fmt: skip
