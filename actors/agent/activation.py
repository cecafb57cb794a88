"""Where an agent sits while it is in memory: a log and an engine of its own, or a place among many."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from everlog.actors.agent.local_journal import LocalJournal
from everlog.actors.ports.journal import Journal
from everlog.projections import DERIVER, Projections, activate
from everlog.store import Log, LogReader, TornTail, seal_if_due


class Activation:
    """What an agent works with as long as it is in memory."""

    __slots__ = ("cut", "head", "journal", "projections", "unsealed")

    def __init__(self, journal: Journal, head: int, projections: Projections) -> None:
        self.journal = journal
        self.head = head
        """Seq of the last record when it took the seat."""
        self.projections = projections
        """What its functions search."""
        self.cut: TornTail | None = None
        """The damaged tail that was cut off the log when it was opened."""
        self.unsealed = ""
        """Why the log could not be sealed, or an erasure not be carried out; empty if it could."""


OpenLog = Callable[[str, str, bool], Log]
"""Opens the log that an agent is in: name, what a person reads meanwhile, whether a live owner is fenced."""

ActivationFactory = Callable[[str, str, bool], AbstractAsyncContextManager[Activation]]
"""Gives an agent its seat: name, what a person reads in another process meanwhile, whether a live owner is fenced."""


def separate_logs(open_log: OpenLog, reader: Callable[[str, Log], LogReader]) -> ActivationFactory:
    """Each agent opens its own log, and has it to itself. `reader`: through all partitions that it was in."""
    return partial(_Alone, open_log, reader)


class _Alone:
    """A log and an engine for one agent. No generator: it must be possible to abandon it, as a killed process does."""

    def __init__(
        self,
        open_log: OpenLog,
        reader: Callable[[str, Log], LogReader],
        agent_id: str,
        command: str,
        take_over: bool,
    ) -> None:
        self._reader = reader
        self._open = partial(open_log, agent_id, command, take_over)
        self._agent_id = agent_id

    async def __aenter__(self) -> Activation:
        self._log = log = self._open()
        self._projections = Projections()
        seated = False
        try:
            unsealed = seal_if_due(log, DERIVER)  # of an owner that was killed
            reader = self._reader(self._agent_id, log)
            activate(self._projections, reader, self._agent_id)
            self._activation = Activation(
                LocalJournal(log, self._projections, reader), log.head(self._agent_id).seq, self._projections
            )
            self._activation.cut = getattr(log, "cut", None)
            self._activation.unsealed = unsealed or getattr(log, "unfinished", "")
            seated = True
        finally:
            if not seated:
                self._close()
        return self._activation

    async def __aexit__(self, *_: object) -> None:
        self._activation.unsealed = self._close()

    def _close(self) -> str:
        self._projections.close()
        try:
            return seal_if_due(self._log, DERIVER)
        finally:
            self._log.close()
