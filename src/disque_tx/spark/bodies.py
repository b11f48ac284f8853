"""Bodies of jobs as typed columns: calls of tasks, and dead letters.

Expressions of Spark alone, so that bodies are read where they are and no Python runs for a row. A
body is untrusted: nothing in it ends a query.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

_CORRUPT: Final = "_corrupt"
_READING: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_ENVELOPE: Final = f"""\
task STRING, args STRING, kwargs STRING, id STRING, backend STRING, status STRING,
actor_name STRING, message_id STRING, body STRING, headers STRUCT<task: STRING, id: STRING>,
properties STRUCT<body_encoding: STRING>, {_CORRUPT} STRING"""
_LETTER: Final = """\
version BIGINT, queue STRING, id STRING, body STRING, reason STRING, traceback STRING,
worker STRING, nacks BIGINT, additional_deliveries BIGINT, failed_at_s DOUBLE,
history ARRAY<STRUCT<at_s: DOUBLE, reason: STRING>>, retry_s BIGINT, ttl_s BIGINT,
replicate BIGINT"""
#: The end of the year 9999: what all programs can show.
_TIME_S_MAX: Final = 253_402_300_799


def from_disque_task(rows: DataFrame, kwargs: str | None = None, body: str = "body") -> DataFrame:
    """The rows with what their bodies ask for, whoever wrote them:

    - ``envelope``: ``celery``, ``dramatiq``, ``django`` or ``task`` (of Disque's own workers);
    - ``task``: the name of the task; ``task_id``: its ID there, if it has one;
    - ``args``: the arguments, a JSON array;
    - ``kwargs``: the keyword arguments, a JSON object, or a struct with the columns ``kwargs``, as
      in ``"order BIGINT, total DOUBLE"``;
    - ``error``: why it cannot be read, null for a good one. See :func:`good_records`.

    ``body``: the column that is read, binary or string; it stays.
    """
    read = rows.withColumn("_read", fn.from_json(_text(body), _ENVELOPE, _READING))
    read = read.withColumn("envelope", _envelope())
    read = read.withColumn("_call", fn.from_json(_celery_body(), "ARRAY<STRING>"))
    is_celery = fn.col("envelope") == "celery"
    words = {
        "task": fn.coalesce("_read.headers.task", "_read.task", "_read.actor_name"),
        "task_id": fn.coalesce("_read.headers.id", "_read.id", "_read.message_id"),
        "args": fn.when(is_celery, fn.try_element_at("_call", fn.lit(1))).otherwise(
            fn.coalesce("_read.args", fn.lit("[]"))
        ),
        "kwargs": fn.when(is_celery, fn.try_element_at("_call", fn.lit(2))).otherwise(
            fn.coalesce("_read.kwargs", fn.lit("{}"))
        ),
    }
    known = {name: fn.when(fn.col("envelope").isNotNull(), word) for name, word in words.items()}
    read = read.withColumns({**known, "error": fn.lit(None).cast("string")})
    read = read.withColumn("error", _error()).drop("_read", "_call")
    return read if kwargs is None else _typed(read, kwargs)


def from_dead_letter(rows: DataFrame, body: str = "body") -> DataFrame:
    """The rows with a column ``letter``: the dead letter in the body, null if there is none. It has
    the members ``queue``, ``id``, ``body`` (binary), ``reason``, ``traceback``, ``worker``,
    ``nacks``, ``additional_deliveries``, ``failed_at``, ``history`` (each with ``at`` and
    ``reason``), ``retry_s``, ``ttl_s`` and ``replicate``."""
    read = rows.withColumn("_read", fn.from_json(_text(body), _LETTER))
    same = ("reason", "traceback", "worker", "nacks", "additional_deliveries")
    letter = fn.struct(
        *(fn.col(f"_read.{name}").alias(name) for name in ("queue", "id")),
        fn.try_to_binary("_read.body", fn.lit("base64")).alias("body"),
        *(fn.col(f"_read.{name}").alias(name) for name in same),
        _time(fn.col("_read.failed_at_s")).alias("failed_at"),
        fn.transform(
            "_read.history",
            lambda one: fn.struct(_time(one["at_s"]).alias("at"), one["reason"].alias("reason")),
        ).alias("history"),
        *(fn.col(f"_read.{name}").alias(name) for name in ("retry_s", "ttl_s", "replicate")),
    )
    is_letter = fn.col("_read.version").isin(1, 2) & fn.col("_read.id").isNotNull()
    return read.withColumn("letter", fn.when(is_letter, letter)).drop("_read")


def _text(body: str) -> Column:
    return fn.col(body).cast("string")


def _envelope() -> Column:
    def has(*names: str) -> Column:
        found = fn.lit(True)
        for name in names:
            found = found & fn.col(f"_read.{name}").isNotNull()
        return found

    return (
        fn.when(has("headers.task", "properties", "body"), "celery")
        .when(has("actor_name", "args", "kwargs", "message_id"), "dramatiq")
        .when(has("task", "args", "kwargs", "backend", "status"), "django")
        .when(has("task"), "task")
    )


def _celery_body() -> Column:
    """The arguments, the keyword arguments, and more."""
    decoded = fn.try_to_binary("_read.body", fn.lit("base64")).cast("string")
    is_base64 = fn.col("_read.properties.body_encoding") == "base64"
    whole = fn.when(is_base64, decoded).otherwise(fn.col("_read.body"))
    return fn.when(fn.col("envelope") == "celery", whole)


def _error() -> Column:
    readable = fn.coalesce(
        fn.col("args").startswith("[") & fn.col("kwargs").startswith("{"), fn.lit(False)
    )
    return (
        fn.when(
            fn.col("_read").isNull() | fn.col(f"_read.{_CORRUPT}").isNotNull(), "no JSON object"
        )
        .when(fn.col("envelope").isNull(), "no call of a task")
        .when(~readable, "arguments that are not JSON")
    )


def _typed(read: DataFrame, ddl: str) -> DataFrame:
    typed = fn.from_json("kwargs", f"{ddl}, {_CORRUPT} STRING", _READING)
    read = read.withColumn("kwargs", typed)
    wrong = fn.col(f"kwargs.{_CORRUPT}").isNotNull()
    error = fn.coalesce("error", fn.when(wrong, f"keyword arguments that are not {ddl}"))
    read = read.withColumn("error", error)
    return read.withColumn("kwargs", fn.col("kwargs").dropFields(_CORRUPT))


def _time(seconds: Column) -> Column:
    is_time = seconds.between(0, _TIME_S_MAX)
    return fn.when(is_time, fn.timestamp_micros((seconds * 1_000_000).cast("bigint")))
