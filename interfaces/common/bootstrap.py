"""Make the system and the settings of an agent from the arguments of a command.

Used by every command that opens agents; `open_store` has what the others need. `model_choice` writes `args.base_url`,
so a command makes its settings before it opens agents.
"""

import asyncio
import importlib.util
import sys
import traceback
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.local_system import AgentServices, AgentView, LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system, place_of
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.archive.archive_service import LocalArchiveClient
from everlog.actors.cluster.ray_address import running
from everlog.actors.functions.extras import Grants
from everlog.actors.functions.tools import Tool
from everlog.actors.ports.agent_constants import BLOCK_CHARS, BLOCK_CHARS_MAX
from everlog.actors.ports.effects import ArchiveClient, Model
from everlog.actors.ports.ports import Ports
from everlog.actors.prompt import presets
from everlog.events import BadInput, Fenced
from everlog.interfaces.common import own_presets
from everlog.interfaces.common.agent_defaults import fill_in_defaults, placement_of
from everlog.interfaces.common.as_of import moment_of_option
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of, tell_deleted, text_of, warn, warn_of_damage
from everlog.interfaces.common.server_choice import ChosenServer, server_of
from everlog.interfaces.common.settings_from_args import describe_blocks, settings_in
from everlog.projections import Projections
from everlog.store import name_of

if TYPE_CHECKING:
    from everlog.actors.memory.agent_search import AgentSearcher
    from everlog.interfaces.client.remote_search import RemoteSearcher


def system_of(args: Namespace, world: CommandEnvironment, archive: ArchiveClient | None = None) -> LocalSystem:
    """Return the agents of the store for reading, with the functions of --tools, --mcp and --a2a. `archive`: the index,
    see `searching`.
    """
    grants = grants_of(args)
    return LocalSystem(
        store_of(args, world),
        tools=lent_tools(args),
        grants=grants,
        ports=ports_of(world),
        services=AgentServices(archive=archive),
    )


def archive_of(args: Namespace, world: CommandEnvironment) -> LocalArchiveClient | None:
    """Return the archive client of a command that searches; None with --words, and for copies of agents."""
    return None if args.words or server_of(args) is not None else local_archive(store_of(args, world), note=warn)


@contextmanager
def searching(args: Namespace, world: CommandEnvironment) -> "Iterator[AgentSearcher | RemoteSearcher]":
    """Open an agent for searches by words and by meaning, or with --words by words alone. See `open_view`.

    With --server, searches by meaning are done where the index is.
    """
    server = server_of(args)
    if server is not None and not args.words:
        yield _searcher_of_server(args, world, server)
        return
    archive = archive_of(args, world)
    try:
        with opened_view(args, world, archive) as view:
            yield view.searcher()
    finally:
        if archive is not None:
            asyncio.run(archive.close())


def _searcher_of_server(args: Namespace, world: CommandEnvironment, server: ChosenServer) -> "RemoteSearcher":
    try:
        given = moment_of_option(args.as_of, world)
        as_of = given.isoformat() if isinstance(given, datetime) else None if given is None else str(given)
        agent = server.agent(args.name, as_of)
    except BadInput:
        with opened_view(args, world):  # which raises the error with the seqs that there are
            raise
    if agent.deleted:
        tell_deleted(args.name)
    return server.searcher(args.name, as_of, str(agent.settings.get("zone", "UTC")))


def agents_of(
    args: Namespace, world: CommandEnvironment, *, timers: bool = False
) -> AbstractAsyncContextManager[AgentSystem]:
    """Open the agents of the store in the runtime of --runtime; the store is created if there is none. With --server:
    connect to its agents.

    `timers`: True if timers of agents fire in this process. A command that ends at once would only begin the turns that
    timers start, so only a command that stays open passes True.
    """
    server = server_of(args)
    if server is not None:
        return server.connected(args, getattr(args, "placement", None))
    grants = grants_of(args)  # before the tools are imported: a file that the agent may write to must not be run
    return open_system(
        root_of(args),
        runtime=args.runtime,
        tools=lent_tools(args),
        base_url=getattr(args, "base_url", None) or "",
        grants=grants,
        services=ServiceOptions(models=_models(world)),
        ports=ports_of(world),
        timers=timers,
        placement=placement_of(args),
        shards=getattr(args, "shards", None),
        exact_names=True,
    )


def ports_of(world: CommandEnvironment) -> Ports:
    """Return the clock and ids of a command for its agents; notes are printed as warnings on stderr."""
    return Ports(clock=world.clock, ids=world.ids, note=warn)


