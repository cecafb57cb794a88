"""Tell the user that a model is waited for, when nothing has come from it for a while.

Used by `everlog send` and `everlog chat`. The notice goes to stderr, once for each command: output that another program
reads stays as it is.
"""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import suppress

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_system import AgentSystem
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.models.model_catalogue import place_at, request_url
from everlog.actors.models.model_types import plain_url
from everlog.actors.runtime import Run
from everlog.events import EverlogError, FunctionStarted, Record
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.server_choice import server_of

NOTICE_S = 20
"""Seconds without a record and without a piece of a reply after which the notice is printed."""


def endpoint_of(args: Namespace) -> str | None:
    """Return the endpoint that the arguments name; empty: none, and None if a server knows it."""
    return None if server_of(args) is not None else args.base_url or ""


class WaitingNotice:
    """News of one command, and the notice if there are none."""

    def __init__(self, system: AgentSystem, name: str, world: CommandEnvironment, base_url: str | None = "") -> None:
        """Watch the agent `name`. `base_url`: endpoint of models without a description; None: a server asks them."""
        self.base_url = base_url
        self._system = system
        self._name = name
        self._world = world
        self._news = 0
        self._runs_function = False

    async def over(self, answer: Run) -> AsyncIterator[Record]:
        """Yield the records of `answer`, and print the notice once if none come for NOTICE_S seconds."""
        self._runs_function = False
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            async for record in answer:
                self.heard()
                self._runs_function = record.type == FunctionStarted.kind
                yield record
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    def heard(self, preview: Preview | None = None) -> None:
        """Note that something came: a record, a piece of a reply, or the beginning of a call."""
        self._news += 1
        self._runs_function = preview is not None and preview.kind in ("call", "progress")

    async def _watch(self) -> None:
        """Print the notice after NOTICE_S seconds without news, unless a function runs, whose time is its own."""
        while True:
            before = self._news
            await self._world.patience(NOTICE_S)
            if self._news == before and not self._runs_function:
                complain(f"waiting for the model {self._model()}, {NOTICE_S} s")
                return

    def _model(self) -> str:
        """Return the agent's model and its address, as far as they are known."""
        try:
            with LocalSystem(self._system.store).view(self._name) as view:
                model = view.context().config.model
            if self.base_url is None:
                return f"{model} of the server"
            url = place_at(self._system.store.root, model, self.base_url).url
        except EverlogError:  # the command itself reports it
            return f"of {self._name!r}"
        return f"{model} at {plain_url(request_url(url))}"
