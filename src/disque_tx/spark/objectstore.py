"""Tables on S3 and stores with the same protocol.

``pyarrow`` and ``deltalake`` use the same variables of the environment, which is the only place for
keys: options of commands appear in lists of processes. Spark opens nothing there, since that would
need archives of Hadoop: its tasks read and write by ``pyarrow``, so the variables are needed on all
machines.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from pyarrow import fs

from disque_tx.spark.errors import BadPath

#: Hadoop has names of its own for the same store.
SCHEMES: Final = ("s3", "s3a", "s3n")
_PREFIX: Final = "s3://"
#: Programs differ in how they escape other characters in the names of objects.
_PLACE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,62}(/[A-Za-z0-9!_.*'()=,+@:~&$-]+)*")
#: Where a server is asked for, most particular first.
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ATTEMPTS: Final = 5


def is_in(path: str) -> bool:
    """Whether a resolved path is in an object store."""
    return path.startswith(_PREFIX)


def checked(path: str) -> str:
    """A path with one of the :data:`SCHEMES` as ``s3://BUCKET/FOLDER``.

    :raises BadPath: when it has keys, or characters or parts that not all programs read alike.
    """
    parts = urlsplit(path)
    if "@" in parts.netloc or parts.query:
        # It is not shown: it may have a key.
        raise BadPath(
            "A path of S3 cannot have keys or options in it. Set AWS_ACCESS_KEY_ID,"
            " AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL and AWS_REGION in the environment."
        )
    place = path.partition("://")[2].rstrip("/")
    if not _PLACE.fullmatch(place) or {".", ".."} & set(place.split("/")):
        raise BadPath(
            f"{path!r} is not s3://BUCKET/FOLDER with names of letters and digits. Of other"
            " characters, ! _ . * ' ( ) = , + @ : ~ & $ - can be used."
        )
    return _PREFIX + place


def system() -> fs.FileSystem:
    """The store that the environment describes."""
    return _system(
        next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None),
        next((os.environ[name] for name in _REGIONS if os.environ.get(name)), None),
        os.environ.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "").lower() == "true",
    )


def check_bucket(path: str) -> None:
    """:raises BadPath: when the bucket of a resolved path does not exist."""
    bucket = path.removeprefix(_PREFIX).partition("/")[0]
    if system().get_file_info(bucket).type == fs.FileType.NotFound:
        raise BadPath(f"There is no bucket {bucket!r}. Create it, or check AWS_ENDPOINT_URL.")


@cache
def _system(endpoint: str | None, region: str | None, by_host: bool) -> fs.FileSystem:
    """Keys are found by the library: in the environment, in files, or from the machine."""
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region or "us-east-1",
        force_virtual_addressing=by_host,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def options(path: str) -> dict[str, str] | None:
    """What ``deltalake`` needs to know of a resolved path besides the environment. A commit is
    written only if there is none of the same number, so that of two writers one fails: whatever
    the environment says, this is not turned off."""
    return {"aws_conditional_put": "etag"} if is_in(path) else None
