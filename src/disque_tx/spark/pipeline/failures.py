"""What failed, in a line for the person who ran a command."""

from __future__ import annotations

import os
import re
from typing import Final

import click
import pyarrow as pa
from deltalake.exceptions import DeltaError

from disque_tx.errors import DisqueError

#: What disks and object stores raise, through the libraries that open them.
STORAGE: Final = (OSError, DeltaError, pa.ArrowException)
_CHARACTERS_MAX: Final = 400
#: Colours and drawings between the causes of an error of ``deltalake``.
_DRAWN: Final = re.compile(r"\x1b\[[0-9;]*m|↳")
#: A server may repeat what it was sent.
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def in_words(error: Exception) -> Exception:
    """One of these errors, or of this package, for ``click``."""
    if isinstance(error, BrokenPipeError):
        return error
    if isinstance(error, DisqueError):
        return click.ClickException(str(error))
    words = " ".join(_DRAWN.sub(" ", str(error)).split())
    for key in _KEYS:
        if value := os.environ.get(key):
            words = words.replace(value, "…")
    if len(words) > _CHARACTERS_MAX:
        words = f"{words[:_CHARACTERS_MAX]}…"
    return click.ClickException(
        f"The files could not be read or written: {words}. Check the path and the rights, and for"
        " s3:// AWS_ENDPOINT_URL, AWS_REGION and the keys in the environment."
    )
