"""Commands and their arguments: a table for ``help``, completion and hints."""

from __future__ import annotations

from typing import Final

GROUPS: Final = ("connection", "server", "cluster", "queues", "jobs")


class Topic:
    """One command, or one subcommand. ``params``: its arguments in order, optional ones in square
    brackets, and those of which there is one in round ones."""

    def __init__(self, group: str, name: str, params: tuple[str, ...], summary: str) -> None:
        self.group = group
        self.name = name
        self.params = params
        self.summary = summary

    @property
    def syntax(self) -> str:
        """Name and arguments."""
        return " ".join((self.name, *self.params))


def ways(param: str) -> list[list[str]]:
    """The words that may stand for a parameter, in each way there is."""
    return [way.split() for way in param.strip("[]()").split(" | ")]


_SCAN: Final = ("[cursor]", "[COUNT n]", "[BUSYLOOP]")
_IDS: Final = ("[job-id ...]",)

ENTRIES: Final = (
    Topic("connection", "AUTH", ("password",), "Authenticate with the password of the server"),
    Topic("connection", "PING", ("[message]",), "Check whether the server answers"),
    Topic("connection", "QUIT", (), "Close the connection"),
    Topic("connection", "CLIENT LIST", (), "List the connections of clients"),
    Topic("connection", "CLIENT GETNAME", (), "Show the name of this connection"),
    Topic("connection", "CLIENT SETNAME", ("name",), "Give this connection a name"),
    Topic(
        "connection", "CLIENT ANNOUNCE", ("text",), "Say what this worker does, for people who look"
    ),
    Topic(
        "connection",
        "CLIENT KILL",
        ("[ip:port]", "[ID n]", "[ADDR ip:port]", "[TYPE normal]", "[SKIPME yes|no]"),
        "Close connections of clients",
    ),
    Topic("connection", "CLIENT PAUSE", ("milliseconds",), "Suspend all clients for a while"),
    Topic("connection", "CLIENT REPLY", ("ON|OFF|SKIP",), "Choose whether commands are answered"),
    Topic("server", "INFO", ("[section]",), "Show figures and state of the server"),
    Topic("server", "TIME", (), "Show the time of the server: seconds and microseconds"),
    Topic("server", "COMMAND", (), "Describe all commands"),
    Topic("server", "COMMAND COUNT", (), "Count the commands"),
    Topic("server", "COMMAND INFO", ("[name ...]",), "Describe some commands"),
    Topic("server", "CONFIG GET", ("pattern",), "Show settings whose names match"),
    Topic("server", "CONFIG SET", ("name", "value"), "Change a setting while the server runs"),
    Topic("server", "CONFIG REWRITE", (), "Write the current settings to the config file"),
    Topic("server", "CONFIG RESETSTAT", (), "Set the statistics of INFO to zero"),
    Topic("server", "MONITOR", (), "Show every command of every client as it arrives"),
    Topic("server", "SLOWLOG GET", ("[count]",), "Show the latest slow commands"),
    Topic("server", "SLOWLOG LEN", (), "Count the slow commands that are kept"),
    Topic("server", "SLOWLOG RESET", (), "Forget the slow commands"),
    Topic("server", "ACTIONS", ("[count]",), "Show who changed what lately"),
    Topic(
        "server",
        "ACTIONS ADD",
        ("jobs", "REQUEUE | DROP | WORKER", "word", "[word ...]"),
        "Record what several commands did to dead letters, or a command to a worker",
    ),
    Topic("server", "NOTE", ("word", "[word ...]"), "Mark this moment in charts, such as a deploy"),
    Topic("server", "LATENCY LATEST", (), "Show the latest delay of each kind"),
    Topic("server", "LATENCY HISTORY", ("event",), "Show the delays of one kind over time"),
    Topic("server", "LATENCY GRAPH", ("event",), "Draw the delays of one kind"),
    Topic("server", "LATENCY DOCTOR", (), "Explain the delays in words"),
    Topic("server", "LATENCY RESET", ("[event ...]",), "Forget delays, of all kinds or of some"),
    Topic("server", "BGREWRITEAOF", (), "Rewrite the append only file without obsolete records"),
    Topic("server", "SHUTDOWN", ("[REWRITE-AOF]",), "Stop the server"),
    Topic("server", "LOADJOB", ("blob",), "Record of the append only file, not for clients"),
    Topic("server", "DEBUG FLUSHALL", (), "Delete all jobs and queues of this node"),
    Topic("server", "DEBUG LOADAOF", (), "Delete all jobs, then load the append only file"),
    Topic("server", "DEBUG SLEEP", ("seconds",), "Suspend the whole server"),
    Topic("server", "DEBUG ERROR", ("text",), "Answer with an error of your choice"),
    Topic("server", "DEBUG STRUCTSIZE", (), "Show the sizes of internal structures"),
    Topic("server", "DEBUG RESTART", ("[milliseconds]",), "Shut down and start again"),
    Topic("server", "DEBUG CRASH-AND-RECOVER", ("[milliseconds]",), "Restart as after a crash"),
    Topic("server", "DEBUG SEGFAULT", (), "Crash the server"),
    Topic("server", "DEBUG ASSERT", (), "Crash the server by a failed assertion"),
    Topic("server", "DEBUG OOM", (), "Crash the server as if memory had run out"),
    Topic(
        "cluster",
        "HELLO",
        ("[2|3 [AUTH user password] [SETNAME name]]",),
        "List this node and all others with their priorities, or choose a version of RESP",
    ),
    Topic("cluster", "CLUSTER MEET", ("ip", "port", "[bus-port]"), "Join this node with another"),
    Topic("cluster", "CLUSTER NODES", (), "List the known nodes and the state of their links"),
    Topic("cluster", "CLUSTER INFO", (), "Show figures of the cluster"),
    Topic("cluster", "CLUSTER MYID", (), "Show the ID of this node"),
    Topic("cluster", "CLUSTER FORGET", ("node-id",), "Remove a node from the table of this one"),
    Topic("cluster", "CLUSTER RESET", ("[SOFT|HARD]",), "Leave the cluster and delete all jobs"),
    Topic(
        "cluster",
        "CLUSTER LEAVING",
        ("[yes|no [EVACUATE]]",),
        "Show or set whether this node is leaving, and gives its jobs away",
    ),
    Topic("cluster", "CLUSTER SAVECONFIG", (), "Write the nodes file now"),
    Topic("queues", "QLEN", ("queue",), "Count the jobs queued on this node"),
    Topic("queues", "QPEEK", ("queue", "count"), "Show queued jobs and leave them there"),
    Topic("queues", "QSTAT", ("queue", "[WITHPAUSE]"), "Show figures and state of a queue"),
    Topic(
        "queues",
        "QSCAN",
        (*_SCAN, "[MINLEN n]", "[MAXLEN n]", "[IMPORTRATE n]"),
        "List the queues of this node, page by page",
    ),
    Topic(
        "queues",
        "PAUSE",
        ("queue", "none|in|out|all|state|bcast|processes ..."),
        "Stop jobs from coming into or going out of a queue, or resume it",
    ),
    Topic(
        "queues",
        "QCOUNT",
        ("queue", "[CLUSTER|PROCESSES]"),
        "Count the jobs of a queue by where they are",
    ),
    Topic(
        "queues",
        "QLIST",
        (
            "[MATCH glob]",
            "[SORT queued|oldest|name|rate]",
            "[COUNT n]",
            "[CURSOR cursor]",
            "[CLUSTER|PROCESSES]",
        ),
        "List queues with their counts, in order, page by page",
    ),
    Topic(
        "queues",
        "QFLUSH",
        (
            "queue",
            "[CLUSTER|PROCESSES]",
            "[STATE queued|delayed|backoff|in-flight|loaded|any]",
            "[WITHDETAILS]",
        ),
        "End the jobs of a queue",
    ),
    Topic(
        "server",
        "ASK",
        ("NODE|PROCESSES|CLUSTER|node-id", "question", "[word ...]"),
        "Ask each process of the daemon, or each node, the same question",
    ),
    Topic(
        "queues",
        "QMOVE",
        ("from", "to", "[COUNT n]", "[ID job-id ...]", "[DEAD]"),
        "Move jobs of this node to another queue",
    ),
    Topic(
        "jobs",
        "ADDJOB",
        (
            "queue",
            "body",
            "ms-timeout",
            "[REPLICATE count]",
            "[DELAY seconds]",
            "[RETRY seconds]",
            "[TTL seconds]",
            "[MAXLEN count]",
            "[ASYNC]",
            "[UNIQUE key [FOR seconds] [WITHNEW]]",
        ),
        "Put a job into a queue",
    ),
    Topic(
        "queues",
        "QPOLICY SET",
        ("pattern", "setting", "value", "[setting value ...]"),
        "Give the queues that match a pattern these settings",
    ),
    Topic("queues", "QPOLICY DEL", ("pattern", "[setting ...]"), "Take settings from a pattern"),
    Topic("queues", "QPOLICY REPAIR", (), "Number the table of policies anew on all nodes"),
    Topic("queues", "QPOLICY LIST", ("[pattern]",), "List the settings of patterns"),
    Topic("queues", "QPOLICY GET", ("queue",), "Show the settings in force for a queue"),
    Topic(
        "jobs",
        "SCHEDULE SET",
        (
            *("name", "(cron | EVERY seconds)", "[TZ zone]", "[MISSED skip|one|all]"),
            *("QUEUE", "queue", "body", "[ADDJOB options ...]"),
        ),
        "Add a job whenever it is due",
    ),
    Topic("jobs", "SCHEDULE LIST", (), "List the schedules"),
    Topic("jobs", "SCHEDULE GET", ("name",), "Show a schedule"),
    Topic("jobs", "SCHEDULE DEL", ("name",), "Delete a schedule"),
    Topic("jobs", "SCHEDULE REPAIR", (), "Number the table of schedules anew on all nodes"),
    Topic("jobs", "SCHEDULE PAUSE", ("name",), "Add no jobs by a schedule"),
    Topic("jobs", "SCHEDULE RESUME", ("name",), "Let a schedule go on from now"),
    Topic("jobs", "SCHEDULE SKIP", ("name",), "Leave out the next occurrence of a schedule"),
    Topic("jobs", "SCHEDULE RUN", ("name",), "Add the job of a schedule now"),
    Topic(
        "jobs",
        "GETJOB",
        (
            "[NOHANG]",
            "[WITHCOUNTERS]",
            "[TIMEOUT milliseconds]",
            "[COUNT n]",
            "[EXCEPT glob]",
            "[FROM queue ...]",
            "[MATCH glob ...]",
        ),
        "Fetch jobs from queues, by name or by pattern, and wait if there are none",
    ),
    Topic("jobs", "ACKJOB", _IDS, "Acknowledge jobs: they are done"),
    Topic("jobs", "FASTACK", _IDS, "The same with less traffic; a job may be delivered again"),
    Topic("jobs", "DELJOB", _IDS, "Delete jobs from this node only"),
    Topic(
        "jobs",
        "NACK",
        ("[DELAY seconds]", "[REASON text]", "[job-id ...]"),
        "Give jobs back because processing them failed",
    ),
    Topic(
        "jobs",
        "WORKING",
        ("job-id", "[PROGRESS fraction [NOTE text]]"),
        "Postpone the next delivery of a job, and report how far it is",
    ),
    Topic("jobs", "ENQUEUE", _IDS, "Queue jobs now if they are not queued"),
    Topic("jobs", "DEQUEUE", _IDS, "Remove jobs from their queues"),
    Topic("jobs", "SHOW", ("job-id",), "Show everything about a job"),
    Topic(
        "jobs",
        "WAITJOB",
        ("job-id", "[TIMEOUT milliseconds]"),
        "Wait until a job has ended, and how",
    ),
    Topic(
        "jobs",
        "JSCAN",
        (
            *_SCAN,
            "[QUEUE name]",
            "[STATE wait-repl|active|queued|acked]",
            "[REPLY all|id]",
            "[SINCE unix-ms]",
            "[UNTIL unix-ms]",
            "[REASON pattern]",
        ),
        "List the jobs of this node, page by page",
    ),
)
