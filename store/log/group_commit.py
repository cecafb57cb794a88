"""Commit appends in groups, without a thread of its own: the calling threads take turns as leader.

A caller that finds no leader becomes the leader, takes all queued appends and commits them as one group, while the next
group gathers. A single caller has no overhead. The queue is limited and refuses appends when it is full.

Used by `file_log`. The mutex is not held during a commit, so that callers can queue meanwhile.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NoReturn

from everlog.events import Poisoned, StoreError
from everlog.store.base.contract import Commit
from everlog.store.base.store_constants import GROUP_APPENDS_MAX, GROUP_BYTES_MAX
from everlog.store.partition.append_rules import ValidatedAppend

AppendResult = Commit | StoreError
CommitFunction = Callable[[list[ValidatedAppend]], list[AppendResult]]


class _Ticket:
    """The appends of one waiting caller, and their results."""

    __slots__ = ("appends", "error", "results", "weight", "woken")

    def __init__(self, appends: Sequence[ValidatedAppend]) -> None:
        self.appends = appends
        self.weight = sum(append.weight for append in appends)
        self.results: list[AppendResult] | None = None
        self.error: StoreError | None = None
        self.woken: threading.Event | None = None

    @property
    def done(self) -> bool:
        return self.results is not None or self.error is not None


class GroupCommit:
    """Queue of appends in front of `commit`, which never runs twice at the same time."""

    def __init__(self, commit: CommitFunction, gather_s: float = 0) -> None:
        """Start with an empty queue. `commit` makes appends durable together and returns one result for each;
        StoreError fails all. Appends that waited for a commit wait `gather_s` seconds for others to join them.
        """
        self._gather_s = gather_s
        self._commit = commit
        self._mutex = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._waiting = 0
        self._led = False

    def submit(self, appends: Sequence[ValidatedAppend]) -> list[AppendResult]:
        """Return the results of `appends` once they are durable. Raises StoreError if the queue is full or the group
        failed.

        Appends above the limits of one group are committed as several groups, one after the other.
        """
        results: list[AppendResult] = []
        for part in _parts(appends):
            results += self._submit(_Ticket(part))
        return results

    def _submit(self, ticket: _Ticket) -> list[AppendResult]:
        with self._mutex:
            if self._waiting + len(ticket.appends) > GROUP_APPENDS_MAX:
                raise StoreError(
                    f"{self._waiting} appends are waiting for the disk and the limit is {GROUP_APPENDS_MAX}; nothing "
                    "of this append was stored. Send it again later, or send fewer at once."
                )
            if self._led:
                ticket.woken = threading.Event()
                self._queue.append(ticket)
                self._waiting += len(ticket.appends)
            self._led = True
        if ticket.woken is None:  # there was no leader, so the queue is empty
            self._lead(ticket, [ticket])
        else:
            ticket.woken.wait()
            if not ticket.done:
                if self._gather_s:  # there are several callers, and each commit costs a request
                    threading.Event().wait(self._gather_s)
                self._lead(ticket, self._gather())
        if ticket.error is not None:
            _raise_again(ticket.error)
        assert ticket.results is not None
        return ticket.results

    def _lead(self, own: _Ticket, group: list[_Ticket]) -> None:
        """Commit one group, wake its callers, and make the first waiting caller the leader."""
        try:
            self._commit_tickets(group)
        finally:
            with self._mutex:
                # The heir stays in the queue and gathers its group when it wakes, so that appends which arrive until
                # then join it. `_led` stays True meanwhile: a new caller must not lead a second group at the same time.
                heir = self._queue[0] if self._queue else None
                self._led = heir is not None
            for ticket in group:
                if not ticket.done:
                    ticket.error = Poisoned("the process was interrupted during the write; open the log again.")
                if ticket is not own and ticket.woken is not None:
                    ticket.woken.set()
            if heir is not None and heir.woken is not None:
                heir.woken.set()

    def _gather(self) -> list[_Ticket]:
        group: list[_Ticket] = []
        weight = 0
        with self._mutex:
            while self._queue and (not group or weight + self._queue[0].weight <= GROUP_BYTES_MAX):
                ticket = self._queue.popleft()
                self._waiting -= len(ticket.appends)
                weight += ticket.weight
                group.append(ticket)
        return group

    def _commit_tickets(self, group: list[_Ticket]) -> None:
        try:
            results = self._commit([append for ticket in group for append in ticket.appends])
        except StoreError as error:
            for ticket in group:
                ticket.error = error
            return
        start = 0
        for ticket in group:
            ticket.results = results[start : start + len(ticket.appends)]
            start += len(ticket.appends)


def _raise_again(error: StoreError) -> NoReturn:
    """Raise a copy of `error`: each waiting thread needs its own, or their tracebacks would mix."""
    raise type(error)(*error.args) from error


def _parts(appends: Sequence[ValidatedAppend]) -> list[Sequence[ValidatedAppend]]:
    """Split `appends` into as few parts as the limits of a group allow; a single append is always within them."""
    if len(appends) == 1:
        return [appends]
    parts: list[Sequence[ValidatedAppend]] = []
    start = weight = 0
    for position, append in enumerate(appends):
        if position > start and (weight + append.weight > GROUP_BYTES_MAX or position - start == GROUP_APPENDS_MAX):
            parts.append(appends[start:position])
            start, weight = position, 0
        weight += append.weight
    if start < len(appends):
        parts.append(appends[start:])
    return parts
