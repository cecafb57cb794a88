"""Resources of an agent in memory: a log and a query engine, of its own or shared with many agents.

Used by `local_system.py`, and by the hosts in `actors/hosting` and `actors/cluster`. Every activation must be closed:
closing seals the log and releases it for other processes.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial

import msgspec

from everlog.actors.agent.agent_setup import ModelDefaultsLookup
from everlog.actors.agent.local_journal import LocalJournal
from everlog.actors.functions.tools import Tool
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.ports.effects import Model, Searcher
from everlog.actors.ports.journal import Journal
from everlog.actors.prompt.context import Context
from everlog.projections import DERIVER, Projections, activate
from everlog.store import Log, LogReader, TornTail, seal_if_due


class AgentResources(msgspec.Struct, frozen=True, kw_only=True):
    """Dependencies of an agent, passed in by its host."""

    models: Callable[[str], Model]
    """Returns the model of a name."""
    tools: Mapping[str, Tool]
    """All functions that an agent may have, by name."""
    searcher: Callable[[Context | None, int], Searcher]
    """Makes the searcher of a turn from its context; context None: the searcher reads up to the head."""
    blocks: BlockClient
    """Client for the shared memory blocks."""
    known: ModelDefaultsLookup | None = None
    """Looks up the defaults of a model by its name; None: no model has defaults."""


class Activation:
    """Resources of one agent as long as it is in memory."""

    __slots__ = ("cut", "head", "journal", "projections", "unsealed")

    def __init__(self, journal: Journal, head: int, projections: Projections) -> None:
        self.journal = journal
        self.head = head
        """Seq of the last record at activation."""
        self.projections = projections
        """Query engine that the agent's functions search."""
        self.cut: TornTail | None = None
        """Damaged tail that was cut off the log when the log was opened."""
        self.unsealed = ""
        """Reason that the log could not be sealed, or an erasure not be carried out; empty: neither failed."""


OpenLog = Callable[[str, str, bool], Log]
"""Opens an agent's log: agent name, command shown to other processes as the owner's, True to fence a live owner."""

ActivationFactory = Callable[[str, str, bool], AbstractAsyncContextManager[Activation]]
"""Activates an agent, as a context manager. Arguments as for `OpenLog`."""


def separate_logs(open_log: OpenLog, reader: Callable[[str, Log], LogReader]) -> ActivationFactory:
    """Return a factory by which each agent opens a log of its own. `reader` reads all partitions the agent was in."""
    return partial(_SeparateActivation, open_log, reader)


class _SeparateActivation:
    """A log and a query engine for one agent. Not a generator: an abandoned activation, as of a killed process, must
    not be cleaned up by garbage collection.
    """

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
            unsealed = seal_if_due(log, DERIVER)  # a killed owner may have left frames to seal
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
