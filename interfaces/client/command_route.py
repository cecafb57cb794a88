"""Define `CommandRoute`: the request for one command, and how its answer becomes the command's value. Pure.

Used by the tables `command_routes` and `memory_routes`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from everlog.actors.agent.commands import Command
from everlog.interfaces.client.server_address import WireRequest, encoded
from everlog.interfaces.wire.agents import Done
from everlog.interfaces.wire.runs import Changed


class CommandRoute(NamedTuple):
    """Request for a command."""

    method: str
    path: str
    """Path below the agent."""
    body: Any = None
    answer: Any = None
    """Shape of the answer; None: a stream of the run."""
    value: Callable[[Any], Any] = lambda _: None
    """Makes the value of the command from the answer."""
    missing: Any = None
    """Value of the command if the agent has no such thing; None: that is an error."""

    @property
    def streams(self) -> bool:
        """True if the answer is the stream of a run."""
        return self.answer is None

    def request(self, agent_id: str, id: str) -> WireRequest:
        """Return the request. `id`: of the command."""
        return WireRequest(self.method, f"/agents/{encoded(agent_id)}{self.path}", self.body, id, streams=self.streams)


def changes(command: Command, *left_out: str) -> dict[str, Any]:
    """Return the fields of a command itself that are not None, by name."""
    names = [name for name in command.__struct_fields__ if name not in Command.__struct_fields__ + left_out]
    return {name: value for name in names if (value := getattr(command, name)) is not None}


def is_changed(answer: Changed) -> bool:
    """Return the value of a command that may find nothing to do."""
    return answer.changed


def is_done(answer: Done) -> bool:
    """Return the value of a command that may fail to do its work."""
    return answer.done
