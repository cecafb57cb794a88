"""An agent to talk to, wherever it runs, and what comes back of it."""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Protocol

from everlog.actors.agent import commands
from everlog.actors.agent.commands import Command, Done, Heard, Means, Opened
from everlog.actors.agent.decide import PRESSURE_WARNING
from everlog.actors.agent.importing import Imported, Said
from everlog.actors.agent.setup import Settings
from everlog.actors.agent.writing import Listener
from everlog.actors.formats.preview import Preview
from everlog.actors.hosting.many import Order, Outcome
from everlog.actors.memory.blocks import Blocks
from everlog.actors.ports.constants import BLOCK_CHARS, MICROSECONDS, RESENDS_MAX
from everlog.actors.ports.effects import Clock, Ids
from everlog.events import BadInput, Event, Heartbeat, HostLost, Record, SystemAlert, UsageError, UserMessage


class Runtime(Protocol):
    """Where agents run."""

    @property
    def blocks(self) -> Blocks:
        """The shared blocks of the store, as whoever owns them here gives them."""
        ...

    def perform(self, agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[Heard]:
        """Have the agent's host carry out a command; it goes on when nobody listens any more.

        `seen`: the last seq that was heard of this command, when it is sent again. Raises EverlogError; HostLost when
        the host is gone and nobody knows how far it came.
        """
        ...

    def refuse_unlendable(self, means: Means | None) -> None:
        """Raises BadInput for functions that cannot be had where agents run."""
        ...

    def perform_many(self, orders: Sequence[Order]) -> AsyncIterator[Sequence[Outcome]]:
        """Have many commands carried out at once; what became of each, as it does, many together. Raises ClusterError.

        The number of an order is its place in `orders`. An outcome may be HostLost: nobody knows how far it came.
        """
        ...

    async def release(self, agent_id: str) -> bool:
        """Let go of an agent, so that another process can have it; False if it is at work."""
        ...

    async def close(self) -> None:
        """Stop talking to hosts; those in this process let go of their agents."""
        ...


Foretell = Callable[[Preview], None]
"""Is told what a reply says while it is still coming."""


class Answer:
    """What follows from a command: iterate over it as it happens, or await it for all of it at once.

    `async for record in answer` gives each Record as it becomes durable; `await answer` the list of them. Nothing is
    sent before either is done. When it has ended, `value` is what the command gives back.
    """

    def __init__(self, heard: AsyncIterator[Heard], listen: Listener | None, preview: Foretell | None = None) -> None:
        self._heard = heard
        self._listen = listen
        self._preview = preview
        self._used = False
        self.value: Any = None

    async def __aiter__(self) -> AsyncIterator[Record]:
        if self._used:
            raise UsageError("An answer is heard once; send again for another.")
        self._used = True
        async for heard in self._heard:
            if isinstance(heard, Done):
                self.value = heard.value
                continue
            if isinstance(heard, Preview):
                if self._preview is not None:
                    self._preview(heard)
                continue
            if self._listen is not None:
                self._listen(heard)
            for record in heard:
                yield record

    def __await__(self) -> Generator[Any, None, list[Record]]:
        return self._all().__await__()

    async def _all(self) -> list[Record]:
        return [record async for record in self]


class AgentRef:
    """An agent to talk to. It may run here or far away, and be let go of in between: it is its log."""

    def __init__(
        self,
        agent_id: str,
        runtime: Runtime,
        *,
        means: Means | None,
        clock: Clock,
        ids: Ids,
        listen: Listener | None,
        refuse_deletion: Callable[[str], None] | None = None,
    ) -> None:
        """`refuse_deletion` raises BadInput for the name of an agent that is not to be ended, as others live on it."""
        self.agent_id = agent_id
        self.opened: Opened
        """How it was when it was opened, or set up last."""
        self._runtime = runtime
        self._means = means
        self._clock = clock
        self._ids = ids
        self._listen = listen
        self._refuse_deletion = refuse_deletion

    def send(
        self, said: str | Event, *, name: str = "", event_id: str | None = None, preview: Foretell | None = None
    ) -> Answer:
        """Say something, or give another input. The same `event_id`, a UUIDv7, counts once, however often it is sent.

        `name`: who of several users says it. `preview` is told what replies say while they are coming, if the agent is
        set up to ask for a stream; a record says what was said in the end. Raises ModelError if the model failed (what
        was said is kept), UsageError, StoreError, HostLost.
        """
        event = UserMessage(text=said, name=name) if isinstance(said, str) else said
        say = commands.Say(id=event_id or self._new_id(), means=self._means, event=event, preview=preview is not None)
        return self._do(say, preview)

    def heartbeat(self, text: str = "", *, preview: Foretell | None = None) -> Answer:
        """Run the agent once without a user."""
        return self.send(Heartbeat(text=text, reason="manual"), preview=preview)

    def resume(self, *, preview: Foretell | None = None) -> Answer:
        """Finish the turns that are not finished."""
        resume = commands.Resume(id=self._new_id(), means=self._means, preview=preview is not None)
        return self._do(resume, preview)

    async def cancel(self, *, every: bool = False) -> Sequence[int]:
        """End the turn that runs, at whatever it is doing, or `every` one that is not finished; their numbers.

        None where no turn is open. What a turn has committed stays, and nothing else of it is kept.
        """
        ended: Sequence[int] = await self._value(commands.Cancel(id=self._new_id(), every=every))
        return ended

    def watch(self) -> Answer:
        """What happens without being asked for here: timed heartbeats, and what comes of them. It never ends.

        The agent stays in memory meanwhile. Raises HostLost where its process dies: watch it again.
        """
        return Answer(self._watched(), self._listen)

    def warn(self, *, preview: Foretell | None = None) -> Answer:
        """Warn the agent of memory pressure by hand."""
        return self.send(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"), preview=preview)

    def retry(self, *, preview: Foretell | None = None) -> Answer:
        """Hide the newest turn that a user opened, and what came after it, and say the same again."""
        return self._do(commands.Retry(id=self._new_id(), means=self._means, preview=preview is not None), preview)

    async def hide(self, turns: int = 1) -> Sequence[int]:
        """Hide the newest turns, 1 or more, from the context; their numbers. Nothing is deleted."""
        hidden: Sequence[int] = await self._value(commands.Hide(id=self._new_id(), means=self._means, turns=turns))
        return hidden

    async def rethink(self, text: str) -> None:
        """Put other words in the place of the agent's last monologue."""
        await self._value(commands.Rethink(id=self._new_id(), means=self._means, text=text))

    async def summarize(self) -> bool:
        """Summarize the oldest part of the context now; False if there is nothing to summarize."""
        return bool(await self._value(commands.Summarize(id=self._new_id(), means=self._means)))

    async def expand(self) -> bool:
        """Take the newest summary back; False if there is none."""
        return bool(await self._value(commands.Expand(id=self._new_id(), means=self._means)))

    async def configure(self, settings: Settings) -> Opened:
        """Set the agent up anew."""
        self.opened = await self._value(commands.Configure(id=self._new_id(), means=self._means, settings=settings))
        return self.opened

    async def take_in(self, said: Sequence[Said]) -> Imported:
        """Import a past conversation: one commit, no turn."""
        imported: Imported = await self._value(commands.TakeIn(id=self._new_id(), means=self._means, said=said))
        return imported

    async def set_timer(self, name: str, text: str = "", *, due_at: int | None = None, every_s: int = 0) -> str:
        """Have heartbeats sent at `due_at` (microseconds UTC; None: after `every_s`), then every `every_s` seconds.

        Gives back the timer's name; an empty one is chosen. `every_s` 0 is once. One of the same name is replaced.
        """
        if not isinstance(every_s, int) or (due_at is None and not every_s):
            raise BadInput("A timer has a time (`due_at`), or a number of seconds between its heartbeats (`every_s`).")
        at = self._clock.now() + every_s * MICROSECONDS if due_at is None else due_at
        command = commands.SetTimer(
            id=self._new_id(), means=self._means, timer=name, text=text, due_at=at, every_s=every_s
        )
        return str(await self._value(command))

    async def cancel_timer(self, name: str) -> bool:
        """Send no more heartbeats for this timer; False if there is none of that name."""
        return bool(await self._value(commands.CancelTimer(id=self._new_id(), means=self._means, timer=name)))

    async def keep(self, text: str, tags: Sequence[str] = ()) -> str:
        """Keep a text in archival memory, as the agent does itself. Gives back the id of the memory.

        It is that of an older one where that holds exactly this text: nothing is kept twice. Raises BadInput for a text
        that is empty or too long, or for such tags.
        """
        return str(await self._value(commands.Keep(id=self._new_id(), means=self._means, text=text, tags=tags)))

    async def keep_all(self, texts: Sequence[str], tags: Sequence[str] = ()) -> Sequence[str]:
        """Keep many texts at once: all of them, in one commit, or none. Gives back their ids, as `keep` does of one."""
        command = commands.KeepAll(id=self._new_id(), means=self._means, texts=texts, tags=tags)
        kept: Sequence[str] = await self._value(command)
        return kept

    async def amend(self, memory_id: str, text: str, tags: Sequence[str] | None = None) -> None:
        """Put another text in the place of a memory; `tags` None: those that it has stay.

        Raises BadInput where there is no such memory.
        """
        await self._value(
            commands.Amend(id=self._new_id(), means=self._means, memory_id=memory_id, text=text, tags=tags)
        )

    async def forget(self, memory_id: str) -> None:
        """Delete a memory; the log still says what it was. Raises BadInput where there is no such memory."""
        await self._value(commands.Forget(id=self._new_id(), means=self._means, memory_id=memory_id))

    async def add_block(
        self, label: str, value: str = "", *, limit: int = BLOCK_CHARS, description: str = "", read_only: bool = False
    ) -> None:
        """Give it another memory block, of up to `limit` characters. Raises BadInput where there is one of that label.

        `description`: what it is for, in words for the model. `read_only`: the agent sees it and cannot edit it.
        """
        await self._value(
            commands.AddBlock(
                id=self._new_id(),
                means=self._means,
                label=label,
                value=value,
                limit=limit,
                description=description,
                read_only=read_only,
            )
        )

    async def change_block(
        self,
        label: str,
        value: str | None = None,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> bool:
        """Change a memory block, one that is read-only too; what is None stays. False if nothing is otherwise.

        Raises BadInput where there is none, or where the value is longer than the limit.
        """
        command = commands.ChangeBlock(
            id=self._new_id(),
            means=self._means,
            label=label,
            value=value,
            limit=limit,
            description=description,
            read_only=read_only,
        )
        return bool(await self._value(command))

    async def remove_block(self, label: str) -> None:
        """Take a memory block out of core memory; the log still has it. Raises BadInput where there is none."""
        await self._value(commands.RemoveBlock(id=self._new_id(), means=self._means, label=label))

    async def attach(self, source: str) -> bool:
        """Let it search the documents of a source, which may be loaded later; False if it could already."""
        return bool(await self._value(commands.Attach(id=self._new_id(), means=self._means, source=source)))

    async def detach(self, source: str) -> bool:
        """Keep the documents of a source from it; False if it could not search them."""
        return bool(await self._value(commands.Detach(id=self._new_id(), means=self._means, source=source)))

    async def follow(self, block: str, label: str = "") -> bool:
        """Have a shared block in its core memory, as the memory block `label` (empty: of the same name).

        False if it is there already. Raises BadInput where there is no such block, or the label is taken.
        """
        return bool(await self._value(commands.Follow(id=self._new_id(), means=self._means, block=block, label=label)))

    async def unfollow(self, block: str) -> bool:
        """Take a shared block out of its core memory; False if it is not there. The block stays for others."""
        return bool(await self._value(commands.Unfollow(id=self._new_id(), means=self._means, block=block)))

    async def move(self, *, shared: bool) -> None:
        """Let it live elsewhere: among others in its shard, or with a host and a log of its own. Its log goes on.

        Raises Busy while it is at work, BadInput where the store has no shards.
        """
        await self._value(commands.Move(id=self._new_id(), means=self._means, shared=shared))

    async def delete(self) -> None:
        """End the agent: its name can be created again, its records stay until they are erased.

        Raises BadInput while it has forks that live; `AgentSystem.delete` can end them with it.
        """
        if self._refuse_deletion is not None:
            self._refuse_deletion(self.agent_id)
        await self._value(commands.Delete(id=self._new_id(), means=self._means))

    async def release(self) -> bool:
        """Let go of it now, so that another process can have it; False if it is at work."""
        return await self._runtime.release(self.agent_id)

    async def open(
        self, settings: Settings, *, create: bool, take_over: bool, command: str, as_it_is: bool = False
    ) -> None:
        """Bring it into memory; `System.agent` does so."""
        means = self._means if as_it_is else self._means or Means()  # what others lent it stays, as it is
        wanted = commands.Open(
            id=self._new_id(),
            means=means,
            settings=settings,
            create=create,
            take_over=take_over,
            as_it_is=as_it_is,
            command=command,
        )
        self.opened = await self._value(wanted)

    def _new_id(self) -> str:
        return self._ids.new(self._clock.now())

    def _do(self, command: Command, preview: Foretell | None = None) -> Answer:
        return Answer(self._sent(command), self._listen, preview)

    async def _watched(self) -> AsyncIterator[Heard]:
        since = self.opened.head  # a timer may have gone off before anybody could watch
        while True:
            command = commands.Watch(id=self._new_id(), means=self._means)
            async for heard in self._runtime.perform(self.agent_id, command, since):
                if isinstance(heard, Done):
                    since = heard.value  # what happens until it is watched again is told then
                else:
                    yield heard

    async def _value(self, command: Command) -> Any:
        answer = self._do(command)
        await answer
        return answer.value

    async def _sent(self, command: Command) -> AsyncIterator[Heard]:
        """What a command leads to. Where its host died it is sent again: its id makes it count once."""
        seen, sent = 0, 0
        told: Preview | None = None
        while True:
            sent += 1
            try:
                async for heard in self._runtime.perform(self.agent_id, command, seen):
                    if isinstance(heard, Preview):
                        told = heard
                    elif not isinstance(heard, Done):
                        heard = [record for record in heard if record.seq > seen]
                        seen = max((record.seq for record in heard), default=seen)
                    yield heard
                return
            except HostLost:
                if not command.repeats or sent > RESENDS_MAX:
                    raise
                if told is not None:  # who takes the turn up asks the model anew
                    yield Preview(told.turn, told.step, "restart")
                    told = None
