"""Hold the card and the answers of a remote agent, and say these to a model. Pure."""

from collections.abc import Sequence

import msgspec

_STATES = {
    "completed": "",
    "input-required": "It needs an answer before it continues.",
    "auth-required": "It needs a permission that a person has to give it.",
    "failed": "It failed.",
    "rejected": "It refused.",
    "canceled": "It was cancelled.",
}
"""Words for the model, by states of a task."""


class ReadCard(msgspec.Struct, frozen=True):
    """Card of a remote agent, as far as people are shown it."""

    name: str
    description: str
    skills: Sequence[str]
    url: str
    """Address at which it is spoken to."""
    protocol: str


class RemoteReply(msgspec.Struct, frozen=True):
    """Answer of a remote agent."""

    text: str
    state: str = "completed"
    task: str = ""
    """Id of its task; empty: it made none."""
    context: str = ""
    """Id of the conversation, with which the next message continues it; empty: there is none."""

    @property
    def ok(self) -> bool:
        """False if the remote agent did not do what it was asked."""
        return self.state not in ("failed", "rejected", "canceled")

    def for_model(self) -> str:
        """Return the answer as text, with the ids with which a model continues."""
        said = _STATES.get(self.state, f"Its task is in the state {self.state}.")
        ids = [f"context {self.context!r}"] if self.context else []
        ids += [f"task {self.task!r}"] if self.task and self.state in ("input-required", "auth-required") else []
        hint = f"(To continue: {', '.join(ids)}.)" if ids else ""
        return "\n".join(filter(None, (self.text, said, hint))) or "It said nothing."