def _models(world: CommandEnvironment) -> Callable[[str, str], Model] | None:
    model = world.model
    return None if model is None else lambda name, base_url: model(name, base_url or None)


@asynccontextmanager
async def opened_agent(args: Namespace, system: AgentSystem, name: str, settings: Settings) -> AsyncIterator[AgentRef]:
    """Open an agent, or create it. Its system prints warnings about its log. A Fenced error names the agent."""
    command = f"everlog {args.command}"
    try:
        yield await system.agent(name, settings, command=command, take_over=args.take_over)
    except Fenced as error:
        raise Fenced(
            f"Another process took over the agent {name!r}, so this process must stop writing: {error}"
        ) from error


def warn_of_unused(args: Namespace, agent: AgentRef) -> None:
    """Warn on stderr of options for new agents that were given for an existing one."""
    unused = [f"--{key}" for key in ("persona", "human", "block") if getattr(args, key)]
    if unused and not agent.opened.born:
        complain(f"{args.name!r} exists already, and {', '.join(unused)} has an effect on a new agent only.")


@contextmanager
def open_view(
    system: LocalSystem | AgentSystem,
    name: str,
    *,
    notify: bool = True,
    as_of: int | datetime | None = None,
    projections: Projections | None = None,
) -> Iterator[AgentView]:
    """Open an agent for reading, now or as of a moment. Warn of a damaged end of its log and, with `notify`, if the
    agent was deleted. Nothing is changed. `projections`: query engine for many agents, one after the other.
    """
    reading = LocalSystem(system.store) if isinstance(system, AgentSystem) else system
    view = reading.view(name_of(name), projections, as_of=as_of)
    try:
        damage = getattr(view.reader, "damage", None)
        if damage is not None:
            warn_of_damage(damage)
        if notify and view.rows("standing")[0]["deleted"]:
            tell_deleted(view.agent_id)
        yield view
    finally:
        view.close()


@contextmanager
def opened_view(
    args: Namespace, world: CommandEnvironment, archive: ArchiveClient | None = None
) -> Iterator[AgentView]:
    """Open the agent that a command reads, as of its --as-of. See `open_view`.

    Raises BadInput, with the seq of the head, if --as-of is not a moment of the agent.
    """
    system = system_of(args, world, archive)
    try:
        moment = moment_of_option(args.as_of, world)
    except BadInput as error:
        with open_view(system, args.name, notify=False) as view:
            raise BadInput(f"{error} {view.agent_id!r} has records 1 to {view.head.seq}, the head.") from error
    with open_view(system, args.name, as_of=moment) as view:
        yield view


async def release(args: Namespace, world: CommandEnvironment, names: Iterable[str]) -> None:
    """Unload agents in the cluster, if one runs on this store, so that this process can open their logs."""
    if server_of(args) is None and place_of(args.runtime, root_of(args)) == "ray" and running(root_of(args)):
        async with agents_of(args, world) as system:
            for name in names:
                await system.unload(name)


def settings_of(args: Namespace, world: CommandEnvironment) -> Settings:
    """Return the settings that the arguments name. Files are read, and an endpoint that is not known yet is probed.

    A new agent gets those that are not given from the files of defaults. Raises BadInput.
    """
    from everlog.interfaces.common.model_choice import chosen_model

    fill_in_defaults(args, world)
    blocks: dict[str, InitialBlock] = {}
    chosen: dict[str, str] = {}
    named: tuple[tuple[own_presets.Kind, str | None], ...] = (("persona", args.persona), ("human", args.human))
    for label, given in named:
        known, own = presets.names(label), own_presets.names(root_of(args), label)
        if given in known:
            chosen[label] = given
        elif given in own:
            text = own_presets.text(root_of(args), label, given)
            blocks[label] = InitialBlock(label, text.replace(presets.AGENT, presets.called(name_of(args.name))))
        elif given:
            blocks[label] = InitialBlock(label, _preset_file(label, given, [*known, *own]))
    blocks.update((block.label, block) for block in map(_block, args.block))
    describe_blocks(blocks, chosen, args)
    return Settings(
        model=chosen_model(args, world, root_of(args)) if server_of(args) is None else args.model,
        window=args.window,
        zone=args.zone,
        preset=args.preset,
        system=text_of(args.system) if args.system else None,
        verify_first=args.verify_first,
        blocks=tuple(blocks.values()),
        persona=chosen.get("persona", Settings().persona),
        human=chosen.get("human", Settings().human),
        **settings_in(args, text_of),
    )


