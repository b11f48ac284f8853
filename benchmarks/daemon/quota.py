"""Shares of a core, by control groups of the kernel, version 1 or 2. Only root may make them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")
_OLD: Final = _ROOT / "cpu"
_PERIOD_US: Final = 100_000


@contextlib.contextmanager
def limited(pids: Iterable[int], share: float) -> Iterator[None]:
    """While this is entered, each of the processes gets at most ``share`` of one core. Raises
    OSError where there are no control groups, or not for this user."""
    root = _OLD if _OLD.is_dir() else _ROOT
    groups: dict[int, Path] = {}
    try:
        for pid in pids:
            groups[pid] = root / f"disque-bench-{pid}"
            groups[pid].mkdir()
            _limit(groups[pid], round(share * _PERIOD_US))
            _move(pid, groups[pid])
        yield
    finally:
        for pid, group in groups.items():
            # Only an empty group can be removed.
            _move(pid, root)
            group.rmdir()


def _move(pid: int, group: Path) -> None:
    (group / "cgroup.procs").write_text(str(pid))


def _limit(group: Path, quota_us: int) -> None:
    if _OLD.is_dir():
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))
    else:
        (group / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
