"""Defects planted into the node, one at a time, to verify that the simulator finds them.

Each replaces one method (or one constant of a module) of the product for the time of a run by a
plausible wrong one. The product itself contains no trace of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from disque_tx.commands.base.context import Command
from disque_tx.core import recovery
from disque_tx.core.adding import adding
from disque_tx.core.adding.adding import Adding
from disque_tx.core.adding.fanout import Fanout
from disque_tx.core.adding.placement import Placement
from disque_tx.core.adding.replication import Replication
from disque_tx.core.admission.clustername import ClusterName
from disque_tx.core.admission.forgetting import Forgetting
from disque_tx.core.base.answerline import AnswerLine
from disque_tx.core.cluster import Cluster
from disque_tx.core.counting.answers import CountAnswer
from disque_tx.core.counting.flushing import Flushing
from disque_tx.core.counting.requests import QueueQueries
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.delivery.holders import Holders
from disque_tx.core.getting import getting
from disque_tx.core.getting.federation import Federation
from disque_tx.core.getting.receivers import Receivers
from disque_tx.core.getting.supplying import Supplying
from disque_tx.core.getting.unblocking import Unblocking
from disque_tx.core.healing import repairs
from disque_tx.core.healing.healing import Healing
from disque_tx.core.healing.lostnodes import LostNodes
from disque_tx.core.healing.repairs import Repairs
from disque_tx.core.healing.restarts import RestartedNodes
from disque_tx.core.jobs.counters import Counters
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.order import JobOrder
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.keys.joining import Joining
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.leaving.evacuation import Evacuation
from disque_tx.core.leaving.giving import Giving
from disque_tx.core.leaving.moving import Moving
from disque_tx.core.leaving.takeovers import Takeovers
from disque_tx.core.node import Node
from disque_tx.core.nodes import discovery
from disque_tx.core.nodes.clocks import Clocks
from disque_tx.core.nodes.discovery import Discovery
from disque_tx.core.nodes.heartbeats import Heartbeats
from disque_tx.core.nodes.links import Links
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import SeenSerials
from disque_tx.core.queues.endings import Endings
from disque_tx.core.queues.index import Matching
from disque_tx.core.queues.limits import Limits
from disque_tx.core.queues.queues import Queues
from disque_tx.core.queues.refusedqueues import RefusedQueues
from disque_tx.core.queues.standing import StandingDemand
from disque_tx.core.queues.waiters import Waiters
from disque_tx.core.recurring.recurring import Recurring
from disque_tx.core.redelivery.deadletters import DeadLetterMaker
from disque_tx.core.redelivery.replacements import Replacements
from disque_tx.core.redelivery.retries import Retries
from disque_tx.core.state.store import JobStore
from disque_tx.core.tables import registers
from disque_tx.core.tables.exchange import TableExchange
from disque_tx.core.tables.table import SharedTable
from disque_tx.core.tables.timetable import Timetable
from disque_tx.core.unique.claims import Claims
from disque_tx.core.unique.conflicts import Conflicts
from disque_tx.core.unique.keeper import Keeper
from disque_tx.core.unique.keys import Keys
from disque_tx.engine.aof.queued import QueuedFile
from disque_tx.engine.turns import Turns
from disque_tx.messages.records import QUEUED
from disque_tx.sim.machines import machine
from disque_tx.sim.machines.control import SimControl
from disque_tx.sim.stage.shape import Pair
from disque_tx.wire.bus import parser as bus
from disque_tx.wire.jobs.jobid import JobIdSource
from disque_tx.wire.resp.replies import RespWriter
from tests.mutants.answerplants import answer_out_of_turn, await_first_only, overtake
from tests.mutants.demandplants import keep_credit, keep_used_up, refuse_for_good
from tests.mutants.gatherplants import (
    changed,
    gives_to_leaving,
    late_copy,
    not_beside_originals,
    some_unaware,
    tried_once,
    whole_life,
    without_hosts,
)
from tests.mutants.healplants import (
    asks_nobody,
    fresh_delay,
    has_everything,
    lost_is_alive,
    no_state,
    once,
    one_only,
    started_once,
    waits_for_ever,
)
from tests.mutants.keyplants import (
    always_awake,
)
from tests.mutants.leaveplants import (
    delay_at_once,
    ignored,
    kept_too,
    leaving_is_alive,
)
from tests.mutants.plants import (
    answer_at_once,
    answer_early,
    answer_fetched,
    answer_twice,
    answer_unmade,
    ask_nobody,
    ask_when_full,
    begin_twice,
    believe_keys,
    bulks_to_all,
    bury_without_letter,
    by_counter_alone,
    call_expired,
    confirm_without_copy,
    count_both,
    count_no_delays,
    count_no_nacks,
    count_only_flushed,
    count_only_more,
    count_twice,
    deaf,
    delay_by_clock,
    delete_by_repair,
    demand_when_full,
    due_never,
    end_first,
    end_key_early,
    flush_here,
    forget_delay,
    forget_hand,
    forget_moved,
    forget_some_acks,
    grant_always,
    hand_out_expired,
    hold_shortly,
    ignore_working,
    keep_old,
    keep_tables,
    keep_when_leaving,
    leak,
    leave_out_failed,
    live_longer,
    lose_last,
    lose_returned,
    make_everywhere,
    messages_first,
    never,
    no_delay,
    nodes_last,
    nothing,
    other_body,
    other_queue,
    pretend,
    queue_again,
    raise_on_working,
    refuse_returns,
    renumber_alone,
    replies_first,
    requeue_at_most_once,
    resend_at_once,
    resume_all,
    reverse,
    same_id,
    send_and_keep,
    silent_to_unknown,
    skip_copies,
    take_twice,
    turned,
    unqueue_uncounted,
    wanted_when_known,
    winner_keeps,
    youngest,
)

_ORDER: Final = "OldestFirst"
_PAUSE: Final = "PauseRespected"
_COUNTERS: Final = "CountersMatch"
_TOTALS: Final = "TotalsMatch"


class Mutant:
    """``what``: a description of the defect. ``make``: turns the right method into the wrong one.
    ``checker``: the class name of the checker that must find it, empty if any may. ``task``: the
    workload and the fault of its runs, if it hardly ever shows otherwise; by default the seed
    decides."""

    def __init__(
        self,
        name: str,
        what: str,
        owner: Any,
        method: str,
        make: Callable[[Any], Any],
        checker: str = "",
        task: Pair | None = None,
    ) -> None:
        self.name = name
        self.checker = checker
        self.task = task
        self.what = what
        self._owner = owner
        self._method = method
        self._make = make

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Within this context the product has the defect."""
        right = getattr(self._owner, self._method)
        setattr(self._owner, self._method, self._make(right))
        try:
            yield
        finally:
            setattr(self._owner, self._method, right)