def grants_of(args: Namespace) -> Grants:
    """Return the capabilities that the arguments grant to the agent; none if the command has no such options.

    Raises BadInput.
    """
    folder = getattr(args, "workspace", None)
    return Grants(
        workspace=_workspace(folder, root_of(args), args.tools) if folder is not None else "",
        hosts=tuple(getattr(args, "allow_host", ())),
        helper=getattr(args, "helper", None) or "",
    )


def _workspace(folder: str, store: Path, tools: Sequence[str]) -> str:
    """Return the absolute path of a workspace. Raises BadInput if it overlaps with the store or holds a file of
    --tools.

    The agent can write to its workspace: it must not be able to change the log, or code that a later command imports.
    """
    try:
        path, root = Path(folder).expanduser().resolve(strict=True), store.resolve()
        code = [file for file in tools if Path(file).resolve().is_relative_to(path)]
    except (OSError, RuntimeError) as error:
        raise BadInput(f"--workspace {folder}: the folder cannot be found ({error}).") from error
    if not path.is_dir():
        raise BadInput(f"--workspace {folder}: this is not a folder.")
    if root.is_relative_to(path) or path.is_relative_to(root):
        raise BadInput(
            f"--workspace {folder}: it contains the store {root}, or lies inside it. Give a folder outside the store."
        )
    if code:
        raise BadInput(
            f"--workspace {folder}: {code[0]} lies inside it, so the agent could change code that is run. "
            "Move the file out of the workspace."
        )
    return str(path)


def _preset_file(label: str, given: str, known: Sequence[str]) -> str:
    if not Path(given).expanduser().exists():
        raise BadInput(
            f"--{label} {given}: there is neither a file nor a preset of that name; presets: {', '.join(known)}."
        )
    return text_of(given)


def _block(text: str) -> InitialBlock:
    """Return the block of LABEL=FILE or LABEL=FILE:LIMIT. If a file named `FILE:LIMIT` exists, the colon is part of its
    name.
    """
    label, _, path = text.partition("=")
    limit = BLOCK_CHARS
    head, colon, tail = path.rpartition(":")
    if colon and tail.isdecimal() and not Path(path).expanduser().exists():
        path, limit = head, int(tail[: len(str(BLOCK_CHARS_MAX)) + 1])
        if limit > BLOCK_CHARS_MAX:
            raise BadInput(f"--block {text}: the limit of a block is at most {BLOCK_CHARS_MAX:,} characters.")
    return InitialBlock(label, text_of(path), limit)


def lent_tools(args: Namespace) -> list[Tool]:
    """Return the functions that the arguments lend to agents: those of --tools, of the servers of --mcp, and of the
    remote agents of --a2a. Raises BadInput.
    """
    lent = [tool for path in getattr(args, "tools", []) for tool in tools_in(Path(path))]
    if servers := getattr(args, "mcp", []):
        from everlog.actors.mcp.mcp_functions import mcp_tools

        lent += mcp_tools(root_of(args), *servers)
    if agents := getattr(args, "a2a", []):
        from everlog.actors.a2a.remote_functions import a2a_tools

        lent += a2a_tools(root_of(args), *agents)
    return lent


def tools_in(path: Path) -> list[Tool]:
    """Return every Tool of a Python file. Raises BadInput with the file and the line if the file cannot be imported."""
    spec = importlib.util.spec_from_file_location(f"everlog_tools_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(f"--tools {path}: there is no Python file of that name (it should end in .py).")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # type hints are resolved by the name of the module
    try:
        spec.loader.exec_module(module)
    except _LOADING as error:
        del sys.modules[spec.name]
        raise BadInput(
            f"--tools {path}{_line_in(path, error)}: {_text_of(error)}. Nothing was loaded; run `python {path}` for "
            "the whole traceback."
        ) from error
    found = [value for value in vars(module).values() if isinstance(value, Tool)]
    if not found:
        raise BadInput(f"--tools {path}: it holds no function with @tool (from everlog import tool).")
    return found


_LOADING = (Exception, SystemExit)
"""Exceptions that the import of a user's file may raise. Any of them is a fault of that file and not of everlog."""


def _line_in(path: Path, error: BaseException) -> str:
    """Return ", line N" for the line of that file which raised the error; empty if it is not known."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def _text_of(error: BaseException) -> str:
    """Return an exception as text for an error message."""
    if isinstance(error, SystemExit):
        return f"the file ends the program (SystemExit: {error.code})"
    if isinstance(error, BadInput):
        return str(error).rstrip(".")
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {said}"
