"""The commands of Disque as methods, which all clients have.

Each request of :mod:`disque_tx.client.requests.encoding` becomes a method here, and each operation
of several requests. What a method returns, a result, a Deferred or a coroutine, depends on the
client: see :mod:`disque_tx.client.steps.methods`.

When a connection is lost, commands that are ``REPEATABLE`` go to another node by themselves; the
others raise ``OutcomeUnknown`` if they have been sent. Any method may raise the exceptions of
:mod:`disque_tx.client.errors`; docstrings name those that a program will want to handle.
"""

from __future__ import annotations

from typing import Any

from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.nodes import Origins
from disque_tx.client.requests import adding, counting, moving, policies, scans, schedules
from disque_tx.client.requests import encoding as requests
from disque_tx.client.steps.channels import Channels
from disque_tx.client.steps.fetching import Fetching, TakenJob
from disque_tx.client.steps.methods import command, listing, operation
from disque_tx.client.steps.single import Steps, anywhere


class Commands(Channels, Fetching[TakenJob]):
    """A client of a cluster: its session, and all commands.

    ``follow``: whether to fetch from the node that creates most of the delivered jobs.
    """

    def __init__(self, session: Any, seeds: Seeds, follow: bool) -> None:
        self._session = session
        self._seeds = seeds
        self._origins = Origins() if follow else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {','.join(map(str, self._seeds.addresses))}>"

    add_job = command(adding.add_job)
    add_job_with = command(adding.add_job_with)
    add_once = command(adding.add_once)
    enqueue = command(adding.enqueue)
    ack_jobs = command(requests.ack_jobs)
    fast_ack = command(requests.fast_ack)
    nack = command(requests.nack)
    working = command(requests.working)
    enqueue_jobs = command(requests.enqueue_jobs)
    dequeue_jobs = command(requests.dequeue_jobs)
    delete_jobs = command(requests.delete_jobs)
    show = command(requests.show)
    job_scan = listing(scans.job_scan)

    queue_length = command(requests.queue_length)
    queue_peek = command(requests.queue_peek)
    queue_stat = command(requests.queue_stat)
    queue_scan = listing(scans.queue_scan)
    pause = command(requests.pause)
    queue_move = command(moving.queue_move)
    queue_counts = command(counting.queue_counts)
    list_queues = command(counting.list_queues)
    flush_queue = command(counting.flush_queue)
    wait_job = command(counting.wait_job)

    policy_set = command(policies.policy_set)
    policy_del = command(policies.policy_del)
    policy_repair = command(policies.policy_repair)
    policy_list = command(policies.policy_list)
    policy_get = command(policies.policy_get)

    schedule_set = command(schedules.schedule_set)
    schedule_list = command(schedules.schedule_list)
    schedule_get = command(schedules.schedule_get)
    schedule_del = command(schedules.schedule_del)
    schedule_repair = command(schedules.schedule_repair)
    schedule_pause = command(schedules.schedule_pause)
    schedule_resume = command(schedules.schedule_resume)
    schedule_skip = command(schedules.schedule_skip)
    schedule_run = command(schedules.schedule_run)

    hello = command(requests.hello)
    info = command(requests.info)
    ping = command(requests.ping)
    execute = command(requests.execute)
    cluster_info = command(requests.cluster_info)
    cluster_nodes = command(requests.cluster_nodes)
    cluster_my_id = command(requests.cluster_my_id)
    cluster_meet = command(requests.cluster_meet)
    cluster_forget = command(requests.cluster_forget)
    cluster_leaving = command(requests.cluster_leaving)
    cluster_reset = command(requests.cluster_reset)
    cluster_save_config = command(requests.cluster_save_config)

    @operation
    def address(self) -> Steps[Address]:
        """The address of the current node."""
        found: Address = yield lambda session: session.address()
        return found

    @operation
    def auth(self, password: str) -> Steps[None]:
        """AUTH: use this password from now on, and reconnect with it now.

        :raises AuthenticationRefused: the password is wrong.
        """
        yield lambda session: session.set_password(password)
        yield from anywhere(requests.ping())

    @operation
    def close(self) -> Steps[None]:
        """Close the connections. Requests under way fail, but not those of other threads. A later
        request opens new connections."""
        yield lambda session: session.close()
