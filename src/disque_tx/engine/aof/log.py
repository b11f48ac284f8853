"""The append only file of a node: its records on the disk (cluster protocol, section 14).

The node records to ``outbox.log``. At the end of every turn :meth:`AppendOnlyLog.commit` takes the
records once and gives them to the log and to a rewrite under way; they are on the disk as far as
the policy says so before any reply leaves.

State ``off``: nothing is recorded, except for a rewrite, which works all the same. ``on``: there is
a log. ``wait-rewrite``: turned on at run time, the first log is still being written.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from disque_tx.config.paths import os_error_text
from disque_tx.engine.aof import status
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.loader import Loader, open_log, reload_log
from disque_tx.engine.aof.queued import QueuedFile
from disque_tx.engine.aof.rewrite import write_snapshot
from disque_tx.engine.aof.rewrites import Rewrites
from disque_tx.engine.aof.writer import LogWriter, Syncs
from disque_tx.engine.interfaces import IFile
from disque_tx.engine.ownership import claim
from disque_tx.engine.turns import CommittedLog
from disque_tx.errors import CommandError, ConfigError, LocalError
from disque_tx.wire.files.aof import LogEncoder


class AppendOnlyLog(CommittedLog):
    """The log. ``state``: see above. ``loaded_once``: it was loaded on behalf of
    ``aof-enqueue-jobs-once``, which must be turned off now. ``queued``: the file beside it."""

    def __init__(self, environment: Environment) -> None:
        self.state = "off"
        self.loaded_once = False
        self.queued = QueuedFile(environment)
        self._environment = environment
        self._node = environment.node
        self._settings = environment.settings
        self._reports = environment.reports
        self._records = LogEncoder()
        self._syncs = Syncs()
        self._place = ""
        self._writer: LogWriter | None = None
        self._loader: Loader | None = None
        self._rewrites = Rewrites(self._environment, self._rewritten, self._record_if_needed)

    def _path(self) -> str:
        """Where the log is: a new ``dir`` moves it only while there is none."""
        if self.state == "off" and self._rewrites.current is None:
            self._place = os.path.join(self._settings.dir, self._settings.appendfilename)
        return self._place

    @property
    def loading(self) -> bool:
        """The log is being loaded."""
        return self._loader is not None

    @property
    def write_error(self) -> str:
        """Why the log does not hold what was recorded; empty when it does."""
        return self._writer.trouble() if self._writer is not None else ""

    @property
    def size(self) -> int:
        """Bytes of complete records in the file; 0 without one."""
        return self._writer.size if self._writer is not None else 0

    def unwritten(self) -> bytes:
        """Records that are in no file yet, in order."""
        return self._writer.unwritten() if self._writer is not None else b""

    def is_behind(self) -> bool:
        """Something was recorded that the end of a turn must write before anything leaves."""
        recorded = self._node.outbox.log is not None and self._records.size > 0
        return recorded or (self._writer is not None and self._writer.is_behind())

    # -- every turn --------------------------------------------------------------------------

    def commit(self) -> str:
        """Write, and by policy sync, what the turn recorded; returns :attr:`write_error`. Raises
        ``LocalError`` when the log failed under ``always``: nothing may be answered."""
        if self._records.size:
            self._node.state.counters.record()
            data = self._records.take()
            if self._writer is not None:
                self._writer.add(data)
            if self._rewrites.current is not None:
                self._rewrites.current.add(data)
        if self._writer is None:
            return ""
        self._writer.flush()
        return self._writer.trouble()

    def tick(self) -> None:
        """Ten times a second: syncs, retries, rewrites that are due."""
        if self.loading:
            return
        self._node.state.counters.record_late(self._node.now_ms)
        if self._writer is not None:
            self._writer.tick()
            self._writer.check_file(self._path())
        reason = self._rewrite_reason()
        if reason and self._rewrites.may_begin():
            self._reports.notice(f"Starting a rewrite of the append only file: {reason}")
            self._rewrites.try_to_begin(self._path(), self._claim_name)

    def _record_if_needed(self) -> None:
        needed = self._writer is not None or self._rewrites.current is not None
        self._node.outbox.log = self._records if needed else None

    # -- start and stop ----------------------------------------------------------------------

    def open_and_load(self, done: Callable[[Exception | None], object]) -> None:
        """Load the log, if it is on or ``aof-enqueue-jobs-once`` asks for it, and begin to record.

        ``done`` is called, perhaps at once, with ``None`` or the reason why that failed: a
        ``ConfigError`` says what is wrong, where, and what to do about it.
        """
        try:
            loader = self._begin_to_load()
        except ConfigError as error:
            done(error)
            return
        if loader is None:
            done(None)
            return

        def loaded(error: Exception | None) -> None:
            self._end_of_load(loader, error)
            done(error)

        loader.run(loaded)

    def load_now(self) -> None:
        """Load the log in one step; raises the ``ConfigError``."""
        loader = self._begin_to_load()
        if loader is None:
            return
        try:
            loader.run_now()
        except ConfigError as error:
            self._end_of_load(loader, error)
            raise
        self._end_of_load(loader, None)

    def _begin_to_load(self) -> Loader | None:
        enqueue = self._settings.aof_enqueue_jobs_once
        if not (self._settings.appendonly or enqueue):
            return None
        path = self._path()
        file = open_log(self._environment.files, path, not enqueue)
        self._loader = Loader(self._environment, path, file, enqueue)
        return self._loader

    def _end_of_load(self, loader: Loader, error: Exception | None) -> None:
        self._loader = None
        if error is None:
            self.loaded_once = loader.enqueue
            self.queued.read(loader.file, self._path())
        if error is None and self._settings.appendonly:
            self._use(loader.file)
        else:
            loader.file.close()

    def flush_and_sync(self) -> None:
        """Everything recorded is on the disk afterwards; ``OSError`` when it cannot be."""
        self._node.state.counters.record()
        self._distribute()
        writer = self._writer
        if self.state == "wait-rewrite" or (writer is not None and writer.distrusted()):
            self.rewrite_now()
        elif writer is not None:
            writer.flush_and_sync()
        self.queued.log_path = self._path() if self.state != "off" else ""

    def _distribute(self) -> None:
        try:
            self.commit()
        except LocalError:
            pass  # was logged when it happened; the writer refuses everything from then on

    def close(self) -> None:
        """Write and sync what is left, and close everything."""
        if self._loader is not None:
            self._loader.stop()
        try:
            self.flush_and_sync()
        except OSError as error:
            text = f"The log could not be written at shutdown: {os_error_text(error)}"
            self._reports.warning(text)
        self._rewrites.abandon()
        self._release()

    def _use(self, file: IFile) -> None:
        """Go on with this file as the log."""
        old = self._writer
        self._writer = LogWriter(self._environment, file, self._syncs_suspended, self._syncs)
        self.is_open = True
        self.state = "on"
        if old is not None:
            old.retire()
        self._record_if_needed()

    def _release(self) -> None:
        """Close the log; it is off from now on."""
        if self._writer is not None:
            self._writer.retire()
            self._writer = None
            self.is_open = False
        self.state = "off"
        self._record_if_needed()

    def _syncs_suspended(self) -> bool:
        return self._rewrites.current is not None and self._settings.no_appendfsync_on_rewrite

    # -- switching at run time ---------------------------------------------------------------

    def enable(self) -> None:
        """Begin a log: with a rewrite, to which the records go until it is done.

        ``OSError`` when the file cannot be made.
        """
        if self.state != "off" or self.loading:
            return
        if self._rewrites.current is None:
            self._rewrites.begin(self._path(), self._claim_name)
        self.state = "wait-rewrite"

    def disable(self) -> None:
        """Turn the log off; what it holds is written and synced, if the disk allows it."""
        if self.state == "off":
            return
        self._rewrites.abandon()
        self._distribute()
        try:
            if self._writer is not None:
                self._writer.flush_and_sync()
        except OSError as error:
            self._reports.warning(
                "The append only file is turned off, but the last records are missing:"
                f" {os_error_text(error)}"
            )
        self._rewrites.scheduled = False
        self._release()

    # -- rewrite -----------------------------------------------------------------------------

    def rewrite(self) -> None:
        """BGREWRITEAOF; refused with ``CommandError`` while one is running."""
        if self._rewrites.current is not None:
            raise CommandError("ERR", "Background append only file rewriting already in progress")
        try:
            self._rewrites.begin(self._path(), self._claim_name)
        except OSError as error:
            text = f"Can't write the append only file: {os_error_text(error)}"
            raise CommandError("ERR", text) from error

    def rewrite_now(self) -> None:
        """Write a complete log before anything else happens, with the log on or off.

        ``OSError`` when it fails: everything is as it was then.
        """
        self._rewrites.abandon()
        self._distribute()
        self._rewritten(write_snapshot(self._environment, self._path(), self._claim_name()))

    def _rewrite_reason(self) -> str:
        """Why the log must be rewritten although no client asked for it; empty when it need not
        be."""
        writer = self._writer
        if self.state == "wait-rewrite":
            return "the first one is not written yet"
        if self._rewrites.scheduled:
            return "it was interrupted"
        if writer is None:
            return ""
        return writer.distrusted() or ("it grew" if writer.grown() else "")

    def _claim_name(self) -> IFile | None:
        """What keeps other nodes off the name of the log until a new one has it; ``None`` when the
        log does that itself. ``OSError`` when another node has the name."""
        if self._writer is None:  # an earlier run of this node may have left a file
            return claim(self._environment.files, self._path())
        return self._writer.reclaim(self._path())

    def _rewritten(self, file: IFile) -> None:
        """The new file has its name: use it as the log, or only close it if the log is off."""
        self._reports.notice(f"The append only file was rewritten: {file.size()} bytes")
        recording = self.state != "off"
        if recording:
            self._use(file)
        self._sync_name()
        if not recording:
            self._environment.close_in_background(file, "the append only file")
            self._record_if_needed()

    def _sync_name(self) -> None:
        try:
            self._environment.files.sync_folder(self._path())
        except OSError as error:
            if self._writer is None:
                self._reports.warning(f"The new log may be lost by a crash: {os_error_text(error)}")
            else:
                self._writer.distrust(error)

    # -- reload ------------------------------------------------------------------------------

    def reload(self) -> None:
        """Forget everything and load the log again, before anything else happens (DEBUG LOADAOF).

        Raises ``CommandError`` without having forgotten anything when the file is missing, empty
        or damaged, or cannot be written.
        """
        self.commit()
        try:
            if self._writer is not None:
                self._writer.flush_and_sync()
        except OSError as error:
            text = f"The last records are missing in the log: {os_error_text(error)}"
            raise CommandError("ERR", text) from error
        try:
            reload_log(self._environment, self._path(), self._writer is None, self._forget)
        finally:
            self._record_if_needed()

    def _forget(self) -> None:
        self._rewrites.scheduled = self._rewrites.current is not None
        self._rewrites.abandon()
        self._node.outbox.log = None  # what is forgotten here is not gone
        self._node.flush_all()

    # -- facts -------------------------------------------------------------------------------

    def reset_statistics(self) -> None:
        """Count syncs anew (CONFIG RESETSTAT)."""
        self._syncs.reset()

    def info(self) -> list[tuple[str, str]]:
        """The Persistence fields of INFO, in order (client protocol, section 10)."""
        fields = status.state_fields(self.state, self.loading)
        fields += status.rewrite_fields(self._rewrites, self.write_error)
        if self.state != "off":
            fields += status.log_fields(self._writer, self._rewrites, self._syncs)
        if self._loader is not None:
            fields += status.loading_fields(self._loader)
        return fields
