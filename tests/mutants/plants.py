"""The wrong methods: each function takes the right one and returns its replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from disque_tx.core.delivery.holders import wins
from disque_tx.core.jobs.job import DELAYED, IN_FLIGHT, NOWHERE
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.queues.endings import EXPIRED, Endings
from disque_tx.core.tables.table import REPAIRED, SharedTable
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS, NOREPLY
from disque_tx.messages.bustypes import GOTJOB, KEY_COPY, WORKING
from disque_tx.messages.events import NO_REASON
from disque_tx.messages.keys import FREE, GRANTED, HELD, LAST
from disque_tx.messages.records import ACTIVE, DELIVERED, QUEUED, WAIT_REPL
from disque_tx.messages.tables import Register
from disque_tx.wire.bus.bulk import HotMessages

_MINUTES: Final = 60_000


def nothing(right: Any) -> Any:
    """The method does nothing."""

    def wrong(*args: Any) -> None:
        return None

    return wrong


def pretend(right: Any) -> Any:
    """The method reports success and does nothing."""

    def wrong(*args: Any) -> bool:
        return True

    return wrong


def forget_some_acks(right: Any) -> Any:
    """One in sixteen acknowledgements gets its reply without being processed."""

    def acknowledge(self: Any, ids: list[bytes], *rest: Any) -> int:
        executed = [job_id for job_id in ids if job_id[20] % 16]
        done: int = right(self, executed, *rest)
        return done + len(ids) - len(executed)

    return acknowledge


def answer_early(right: Any) -> Any:
    def confirmed(self: Any, sender: Any, job_id: bytes) -> None:
        job = self._jobs.get(job_id)
        if job is not None and job.state == WAIT_REPL:
            self.achieved(job)
        else:
            right(self, sender, job_id)

    return confirmed


def confirm_without_copy(right: Any) -> Any:
    def keep(self: Any, sender: Any, job: Any, life_s: int, mflags: int) -> None:
        if not mflags & NOREPLY:
            self._peers.signal(sender.id, GOTJOB, job.id, 0)

    return keep


def bulks_to_all(right: Any) -> Any:
    def note_features(self: Any, link: Any, message: Any) -> None:
        right(self, link, message)
        link.sink.bulk = True

    return note_features


class _Later(HotMessages):
    """Keeps messages, to hand them over in another way."""

    def __init__(self) -> None:
        self.calls: list[Callable[[Any], None]] = []

    def signal(self, *fields: Any) -> None:
        self.calls.append(lambda to: to.signal(*fields))

    def copy(self, *fields: Any) -> None:
        self.calls.append(lambda to: to.copy(*fields))


def _other_calls(right: Any, choose: Callable[[list[Any]], list[Any]]) -> Any:
    def read_bulk(data: bytes, at: int, end: int, records: Any, to: Any) -> None:
        later = _Later()
        right(data, at, end, records, later)
        for call in choose(later.calls):
            call(to)

    return read_bulk


def reverse(right: Any) -> Any:
    return _other_calls(right, lambda calls: calls[::-1])


def lose_last(right: Any) -> Any:
    return _other_calls(right, lambda calls: calls[:-1])


def queue_again(right: Any) -> Any:
    def may_queue(self: Any, job: Any) -> bool:
        return bool(job.state == ACTIVE)

    return may_queue


def requeue_at_most_once(right: Any) -> Any:
    def fetch(self: Any, queue: Any) -> Any:
        job = right(self, queue)
        if job is not None and job.retry_s == 0:
            job.flags &= ~DELIVERED
            job.qtime_ms = self._turn.now_ms + 1_000
            self._jobs.reschedule(job)
        return job

    return fetch


def take_twice(right: Any) -> Any:
    def first(self: Any, message: Any) -> bool:
        return True

    return first


def no_delay(right: Any) -> Any:
    def keep(self: Any, job: Any) -> None:
        job.delay_s = 0
        right(self, job)

    return keep


def live_longer(right: Any) -> Any:
    def job(self: Any, record: Any, life_s: int) -> Any:
        return right(self, record, life_s + 3_600)

    return job


def resume_all(right: Any) -> Any:
    def take(self: Any, found: Any) -> None:
        found.ids = [job.id for job in self._environment.node.jobs.table.values()]
        right(self, found)

    return take


def hand_out_expired(right: Any) -> Any:
    def add(self: Any, job: Any) -> None:
        job.expire_ms += _MINUTES
        right(self, job)

    return add


def other_body(right: Any) -> Any:
    def job(self: Any, record: Any, *rest: Any) -> Any:
        made = right(self, record, *rest)
        made.body = made.body[:-1]
        return made

    return job


def other_queue(right: Any) -> Any:
    def job(self: Any, record: Any, *rest: Any) -> Any:
        made = right(self, record, *rest)
        made.queue = b"a"
        return made

    return job


def same_id(right: Any) -> Any:
    def next_id(self: Any, *args: Any) -> bytes:
        made: bytes = right(self, *args)
        return made[:13] + b"A" * 22 + made[35:]

    return next_id


def forget_moved(right: Any) -> Any:
    def give(self: Any, sender: Any, message: Any) -> None:
        right(self, sender, message)
        for job in list(self._jobs.table.values()):
            moved = job.queue == message.queue and sender.id in job.nodes
            if moved and job.state == ACTIVE and job.flags & DELIVERED:
                self._delivery.remove(job)

    return give


def resend_at_once(right: Any) -> Any:
    def retry(self: Any, job: Any) -> None:
        wait = self._waiters.copies[job.id]
        wait.resend_ms = self._turn.now_ms
        for _ in range(200):
            self._send_again(job, set(job.nodes))
        right(self, job)

    return retry


def silent_to_unknown(right: Any) -> Any:
    def answer(self: Any, sender: Any, job_id: bytes, known: bool) -> None:
        if known:
            right(self, sender, job_id, known)

    return answer


def raise_on_working(right: Any) -> Any:
    def postponed(self: Any, job: Any, *rest: Any) -> None:
        if job.state == QUEUED:
            raise IndexError("planted")
        right(self, job, *rest)

    return postponed


def winner_keeps(right: Any) -> Any:
    def postponed(self: Any, job: Any, sender: bytes, message: Any) -> None:
        if job.state == QUEUED and not wins(sender, self._membership.myself.id, job.id):
            return
        right(self, job, sender, message)

    return postponed


def delay_by_clock(right: Any) -> Any:
    def requeue_ms(node: Any, job: Any, state: int, left_ms: int) -> int:
        at_ms: int = right(node, job, state, left_ms)
        if job.delay_s and state == ACTIVE and at_ms:
            delayed_ms: int = job.ctime // 1_000_000 + job.delay_s * 1000 - node.wall_us // 1000
            return int(node.now_ms) + max(0, delayed_ms)
        return at_ms

    return requeue_ms


def leak(right: Any) -> Any:
    def give(self: Any, size: int) -> None:
        right(self, size - 1)

    return give


def never(right: Any) -> Any:
    """A flag that is never set."""
    return 0


def youngest(right: Any) -> Any:
    def pop(self: Any) -> Any:
        for job in self.newest(1):
            self.remove(job)
            return job
        return None

    return pop


def turned(right: Any) -> Any:
    def jobs(self: Any, some: Any, counters: bool) -> None:
        right(self, some[::-1], counters)

    return jobs


def count_no_nacks(right: Any) -> Any:
    def count(self: Any, job: Any, why: int) -> None:
        right(self, job, why & ~INCR_NACKS)

    return count


def count_both(right: Any) -> Any:
    def count(self: Any, job: Any, why: int) -> None:
        right(self, job, INCR_NACKS | INCR_DELIV)

    return count


def forget_hand(right: Any) -> Any:
    def count_released(self: Any, job: Any) -> None:
        job.place = NOWHERE

    return count_released


def count_only_more(right: Any) -> Any:
    def change(self: Any, name: bytes, place: int, by: int) -> None:
        if by > 0:
            right(self, name, place, by)

    return change


def count_no_delays(right: Any) -> Any:
    def change(self: Any, name: bytes, place: int, by: int) -> None:
        if place != DELAYED or by < 0:
            right(self, name, place, by)

    return change


def ignore_working(right: Any) -> Any:
    def receive(self: Any, sender: Any, message: Any) -> None:
        if message.type != WORKING:
            right(self, sender, message)

    return receive


def count_twice(right: Any) -> Any:
    def delivered(self: Any, client: Any, job: Any) -> None:
        right(self, client, job)
        self._totals.delivered += 1

    return delivered


def unqueue_uncounted(right: Any) -> Any:
    def unqueue(self: Any, job: Any) -> None:
        right(self, job)
        self._totals.queued += 1

    return unqueue


def keep_when_leaving(right: Any) -> Any:
    def give(self: Any, *args: Any) -> None:
        if not self._membership.leaving:
            right(self, *args)

    return give


# -- the order of a turn -----------------------------------------------------------------------


def replies_first(right: Any) -> Any:
    """Replies are sent before the log is written."""

    def wrong(self: Any) -> None:
        outbox = self._outbox
        touched, outbox.touched = outbox.touched, []
        self._clients.flush(touched)
        right(self)

    return wrong


def messages_first(right: Any) -> Any:
    """Messages are sent before the log is written."""

    def wrong(self: Any) -> None:
        self.links.flush()
        right(self)

    return wrong


def nodes_last(right: Any) -> Any:
    """The node table is saved after all output was sent."""

    def wrong(self: Any) -> bool:
        save, self.save_nodes = self.save_nodes, lambda: None
        try:
            more: bool = right(self)
        finally:
            self.save_nodes = save
        if self._node.membership.changed:
            save()
        return more

    return wrong


def answer_fetched(right: Any) -> Any:
    """Clients that wait for the end of a job are answered when another one fetches it."""

    def set_whereabouts(self: Any, job: Any, place: int) -> None:
        right(self, job, place)
        if place == IN_FLIGHT:
            (endings,) = [one for one in self._observers if isinstance(one, Endings)]
            endings.job_acknowledged(job)

    return set_whereabouts


def call_expired(right: Any) -> Any:
    """Every job that ends has expired."""

    def ended(self: Any, job_id: bytes, otherwise: int) -> None:
        right(self, job_id, EXPIRED)

    return ended


def count_only_flushed(right: Any) -> Any:
    """Jobs in queues are counted as flushed, and stay."""

    def end(self: Any, job: Any) -> None:
        if job.state == QUEUED:
            self._flushed += 1
            self._totals.flushed += 1
        else:
            right(self, job)

    return end


def flush_here(right: Any) -> Any:
    """Flushed jobs end at this node; other holders do not know."""

    def end(self: Any, job: Any) -> None:
        self._flushed += 1
        self._totals.flushed += 1
        self._acks._deleted(job, NO_REASON)

    return end


def answer_twice(right: Any) -> Any:
    """The answer of every node is added twice."""

    def take(self: Any, *answer: Any) -> bool:
        right(self, *answer)
        taken: bool = right(self, *answer)
        return taken

    return take


def ask_nobody(right: Any) -> Any:
    """Other nodes are not asked, and not missed."""

    def ask_others(self: Any, words: list[bytes], asker: Any, scope: int, one: bytes) -> None:
        asker.all_answered([])

    return ask_others


def skip_copies(right: Any) -> Any:
    """Some jobs are added to the queue that was named, and to no other."""

    def add(self: Any, client: Any, request: Any) -> bool:
        if len(request.body) % 2:
            return False
        done: bool = right(self, client, request)
        return done

    return add


def answer_at_once(right: Any) -> Any:
    """The producer does not wait for copies."""

    def add(self: Any, client: Any, request: Any) -> bool:
        done: bool = right(self, client, request)
        for group in set(self._groups.values()):
            self._answer(group, None)
            self._timeouts.add(group, self._turn.now_ms + 500)
        return done

    return add


def hold_shortly(right: Any) -> Any:
    def hold(self: Any, job: Any, until_ms: int) -> None:
        now_ms = self._turn.now_ms
        right(self, job, now_ms + (until_ms - now_ms) // 10)

    return hold


def forget_delay(right: Any) -> Any:
    def nack(self: Any, job: Any, delay_ms: int, *rest: Any) -> bool:
        done: bool = right(self, job, 0 if job.id[20] % 4 == 0 else delay_ms, *rest)
        return done

    return nack


def bury_without_letter(right: Any) -> Any:
    def dead_letter(self: Any, job: Any, policy: Any, by_nack: bool) -> bool:
        self._acks.end(job)
        return True

    return dead_letter


def begin_twice(right: Any) -> Any:
    """One letter more is added beside the one that is followed."""

    def begin(self: Any, old: Any, request: Any, purpose: Any) -> bool:
        self._adding.add_instead(request, purpose.cause)
        done: bool = right(self, old, request, purpose)
        return done

    return begin


def keep_old(right: Any) -> Any:
    """The new job is added, and the old one goes on."""

    def begin(self: Any, old: Any, request: Any, purpose: Any) -> bool:
        new = self._adding.add_instead(request, purpose.cause)
        purpose.replaced(old, new.id)
        return True

    return begin


def end_first(right: Any) -> Any:
    """The old job ends before the new one has been added, and some are not."""

    def begin(self: Any, old: Any, request: Any, purpose: Any) -> bool:
        if old.id[20] % 4 == 0:
            purpose.replaced(old, old.id)
            self._acks.end(old)
            return True
        done: bool = right(self, old, request, purpose)
        return done

    return begin


def deaf(right: Any) -> Any:
    """The queue is known, and nobody wakes up."""

    def offer(self: Any, queue: Any) -> bool:
        right(self, queue)
        return False

    return offer


def send_and_keep(right: Any) -> Any:
    """Jobs that moved are sent, and queued here again."""

    def send(self: Any, parcel: Any) -> None:
        moved, parcel.moved = parcel.moved, []
        right(self, parcel)
        for job in moved:
            job.flags &= ~DELIVERED
            self._delivery.enqueue(job, 0)

    return send


def due_never(right: Any) -> Any:
    """The names are taken out, and forgotten."""

    def due(self: Any, now_ms: int, limit: int) -> list[bytes]:
        right(self, now_ms, limit)
        return []

    return due


def make_everywhere(right: Any) -> Any:
    """Every node takes itself for the one that makes the occurrences."""

    def maker(self: Any, name: bytes) -> bytes:
        mine: bytes = self._membership.myself.id
        return mine

    return maker


def leave_out_failed(right: Any) -> Any:
    """An occurrence whose job cannot be added at once is left out."""

    def failed(self: Any, active: Any, error: str) -> None:
        right(self, active, error)
        self._done(active, active.next_s)

    return failed


def grant_always(right: Any) -> Any:
    def reserve(self: Any, entry: Any) -> tuple[int, bytes]:
        right(self, entry)
        return GRANTED, entry.job_id

    return reserve


def answer_unmade(right: Any) -> Any:
    def taken(self: Any, claim: Any, job_id: bytes) -> None:
        right(self, claim, claim.job_id)

    return taken


def end_key_early(right: Any) -> Any:
    def job_ended(self: Any, found: Any) -> None:
        found.keep_ms = 0
        right(self, found)

    return job_ended


def believe_keys(right: Any) -> Any:
    """Of two jobs with one key the one whose key was reserved first has it, whether or not it
    lives; nobody is told which jobs are done."""

    def receive(self: Any, sender: Any, message: Any) -> None:
        if message.type != KEY_COPY or message.status & LAST:
            right(self, sender, message)
            return
        for entry in message.entries:
            found = self.reservations.get(entry.key)
            if entry.state == FREE or found is None or found.job_id == entry.job_id:
                self._keeper.merge(sender.id, entry)
            elif entry.state == HELD and entry.born_ms < found.born_ms:
                self.reservations.drop(found)
                self.reservations.store(entry, self._turn.now_ms)
                self._conflicts._inform(found.job_id, b"", entry)
                if found.maker:
                    self._conflicts._lost(found.job_id, entry.job_id, True)

    return receive


def ask_when_full(right: Any) -> Any:
    """Other nodes are asked as if no memory were used."""

    def ask(self: Any, *args: Any) -> None:
        memory, self._memory = self._memory, Memory()
        right(self, *args)
        self._memory = memory

    return ask


def refuse_returns(right: Any) -> Any:
    """What returns a job to its queue is refused like what adds one."""

    def make(self: Any, name: bytes, arity: int, flags: str, handler: Any) -> None:
        right(self, name, arity, flags.replace("returns", ""), handler)

    return make


def keep_tables(right: Any) -> Any:
    """The shared tables of a node that ended for good stay."""

    def files(nodes_path: str, log_files: list[str]) -> list[str]:
        paths: list[str] = right(nodes_path, log_files)
        return [path for path in paths if not path.endswith((".policies", ".schedules"))]

    return files


def by_counter_alone(right: Any) -> Any:
    """The generation of a register does not count."""

    def is_later(register: Any, other: Any) -> bool:
        mine = (register.counter, register.node, register.deleted_s, register.value)
        return mine > (other.counter, other.node, other.deleted_s, other.value)

    return is_later


def renumber_alone(right: Any) -> Any:
    """A repaired schedule begins where it began at first."""
    return SharedTable.renumbered


def delete_by_repair(right: Any) -> Any:
    """A repair takes every register for a deletion."""

    def renumbered(self: Any, register: Any, wall_s: int) -> Any:
        return Register(
            register.pattern,
            register.name,
            b"",
            REPAIRED,
            register.node,
            wall_s,
            generation=self.registers.generation + 1,
        )

    return renumbered


def lose_returned(right: Any) -> Any:
    """Jobs that nobody took are forgotten instead of being sent back."""

    def give_back(self: Any, queue: Any) -> None:
        standing = queue.standing
        if standing is not None and not queue.waiters:
            self._demanding.end(queue)
            for job in queue.jobs.oldest(int(standing.surplus)):
                self._delivery.remove(job)

    return give_back


def wanted_when_known(right: Any) -> Any:
    """Demand of a queue that does not exist yet is forgotten when it is made."""

    def obtain(self: Any, name: bytes, now_ms: int) -> Any:
        known = self.get(name)
        queue = right(self, name, now_ms)
        if known is None:
            queue.wanted = None
        return queue

    return obtain


def demand_when_full(right: Any) -> Any:
    """Memory does not count when other nodes are told what is needed."""

    def is_closed(self: Any) -> bool:
        return bool(self._membership.leaving)

    return is_closed
