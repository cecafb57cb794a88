"""Run commands of agents on a server: the protocol `Runtime` over HTTP.

So the handles of agents, runs and replies are the same here as for agents in this process. A run is read as a stream;
a stream that breaks is resumed after the last record that arrived, each record once, on whichever server answers.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from copy import copy
from typing import Any, Self

from everlog.actors.agent import commands
from everlog.actors.agent.commands import Command, CommandResult, SessionCapabilities, StreamItem
from everlog.actors.agent.conversation_import import ImportReport
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.hosting.command_batch import BatchCommand, BatchOutcome, outcomes
from everlog.actors.memory.shared_block_rules import BlockClient
from everlog.actors.ports.ports import Ports
from everlog.actors.runtime import Placement
from everlog.events import (
    BadInput,
    ClusterError,
    EverlogError,
    Heartbeat,
    HostLost,
    ModelError,
    Record,
    UnknownAgent,
    event_of,
)
from everlog.interfaces.client.command_route import CommandRoute
from everlog.interfaces.client.command_routes import lines_of, opened_of, route_of, settings_shape
from everlog.interfaces.client.remote_blocks import RemoteBlocks
from everlog.interfaces.client.run_stream import RunStream
from everlog.interfaces.client.server_address import WireRequest, decoded, is_missing, path_of
from everlog.interfaces.client.server_channel import ServerChannel, StreamCut
from everlog.interfaces.wire import agents as agent_shapes
from everlog.interfaces.wire.memory import RecordPage
from everlog.interfaces.wire.records import HttpRecord, record_of
from everlog.interfaces.wire.runs import RunRecordsShape
from everlog.interfaces.wire.transfer import ImportedShape

AT_ONCE_MAX = 64
"""Most commands of one batch that are under way together."""
IMPORTED = ("user_message", "message_sent", "summary")
"""Types of the records of an import."""
WATCHED = "timer"
"""Reason of the heartbeats whose turns no caller asked for."""


class RemoteRuntime:
    """Agents of the store of a server."""

    def __init__(self, channel: ServerChannel, ports: Ports) -> None:
        self.channel = channel
        self._placement: Placement | None = None
        self._ports = ports
        self.blocks: BlockClient = RemoteBlocks()
        """Client that refuses: shared blocks have routes of their own."""

    def placing(self, placement: Placement | None) -> Self:
        """Return this runtime with a placement for the agents that it creates; None: the server decides."""
        other = copy(self)
        other._placement = placement  # noqa: SLF001 - its own class
        return other

    def check_capabilities(self, capabilities: SessionCapabilities | None) -> None:
        """Raise BadInput for functions of this process: agents run where the server runs."""
        if capabilities is not None and capabilities.same != SessionCapabilities().same:
            raise BadInput(
                "Functions, grants and the endpoint of models belong to the process that runs agents, which is the "
                "server: start `everlog serve` with them. Nothing was sent."
            )

    async def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        """Have the server carry out a command, and yield what follows; see `Runtime.perform`."""
        self.check_capabilities(command.capabilities)
        if isinstance(command, commands.WatchAgent):
            async for item in self._watched(agent_id, seen):
                yield item
        elif isinstance(command, commands.OpenAgent):
            yield CommandResult(await self.opened(agent_id, command))
        elif isinstance(command, commands.ImportConversation):
            yield CommandResult(await self._imported(agent_id, command))
        else:
            route = route_of(command)
            if route.streams:
                async for item in self._run(agent_id, command, route, seen):
                    yield item
            else:
                request = route.request(agent_id, command.id)
                try:
                    answer = await self.channel.call(request, route.answer, repeats=command.repeats)
                except EverlogError as error:
                    if route.missing is None or isinstance(error, UnknownAgent) or not is_missing(error):
                        raise
                    yield CommandResult(route.missing)
                else:
                    yield CommandResult(route.value(answer))

    async def opened(self, agent_id: str, command: commands.OpenAgent) -> commands.OpenReport:
        """Open an agent, or create it. Settings are sent only if there are any: an agent that exists stays as it is.

        So a key with the role `talk` opens the agents that there are.
        """
        settings = settings_shape(command.settings)
        path = f"/agents{path_of(agent_id)}"
        if not settings or command.keep_configuration:
            try:
                shape = await self.channel.call(WireRequest("GET", path), agent_shapes.AgentShape)
            except EverlogError as error:
                if not (command.create and is_missing(error)):
                    raise
            else:
                if shape.settings and not (shape.deleted and command.create):
                    return commands.OpenReport(
                        born=False, model=shape.settings["model"], zone=shape.settings["zone"], head=shape.head,
                        turn=shape.turn, waiting=shape.waiting,
                    )  # fmt: skip
        if command.create:
            body: Any = {"name": agent_id, "settings": settings, "placement": self._placement}
            request = WireRequest("POST", "/agents", body, command.id)
        else:
            request = WireRequest("PATCH", path, agent_shapes.ConfigureBody(settings=settings), command.id)
        return opened_of(await self.channel.call(request, agent_shapes.AgentReport))

    async def _imported(self, agent_id: str, command: commands.ImportConversation) -> ImportReport:
        """Import a past conversation, and return its records."""
        path = f"/agents{path_of(agent_id)}"
        before = await self.channel.call(
            WireRequest("GET", f"{path}/records", query=[("after", str(2**53)), ("limit", "1")]), RecordPage
        )
        request = WireRequest("POST", f"{path}/imports", {"messages": lines_of(command.said)}, command.id)
        shape = await self.channel.call(request, ImportedShape)  # a repeat imports once: the request has its id
        records: list[Record] = []
        after: int | None = before.as_of
        while after is not None:
            query = [("after", str(after)), ("limit", "1000"), *(("type", kind) for kind in IMPORTED)]
            page = await self.channel.call(WireRequest("GET", f"{path}/records", query=query), RecordPage)
            records += map(record_of, page.records)
            after = page.next
        delayed = None if shape.delayed is None else ModelError(shape.delayed, kind="unreachable")
        return ImportReport(records, delayed, shape.summaries)

    def perform_many(self, orders: Sequence[BatchCommand]) -> AsyncIterator[Sequence[BatchOutcome]]:
        """Carry out many commands at once; see `Runtime.perform_many`. Those to one agent are sent in order."""
        turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        room = asyncio.Semaphore(AT_ONCE_MAX)

        async def collect(agent_id: str, command: Command, collected: list[Record]) -> Any:
            value = None
            async with turns[agent_id], room:
                async for item in self.perform(agent_id, command):
                    if isinstance(item, CommandResult):
                        value = item.value
                    elif not isinstance(item, Preview):
                        collected.extend(item)
            return value

        return outcomes(collect, orders)

    async def unload(self, agent_id: str) -> bool:
        """Unload an agent. Return False if it is at work."""
        request = WireRequest("POST", f"/agents{path_of(agent_id)}/unload", {})
        return (await self.channel.call(request, agent_shapes.Done)).done

    async def close(self) -> None:
        """Close the connections. Agents continue what they do."""
        await self.channel.close()

    async def _run(self, agent_id: str, command: Command, route: CommandRoute, seen: int) -> AsyncIterator[StreamItem]:
        """Yield the stream of a run until its end, over as many connections as it takes."""
        request = route.request(agent_id, command.id)
        resumed = WireRequest("GET", f"/agents{path_of(agent_id, 'runs', command.id, 'stream')}", streams=True)
        run, patience = RunStream(command.id, seen), self.channel.patience()
        wants_previews = bool(getattr(command, "preview", False))
        may_resume = False
        while True:
            resuming = may_resume
            failure: EverlogError = HostLost(f"The stream of the run {command.id} ended before the run.")
            try:
                async with self.channel.events(resumed._replace(after=run.seen) if resuming else request) as events:
                    # Only an input has a run under its own id; anything else is sent again, and joins what it began.
                    may_resume = isinstance(command, (commands.SendInput, commands.DecideApproval))
                    async for event in events:
                        item = run.take(event)
                        if item is not None:
                            patience.renew()
                            if wants_previews or not isinstance(item, Preview):
                                yield item
                        if run.is_over:
                            break
                    failure = run.failure or failure
            except StreamCut as cut:
                failure = cut.error
            except EverlogError as error:
                if not (resuming and is_missing(error)):
                    if not run.may_return(error):
                        raise
                    failure = error
                may_resume = False  # the input never arrived: it is sent again
            if run.is_over:
                yield CommandResult(await self._input_of(agent_id, command.id, run))
                return
            await patience.wait(failure)
            restart = run.restarted()
            if restart is not None and wants_previews:
                yield restart

    async def _input_of(self, agent_id: str, run_id: str, run: RunStream) -> Any:
        """Return the record of the input of a run that has ended, which an earlier call may have received."""
        if run.input is not None or not run.was_resumed:
            return run.input
        path = f"/agents{path_of(agent_id, 'runs', run_id, 'records')}"
        try:
            found = await self.channel.call(WireRequest("GET", path), RunRecordsShape)
        except EverlogError as error:
            if is_missing(error):
                return None
            raise
        return next((record_of(shape) for shape in found.records if shape.event_id == run_id), None)

    async def _watched(self, agent_id: str, since: int) -> AsyncIterator[StreamItem]:
        """Yield the records after a seq that no caller asked for: heartbeats of timers, and the turns that they begin.

        Ends with the stream; the caller renews the watch where it ended.
        """
        path, last, turns = f"/agents{path_of(agent_id)}/stream", since, set[int]()
        patience = self.channel.patience()
        while True:
            failure: EverlogError = ClusterError("The stream of the agent ended.")
            try:
                async with self.channel.events(WireRequest("GET", path, after=last, streams=True)) as events:
                    async for event in events:
                        if event.kind != "record":
                            continue
                        patience.renew()
                        record = record_of(decoded(event.data, HttpRecord))
                        last = max(last, record.seq)
                        if _is_timed(record):
                            turns.add(record.turn)
                        if record.turn in turns:
                            yield [record]
            except StreamCut as cut:
                failure = cut.error
            await patience.wait(failure)


def _is_timed(record: Record) -> bool:
    if record.type != Heartbeat.kind:
        return False
    event = event_of(record)
    return isinstance(event, Heartbeat) and event.reason == WATCHED