MUTANTS: Final = [
    Mutant(
        "early-answer",
        "ADDJOB answers after the first copy",
        Replication,
        "confirmed",
        answer_early,
    ),
    Mutant(
        "answer-out-of-turn",
        "answers about jobs that were added at once leave in another order",
        AnswerLine,
        "decided",
        answer_out_of_turn,
        "NothingUnexpected",
    ),
    Mutant(
        "answer-overtakes",
        "an answer that is known at once leaves before those to earlier requests",
        Waiters,
        "end_ahead",
        overtake,
        "NothingUnexpected",
    ),
    Mutant(
        "withdrawn-once",
        "of several jobs that a client did not wait for only one is withdrawn",
        Unblocking,
        "_awaited",
        await_first_only,
        "MemoryCounted",
        ("pause", "reset"),
    ),
    Mutant(
        "one-host",
        "copies on one host count as enough",
        Placement,
        "only_host",
        lambda right: lambda self, nodes: b"",
        "HostsDiffer",
    ),
    Mutant(
        "phantom-copy",
        "a copy is confirmed and not kept",
        Replication,
        "keep",
        confirm_without_copy,
    ),
    Mutant(
        "copy-not-logged",
        "what is kept for others is not logged",
        JobStore,
        "record",
        lambda right: lambda self, job: right(self, job) if job.state == QUEUED else None,
    ),
    Mutant("ack-not-logged", "the end of a job is not logged", JobStore, "record_end", nothing),
    Mutant(
        "once-again",
        "RETRY 0 is queued again by its timer",
        Delivery,
        "fetch",
        requeue_at_most_once,
    ),
    Mutant("once-by-nack", "RETRY 0 is queued again on demand", Delivery, "may_queue", queue_again),
    Mutant(
        "taken-twice",
        "duplicated messages are processed",
        SeenSerials,
        "first",
        take_twice,
        "AtMostOnce",
        ("once-moved", "message_loss"),
    ),
    Mutant("no-delay", "DELAY is ignored", Adding, "_keep", no_delay),
    Mutant("long-copy", "copies live an hour longer", Arrivals, "job", live_longer),
    Mutant(
        "resume-all",
        "after a clean stop jobs that were delivered are queued again, too",
        QueuedFile,
        "_take",
        resume_all,
    ),
    Mutant("long-life", "jobs live a minute longer", JobStore, "add", hand_out_expired),
    Mutant("short-body", "copies lose a byte", Arrivals, "job", other_body),
    Mutant("wrong-queue", "copies go to another queue", Arrivals, "job", other_queue),
    Mutant("same-id", "an ID is assigned twice", JobIdSource, "next_id", same_id),
    Mutant("never-again", "jobs are not queued again after RETRY", Delivery, "awake", nothing),
    Mutant("given-away", "a node that moves a job keeps no copy", Federation, "give", forget_moved),
    Mutant(
        "storm",
        "nodes that do not answer are asked all the time",
        Replication,
        "retry",
        resend_at_once,
    ),
    Mutant("no-resend", "ASYNC copies are not repeated", Replication, "_resend_async", nothing),
    Mutant(
        "no-hand-off", "no node is asked to queue an external job", Replication, "hand_off", pretend
    ),
    Mutant("no-gotack", "GOTACK is not sent for unknown jobs", Acks, "_answer", silent_to_unknown),
    Mutant("no-setack", "acknowledgements are sent once and never again", Acks, "awake", nothing),
    Mutant("gotack-ignored", "GOTACK is ignored", Acks, "confirmed", nothing),
    Mutant("setack-ignored", "SETACK is ignored", Acks, "set", nothing),
    Mutant(
        "raise",
        "a message raises an exception in the node",
        Holders,
        "_postponed",
        raise_on_working,
    ),
    Mutant("no-gossip", "nodes do not learn of others", Heartbeats, "_read_gossip", nothing),
    Mutant(
        "no-recovery", "a node that is back still counts as failed", Heartbeats, "_pong", nothing
    ),
    Mutant("no-calls", "links are not made", Links, "call", nothing),
    Mutant(
        "winner-keeps",
        "the winner of two queued copies ignores WORKING",
        Holders,
        "_postponed",
        winner_keeps,
        "WorkingRespected",
        ("nack-and-working", ""),
    ),
    Mutant(
        "delay-by-clock",
        "after a restart DELAY ends by the clock of the node that made the job",
        recovery,
        "_requeue_ms",
        delay_by_clock,
    ),
    Mutant("memory-leak", "the count of memory drifts", Memory, "subtract", leak),
    Mutant(
        "no-take-back",
        "an ADDJOB that timed out leaves its client waiting",
        Delivery,
        "take_back",
        nothing,
    ),
    Mutant("youngest-first", "the youngest job leaves first", JobOrder, "pop", youngest, _ORDER),
    Mutant(
        "answer-turned", "an answer has the oldest job last", RespWriter, "jobs", turned, _ORDER
    ),
    Mutant("no-pause-out", "GETJOB ignores PAUSE", getting, "PAUSE_OUT", never, _PAUSE),
    Mutant("no-pause-in", "ADDJOB ignores PAUSE", adding, "PAUSE_IN", never, _PAUSE),
    Mutant(
        "no-bcast",
        "PAUSE BCAST is not sent to other nodes",
        Node,
        "pause_everywhere",
        nothing,
        _PAUSE,
    ),
    Mutant(
        "ack-ignored",
        "some ACKJOBs are answered and not executed",
        Acks,
        "acknowledge",
        forget_some_acks,
        "NotAfterAck",
    ),
    Mutant("nack-uncounted", "NACK is not counted", Delivery, "count", count_no_nacks, _COUNTERS),
    Mutant("all-nacks", "RETRY counts as a NACK, too", Delivery, "count", count_both, _COUNTERS),
    Mutant(
        "counters-not-learnt",
        "a job that moves back keeps its old counters",
        Delivery,
        "merge_counters",
        nothing,
        _COUNTERS,
    ),
    Mutant("hands-drift", "in_flight only grows", JobStore, "count_released", forget_hand, _TOTALS),
    Mutant("tallies-drift", "kept counts only grow", Tallies, "change", count_only_more, _TOTALS),
    Mutant(
        "delays-uncounted",
        "the count of delayed jobs drifts",
        Tallies,
        "change",
        count_no_delays,
        _TOTALS,
    ),
    Mutant("queued-drifts", "queued grows", Delivery, "_unqueue", unqueue_uncounted, _TOTALS),
    Mutant(
        "delivered-twice", "deliveries count twice", Delivery, "delivered", count_twice, _TOTALS
    ),
    Mutant(
        "open-door", "no password is needed", Command, "before_auth", pretend, "PasswordRequired"
    ),
    Mutant(
        "working-ignored",
        "WORKING is ignored",
        Holders,
        "receive",
        ignore_working,
        "WorkingRespected",
        ("nack-and-working", ""),
    ),
    Mutant(
        "leaving-keeps",
        "a leaving node moves no jobs away",
        Federation,
        "give",
        keep_when_leaving,
        "Drained",
    ),
    Mutant(
        "replies-first",
        "replies are sent before the log is written",
        Turns,
        "_commit",
        replies_first,
    ),
    Mutant(
        "bus-first",
        "messages are sent before the log is written",
        Turns,
        "_commit",
        messages_first,
    ),
    Mutant("bulk-turned", "messages in a bulk are in reverse order", bus, "read_bulk", reverse),
    Mutant("bulk-cut", "the last message of a bulk is lost", bus, "read_bulk", lose_last),
    Mutant(
        "bulk-to-all",
        "bulks are sent to nodes that do not know them",
        Heartbeats,
        "_update_features",
        bulks_to_all,
    ),
    Mutant(
        "policies-unsaved",
        "a change of policies is answered before it is saved",
        SimControl,
        "save_policies",
        nothing,
        "ChangesKept",
    ),
    Mutant(
        "policies-once",
        "a change of policies that was lost on its way is not sent again",
        TableExchange,
        "greet",
        nothing,
        "SameTables",
    ),
    Mutant(
        "policies-arrival",
        "of two changes of policies the one that arrives last wins",
        registers,
        "is_later",
        lambda right: lambda register, other: register.fields() != other.fields(),
        "ChangesKept",
    ),
    Mutant(
        "policies-deletions",
        "a deleted policy is forgotten at once",
        registers,
        "DELETION_KEPT_S",
        lambda right: 0,
        "ChangesKept",
    ),
    Mutant(
        "policies-to-all",
        "policies are sent to nodes that do not know them",
        TableExchange,
        "_has_tables",
        pretend,
    ),
    Mutant(
        "waits-unanswered",
        "clients that wait for the end of a job are not answered",
        Endings,
        "_ended",
        nothing,
        "EndingsTrue",
        ("waiting", ""),
    ),
    Mutant(
        "waits-early",
        "a client that waits for the end of a job is answered when it is fetched",
        JobStore,
        "set_whereabouts",
        answer_fetched,
        "EndingsTrue",
        ("waiting", ""),
    ),
    Mutant(
        "waits-expired",
        "every job that ends counts as expired",
        Endings,
        "_ended",
        call_expired,
        "EndingsTrue",
        ("waiting", ""),
    ),
    Mutant(
        "flush-counts",
        "QFLUSH counts jobs that it does not end",
        Flushing,
        "_end",
        count_only_flushed,
        "FlushedGone",
        ("flushing", ""),
    ),
    Mutant(
        "flush-here",
        "QFLUSH ends jobs at one node, and their copies stay",
        Flushing,
        "_end",
        flush_here,
        "FlushedGone",
        ("flushing", ""),
    ),
    Mutant(
        "counts-twice",
        "QCOUNT counts every job twice",
        CountAnswer,
        "receive",
        answer_twice,
        "CountsTrue",
        ("flushing", ""),
    ),
    Mutant(
        "counts-here",
        "QCOUNT CLUSTER asks no other node",
        QueueQueries,
        "ask_others",
        ask_nobody,
        "CountsTrue",
        ("flushing", ""),
    ),
    Mutant(
        "fanout-skipped",
        "some jobs are not added to the queues of copy-to",
        Fanout,
        "add",
        skip_copies,
        "CopiesAdded",
        ("fanout", ""),
    ),
    Mutant(
        "fanout-early",
        "with copy-to ADDJOB is answered before there are copies",
        Fanout,
        "add",
        answer_at_once,
        "NothingLost",
        ("fanout", "partition"),
    ),
    Mutant(
        "schedule-everywhere",
        "every node makes the jobs of all schedules",
        Recurring,
        "maker",
        make_everywhere,
        "OccurrencesOnce",
        ("schedules", ""),
    ),
    Mutant(
        "schedule-left-out",
        "an occurrence whose job cannot be added at once is left out",
        Recurring,
        "_failed",
        leave_out_failed,
        "OccurrencesKept",
        ("schedules", "partition"),
    ),
    Mutant(
        "backoff-short",
        "a backoff ends after a tenth of its time",
        RetryBackoff,
        "hold",
        hold_shortly,
        "BackoffRespected",
        ("backoff", ""),
    ),
    Mutant(
        "backoff-skipped",
        "one job in four is queued at once, whatever DELAY a NACK names",
        Retries,
        "nack",
        forget_delay,
        "BackoffRespected",
        ("backoff", ""),
    ),
    Mutant(
        "letter-forgotten",
        "a job that was delivered too often ends without a letter",
        DeadLetterMaker,
        "dead_letter",
        bury_without_letter,
        "EveryJobSettled",
        ("dead-letters", ""),
    ),
    Mutant(
        "letter-twice",
        "two letters are written about a job",
        Replacements,
        "begin",
        begin_twice,
        "OneLetter",
        ("dead-letters", ""),
    ),
    Mutant(
        "move-keeps-old",
        "a moved job stays in its old queue, too",
        Replacements,
        "begin",
        keep_old,
        "AtMostOnce",
        ("moves", ""),
    ),
    Mutant(
        "move-forgets",
        "QMOVE ends jobs before the new ones are added",
        Replacements,
        "begin",
        end_first,
        "NothingLost",
        ("moves", ""),
    ),
    Mutant(
        "match-asleep",
        "a job in a queue that matches wakes no client that waits by pattern",
        Matching,
        "offer",
        deaf,
        "NoJobBesideClient",
        ("by-pattern", ""),
    ),
    Mutant(
        "match-keeps-once",
        "a job with RETRY 0 that is given away by pattern stays where it was",
        Federation,
        "send",
        send_and_keep,
        "AtMostOnce",
        ("by-pattern-once", ""),
    ),
    Mutant(
        "hand-unnoticed",
        "the end of a job in flight makes no room for the next one",
        Waiters,
        "fewer_in_flight",
        nothing,
        "NoJobBesideClient",
        ("limits", ""),
    ),
    Mutant(
        "limits-ignored",
        "jobs are delivered whatever concurrency says",
        Limits,
        "allows",
        pretend,
        "LimitsKept",
        ("limits", ""),
    ),
    Mutant(
        "rate-uncounted",
        "deliveries take no tokens",
        Limits,
        "delivered",
        nothing,
        "LimitsKept",
        ("limits", ""),
    ),
    Mutant(
        "token-unnoticed",
        "a client that waits for a token is not served when there is one",
        Limits,
        "due",
        due_never,
        "NoJobBesideClient",
        ("limits", ""),
    ),
    Mutant(
        "key-granted-twice",
        "a key that a job has is granted to another one",
        Keeper,
        "reserve",
        grant_always,
        "OneJobPerKey",
        ("keys", ""),
    ),
    Mutant(
        "key-of-unmade-job",
        "for a key that is taken, the ID of the job that was not made is answered",
        Claims,
        "_taken",
        answer_unmade,
        "AnsweredExist",
        ("keys", ""),
    ),
    Mutant(
        "key-ends-early",
        "a key ends with its job, whatever FOR says",
        Keeper,
        "job_ended",
        end_key_early,
        "OneJobPerKey",
        ("keys", ""),
    ),
    Mutant(
        "key-of-one-node",
        "every node looks after keys by itself",
        KeeperMap,
        "refresh",
        nothing,
        "OneJobPerKey",
        ("keys", ""),
    ),
    Mutant(
        "clock-believed",
        "no node compares its clock with those of others",
        Clocks,
        "update",
        nothing,
        "SchedulesGoOn",
        ("schedules-clock", "one_clock"),
    ),
    Mutant(
        "key-believed",
        "a key that another node names counts, whether or not its job lives",
        Keys,
        "receive",
        believe_keys,
        "NothingLost",
        ("keys-reused-away", "one_away"),
    ),
    Mutant(
        "key-end-untold",
        "while the node that made a job is away nobody is told that the job is done",
        Keeper,
        "announce",
        nothing,
        "KeysFreed",
        ("keys-reused-away", "one_away"),
    ),
    Mutant(
        "key-asleep",
        "a node that stood still answers by the keys that it knew before",
        Joining,
        "stood_still",
        always_awake,
        "KeysFreed",
        ("keys-reused-away", "one_away"),
    ),
    Mutant(
        "key-doubled-silently",
        "after a partition nobody counts the jobs that have the key of another one",
        Conflicts,
        "_lost",
        nothing,
        "OneJobPerKey",
        ("keys-parted", "partition"),
    ),
    Mutant(
        "asks-when-full",
        "a node above 95 % of its memory asks others for jobs",
        Federation,
        "_ask",
        ask_when_full,
        "FullAsksForNothing",
        ("memory-full", "memory_full"),
    ),
    Mutant(
        "return-refused",
        "a node above 95 % of its memory refuses NACK",
        Command,
        "__init__",
        refuse_returns,
        "ReturnsTaken",
        ("memory-full", "memory_full"),
    ),
    Mutant(
        "counters-unlogged",
        "how often a job came back is not logged",
        Counters,
        "record",
        nothing,
        "CountersSurvive",
        ("letters-logged", "restart"),
    ),
    Mutant(
        "counters-unread",
        "how often a job came back is logged, and not read",
        recovery,
        "load_counters",
        nothing,
        "CountersSurvive",
        ("letters-logged", "restart"),
    ),
    Mutant(
        "no-letters",
        "jobs are delivered again without end",
        DeadLetterMaker,
        "dead_letter",
        lambda right: lambda *args: False,
        "LimitKept",
        ("letters-logged", ""),
    ),
    Mutant(
        "tables-left",
        "a process that ended for good leaves its tables to the next one of its number",
        machine,
        "node_files",
        keep_tables,
        "ChangesKept",
        ("processes-week", "fewer_for_a_week"),
    ),
    Mutant(
        "repair-outrun",
        "what was changed before the repair of a table wins against what is changed after it",
        registers,
        "is_later",
        by_counter_alone,
        "LastChangeCounts",
        ("repairs", ""),
    ),
    Mutant(
        "repair-restarts",
        "schedules begin again when their table is repaired",
        Timetable,
        "renumbered",
        renumber_alone,
        "OccurrencesOnce",
        ("repairs-recurring", ""),
    ),
    Mutant(
        "repair-deletes",
        "the repair of a table deletes what it holds",
        SharedTable,
        "renumbered",
        delete_by_repair,
        "LastChangeCounts",
        ("repairs", ""),
    ),
    Mutant(
        "demand-unsent",
        "what clients wait for is not sent to other nodes",
        Receivers,
        "grant",
        nothing,
        "WaitingClientsServed",
        ("federation", ""),
    ),
    Mutant(
        "demand-kept",
        "demand does not end when no client waits any more",
        Receivers,
        "withdraw",
        nothing,
        "WaitingClientsServed",
        ("federation", ""),
    ),
    Mutant(
        "credit-kept",
        "jobs that come use up no credit",
        StandingDemand,
        "arrived",
        keep_credit,
        "WaitingClientsServed",
        ("federation", ""),
    ),
    Mutant(
        "demand-used-up",
        "demand does not end where all of it seems to have come",
        Receivers,
        "withdraw",
        keep_used_up,
        "WaitingClientsServed",
        ("federation", ""),
    ),
    Mutant(
        "demand-refused",
        "a queue that may deliver again is not demanded by clients that wait by pattern",
        RefusedQueues,
        "take",
        refuse_for_good,
        "WaitingClientsServed",
        ("limits", ""),
    ),
    Mutant(
        "demand-of-known",
        "demand of a queue that does not exist yet is forgotten",
        Queues,
        "obtain",
        wanted_when_known,
        "WaitingClientsServed",
        ("federation", ""),
    ),
    Mutant(
        "returned-lost",
        "jobs that nobody took are forgotten",
        Supplying,
        "_give_back",
        lose_returned,
    ),
    Mutant(
        "demands-when-full",
        "a node above 95 % of its memory demands jobs",
        Receivers,
        "is_closed",
        demand_when_full,
        "FullAsksForNothing",
        ("memory-full", "memory_full"),
    ),
    Mutant(
        "pattern-untold",
        "patterns with which clients wait are not sent to other nodes",
        Waiters,
        "note_pattern",
        nothing,
        "WaitingClientsServed",
        ("everything", ""),
    ),
    Mutant(
        "lost-alive",
        "a lost node counts as a holder",
        LostNodes,
        "status",
        lost_is_alive,
        "CopiesMadeAgain",
        ("losses", "one_lost"),
    ),
    Mutant(
        "copies-uncounted",
        "jobs that lack copies are counted, and none are made",
        Healing,
        "_settle",
        once,
        "CopiesMadeAgain",
        ("losses", "one_lost"),
    ),
    Mutant(
        "turn-never-comes",
        "a holder waits for another one to make copies, for ever",
        Healing,
        "_begin",
        waits_for_ever,
        "CopiesMadeAgain",
        ("losses", "one_lost"),
    ),
    Mutant(
        "one-copy-only",
        "of several missing copies the last one is not made",
        Repairs,
        "begin",
        one_only,
        "CopiesMadeAgain",
        ("losses", "one_lost"),
    ),
    Mutant(
        "copy-early",
        "a new copy of a delayed job is queued at once",
        Arrivals,
        "complete",
        fresh_delay,
        "InTime",
        ("losses", "one_lost"),
    ),
    Mutant(
        "start-unasked",
        "nodes that were started again are not asked",
        RestartedNodes,
        "links_changed",
        asks_nobody,
        "CopiesMadeAgain",
        ("restarts", "one_started_empty"),
    ),
    Mutant(
        "start-once",
        "a node is asked after its first start only",
        RestartedNodes,
        "links_changed",
        started_once,
        "CopiesMadeAgain",
        ("restarts", "one_started_empty"),
    ),
    Mutant(
        "answers-held",
        "a node that lost its copies is taken to have them",
        RestartedNodes,
        "answered",
        has_everything,
        "CopiesMadeAgain",
        ("restarts", "one_started_empty"),
    ),
    Mutant(
        "restored-early",
        "a delayed job that a node gets again is queued there at once",
        Repairs,
        "_state_of",
        no_state,
        "InTime",
        ("restarts", "one_started_empty"),
    ),
    Mutant(
        "leaving-alive",
        "a node that leaves counts as a holder that stays",
        LostNodes,
        "status",
        leaving_is_alive,
        "EmptiedNodes",
        ("evacuations", "one_evacuated"),
    ),
    Mutant(
        "empty-with-acks",
        "acknowledgements do not count as left",
        Evacuation,
        "_visit",
        ignored("acked"),
        "EmptiedNodes",
        ("evacuations", "one_evacuated"),
    ),
    Mutant(
        "empty-with-delays",
        "delayed jobs do not count as left",
        Evacuation,
        "_visit",
        ignored("delayed"),
        "EmptiedNodes",
        ("evacuations", "one_evacuated"),
    ),
    Mutant(
        "delay-over",
        "the rest of a DELAY that is handed over is over at once",
        Takeovers,
        "wait",
        delay_at_once,
        "InTime",
        ("evacuations", "one_evacuated"),
    ),
    Mutant(
        "once-twice",
        "a delayed job with RETRY 0 that moves stays here as well",
        Giving,
        "delayed_once",
        kept_too,
        "AtMostOnce",
        ("evacuations", "one_evacuated"),
    ),
    Mutant(
        "list-unsent",
        "a copy that is made again comes without the list of the other holders",
        Repairs,
        "_send",
        changed(nodes=()),
        "EndedStaysEnded",
        ("losses", "one_lost"),
    ),
    Mutant(
        "not-beside",
        "no copies are made again of jobs that an original has as well",
        Repairs,
        "begin",
        not_beside_originals,
        "CopiesMadeAgain",
        ("losses-mixed", "one_lost_of_mixed"),
    ),
    Mutant(
        "copy-fresh-ttl",
        "the TTL of a copy that is made again begins anew",
        repairs,
        "life_s",
        whole_life,
        "CopiesAlike",
        ("losses", "one_lost"),
    ),
    Mutant(
        "copy-late-ttl",
        "a copy with a TTL that begins anew is delivered after the end of the job",
        repairs,
        "life_s",
        whole_life,
        "InTime",
        ("losses-with-ttl", "one_lost"),
    ),
    Mutant(
        "copy-other-retry",
        "a copy that is made again has another RETRY",
        Repairs,
        "_send",
        changed(retry_s=300),
        "CopiesAlike",
        ("losses", "one_lost"),
    ),
    Mutant(
        "copy-uncounted",
        "a copy that is made again counts no NACKs and deliveries",
        Repairs,
        "_send",
        changed(nacks=0, deliveries=0),
        "CopiesAlike",
        ("losses-with-letters", "one_lost"),
    ),
    Mutant(
        "copy-revives",
        "a late copy brings back an acknowledged job",
        Healing,
        "_repair",
        late_copy,
        "EndedStaysEnded",
        ("losses", "one_lost"),
    ),
    Mutant(
        "some-unaware",
        "half of the nodes take one that is lost for a holder",
        LostNodes,
        "status",
        some_unaware,
        "CopiesMadeAgain",
        ("losses", "one_lost"),
    ),
    Mutant(
        "leaving-given",
        "a node that leaves gives its jobs to another one that leaves",
        Moving,
        "begin_part",
        gives_to_leaving,
        "EmptiedNodes",
        ("evacuations", "two_evacuated"),
    ),
    Mutant(
        "hosts-ignored",
        "copies that are lost with a host are made again on one host",
        Membership,
        "refresh",
        without_hosts,
        "SpreadAgain",
        ("losses-of-hosts", "host_lost"),
    ),
    Mutant(
        "never-forgotten",
        "nodes that are lost are never forgotten",
        Forgetting,
        "due",
        lambda right: lambda self, entries, now_ms: [],
        "SameViews",
        ("names-losses", "one_lost"),
    ),
    Mutant(
        "replaced-lives",
        "a node whose address another one has is never suspected",
        Cluster,
        "_miss",
        nothing,
        "CopiesMadeAgain",
        ("names-losses", "one_replaced"),
    ),
    Mutant(
        "name-ignored",
        "nodes of another cluster are introduced",
        ClusterName,
        "is_same",
        lambda right: lambda self, message: True,
        "OthersRefused",
        ("names", "name_foreign"),
    ),
    Mutant(
        "tried-once",
        "an address where nobody answered is tried no more",
        Discovery,
        "_review",
        tried_once,
        "OneCluster",
        ("names-parted", "parted"),
    ),
    Mutant(
        "crowd-kept",
        "any number of addresses is kept",
        discovery,
        "ADDRESSES_MAX",
        lambda right: 100 * right,
        "OthersRefused",
        ("names", "name_crowded"),
    ),
    Mutant(
        "crowd-at-once",
        "all addresses are tried at once",
        discovery,
        "TRIES_MAX",
        lambda right: 100 * right,
        "OthersRefused",
        ("names", "name_crowded"),
    ),
    Mutant(
        "nodes-last", "the nodes file is written after messages are sent", Turns, "end", nodes_last
    ),
]
