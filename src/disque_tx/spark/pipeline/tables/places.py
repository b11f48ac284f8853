"""Folders of Delta tables: which can be one, and which have none yet."""

from __future__ import annotations

import re
from typing import Final

from disque_tx.spark.errors import BadPath
from disque_tx.spark.paths import exists, files_below, is_empty

#: The folder of the log of a table.
LOG: Final = "_delta_log"
#: A commit that is being written by the library.
_BEGUN: Final = re.compile(rf"{LOG}/[^/]+#\d+")
#: In paths of disks the library takes these for other characters, or refuses them.
_ESCAPES: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")


def check_place(root: str) -> None:
    """:raises BadPath: when the library would look for the table at a resolved path elsewhere."""
    if root.startswith("/") and (found := _ESCAPES.search(root)):
        raise BadPath(
            f"{root!r} cannot be the folder of a table, since {found[0]!r} would stand for another"
            " character. Choose another name."
        )


def is_absent(root: str) -> bool:
    """Whether there is nothing at a resolved path, or only what is left of a table that could not
    be created, as on a full disk."""
    if is_empty(root):
        return True
    return exists(f"{root}/{LOG}") and all(_BEGUN.fullmatch(name) for name, _ in files_below(root))
