"""Show an agent as clients of Letta read it. Every relation is always filled in, whatever `include` says."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec

from everlog.actors.agent.agent_view import AgentView, schemas_in
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.mail.mail_functions import OPTIONAL_FUNCTIONS
from everlog.actors.prompt.context import Context, context_of, is_configured
from everlog.events import AgentConfigured, BadInput
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.agent_labels import read_labels
from everlog.interfaces.http.letta.translation.agent_settings import AGENT_TYPE
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, tool_id, uuid_id
from everlog.interfaces.http.letta.translation.letta_messages import LettaApprovalRequest, request_of
from everlog.interfaces.http.runs.agent_digests import digest_of
from everlog.interfaces.imports.letta_tool_rules import LettaToolRule, letta_rules
from everlog.projections import HEAD, Projections
from everlog.projections.state import activate_many
from everlog.store import LogReader, stream_of, stream_of_block

_OWN = {tool.name: tool for tool in (*BUILTIN, *OPTIONAL_FUNCTIONS)}
"""everlog's own functions."""
_SCHEMAS: Mapping[str, str] = {tool.sha256: tool.schema for tool in _OWN.values()}


class LettaEmbedding(msgspec.Struct, frozen=True, kw_only=True):
    """Words for the embedder, which the operator chooses for the whole store: Letta's clients expect some."""

    embedding_model: str = "everlog"
    embedding_dim: int = 256
    embedding_endpoint_type: str = "hugging-face"
    embedding_endpoint: None = None
    embedding_chunk_size: int = 300


class LettaBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A memory block."""

    id: str
    label: str
    value: str
    limit: int
    description: str | None = None
    read_only: bool = False
    metadata: Mapping[str, Any] = {}
    tags: Sequence[str] = ()


class LettaTool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that an agent may call."""

    id: str
    name: str
    description: str
    json_schema: Mapping[str, Any]
    tool_type: str
    source_type: str = "python"
    source_code: str | None = None
    tags: Sequence[str] = ()
    default_requires_approval: bool = False


class LettaFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A source of documents."""

    id: str
    name: str
    embedding_config: LettaEmbedding = LettaEmbedding()
    description: str | None = None
    instructions: str | None = None
    metadata: Mapping[str, Any] = {}
    created_at: datetime | None = None
    updated_at: datetime | None = None


class LettaMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Core memory, as older clients read it."""

    blocks: Sequence[LettaBlock]
    file_blocks: Sequence[Any] = ()
    prompt_template: str = ""


class LettaAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent."""

    id: str
    name: str
    agent_type: str = AGENT_TYPE
    system: str
    description: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    model: str
    llm_config: Mapping[str, Any]
    embedding: str = "everlog"
    embedding_config: LettaEmbedding = LettaEmbedding()
    model_settings: Mapping[str, Any]
    compaction_settings: Mapping[str, Any] | None
    timezone: str
    blocks: Sequence[LettaBlock]
    memory: LettaMemory
    tools: Sequence[LettaTool]
    sources: Sequence[LettaFolder]
    tool_rules: Sequence[LettaToolRule]
    identities: Sequence[Any] = ()
    identity_ids: Sequence[str] = ()
    secrets: Sequence[Any] = ()
    tool_exec_environment_variables: Sequence[Any] = ()
    message_ids: Sequence[str]
    message_buffer_autoclear: bool = False
    enable_sleeptime: bool = False
    pending_approval: LettaApprovalRequest | None = None
    """The oldest call that waits for a person."""
    created_at: datetime
    updated_at: datetime


class AgentTimes(NamedTuple):
    """Times of the first and of the last record of an agent."""

    created: datetime
    updated: datetime


async def agent_state(call: HttpCall, stream: str) -> LettaAgent:
    """Return an agent as it is now."""
    return (await agent_states(call, [stream]))[0]


async def agent_states(
    call: HttpCall, streams: Sequence[str], times: Mapping[str, AgentTimes] = {}
) -> Sequence[LettaAgent]:
    """Return agents as they are now. They share an engine and its queries, whatever their number.

    `times`: of agents of which they are known.
    """
    found: Sequence[LettaAgent] = await call.service.ports.aside(_states, call, streams, times)
    return found


def _states(call: HttpCall, streams: Sequence[str], times: Mapping[str, AgentTimes]) -> Sequence[LettaAgent]:
    store, readers = call.service.system.store, dict[str, tuple[LogReader, list[str]]]()
    for stream in streams:
        partition = store.partition_of(stream)
        if partition not in readers:
            readers[partition] = store.reader(stream), []
        readers[partition][1].append(stream)
    given, wanted = store.aliases.shown(), [(stream, HEAD) for stream in streams]
    shown: dict[str, LettaAgent] = {}
    with Projections() as engine:
        for reader, names in readers.values():
            activate_many(engine, reader, names)
        contexts = dict(zip(streams, engine.answers("context_window", wanted), strict=True))
        sources: dict[str, list[str]] = {}
        for row in engine.batch("sources", wanted):
            sources.setdefault(row["agent_id"], []).append(row["source"])
        waiting: dict[str, Mapping[str, Any]] = {}
        for row in engine.batch("approvals", wanted):
            if row["decision"] == "waiting" and row["seq"] <= waiting.get(row["agent_id"], row)["seq"]:
                waiting[row["agent_id"]] = row
        for reader, names in readers.values():
            for stream in names:
                if not is_configured(contexts[stream]):
                    raise BadInput(f"{call.shown(stream)!r} has no configuration: it was erased.")
                context = context_of(stream, HEAD, contexts[stream])
                tools = _tools(context.config, partial(engine.rows, "configurations", stream))
                folders = [folder_of(call, name) for name in sources.get(stream, ()) if name]
                at = times.get(stream) or _times(reader, stream)
                state = _state(call, given.get(stream, stream), context, tools, folders, at)
                if stream in waiting:
                    request = request_of(waiting[stream], LettaIds(stream))
                    state = msgspec.structs.replace(state, pending_approval=request)
                shown[stream] = state
    return [shown[stream] for stream in streams]


def _times(reader: LogReader, stream: str) -> AgentTimes:
    head = reader.head(stream).seq
    return AgentTimes(*(next(iter(reader.read(stream, seq, seq))).time for seq in (1, head)))


def _state(
    call: HttpCall, name: str, context: Context, tools: Sequence[LettaTool], folders: Sequence[LettaFolder],
    at: AgentTimes,
) -> LettaAgent:  # fmt: skip
    stream, config = context.agent_id, context.config
    ids, labels = LettaIds(stream), read_labels(call.service.system.store.root, stream)
    blocks = _blocks(stream, context)
    messages = [ids.message_of(one.event.kind, one.seq, one.turn, one.step) for one in context.messages]
    return LettaAgent(
        id=ids.agent, name=call.shown(name), system=config.text, description=labels.description or None,
        tags=labels.tags, metadata=labels.metadata, model=config.model,
        llm_config={
            "model": config.model, "context_window": config.window, "model_endpoint_type": "openai",
            "handle": config.model, "put_inner_thoughts_in_kwargs": False,
        },
        model_settings={"provider_type": "openai", **_sampling(config)},
        compaction_settings={"model": config.summarizer} if config.summarizer else None,
        tool_rules=letta_rules(config),
        timezone=config.zone, blocks=blocks, memory=LettaMemory(blocks=blocks), tools=tools,
        sources=folders, message_ids=list(dict.fromkeys(messages)), created_at=at.created, updated_at=at.updated,
    )  # fmt: skip


def _sampling(config: AgentConfigured) -> Mapping[str, Any]:
    sampling = config.sampling
    given = {"temperature": sampling.temperature, "max_output_tokens": sampling.max_tokens, "seed": sampling.seed}
    return {name: value for name, value in given.items() if value is not None}


def blocks_of(view: AgentView) -> Sequence[LettaBlock]:
    """Return the memory blocks of an agent, in the order of their labels."""
    return _blocks(view.agent_id, view.context())


def _blocks(stream: str, context: Context) -> Sequence[LettaBlock]:
    ids = LettaIds(stream)
    return [
        LettaBlock(
            id=shared_block_id(block.origin) if block.origin else ids.block(block.label), label=block.label,
            value=block.value, limit=block.limit, description=block.description or None,
            read_only=block.read_only,
        )
        for block in sorted(context.blocks, key=lambda block: block.label)
    ]  # fmt: skip


def tools_of(view: AgentView) -> Sequence[LettaTool]:
    """Return the functions of an agent, in the order in which its model sees them."""
    return _tools(view.context().config, partial(view.rows, "configurations"))


def _tools(config: AgentConfigured, configurations: Callable[[], list[dict[str, Any]]]) -> Sequence[LettaTool]:
    schemas = _SCHEMAS
    if any(one.sha256 not in schemas for one in config.functions):  # a user's function, or one of an older everlog
        schemas = schemas_in(configurations())
    return [tool_of(one.name, schemas.get(one.sha256, "{}")) for one in config.functions]


def tool_of(name: str, schema: str) -> LettaTool:
    """Return a function. `schema`: its JSON schema, as text."""
    decoded = msgspec.json.decode(schema)
    return LettaTool(
        id=tool_id(name), name=name, description=decoded.get("description", ""), json_schema=decoded,
        tool_type="letta_core" if name in _OWN else "custom",
    )  # fmt: skip


def folder_of(call: HttpCall, source: str) -> LettaFolder:
    """Return a source of documents. `source`: its name in the store."""
    return LettaFolder(id=folder_id(source), name=call.shown(source))


def folder_id(source: str) -> str:
    """Return the id of a source, by its name in the store."""
    return uuid_id("folder", digest_of(stream_of(source)))


def shared_block_id(block: str) -> str:
    """Return the id of a shared block, by its name in the store."""
    return uuid_id("block", digest_of(stream_of_block(block)))
