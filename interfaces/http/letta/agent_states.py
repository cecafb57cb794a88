"""Show an agent as clients of Letta read it. Every relation is always filled in, whatever `include` says."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.functions.memory_functions import NAMES as MEMORY_NAMES
from everlog.events import AgentConfigured
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.agent_labels import read_labels
from everlog.interfaces.http.letta.letta_calls import viewed
from everlog.interfaces.http.letta.translation.agent_settings import AGENT_TYPE
from everlog.interfaces.http.letta.translation.letta_ids import LettaIds, tool_id, uuid_id
from everlog.interfaces.http.runs.agent_digests import digest_of
from everlog.store import stream_of, stream_of_block

_OWN = {tool.name for tool in BUILTIN} | set(MEMORY_NAMES)


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
    tool_rules: Sequence[Any] = ()
    identities: Sequence[Any] = ()
    identity_ids: Sequence[str] = ()
    secrets: Sequence[Any] = ()
    tool_exec_environment_variables: Sequence[Any] = ()
    message_ids: Sequence[str]
    message_buffer_autoclear: bool = False
    enable_sleeptime: bool = False
    pending_approval: None = None
    created_at: datetime
    updated_at: datetime


async def agent_state(call: HttpCall, stream: str) -> LettaAgent:
    """Return an agent as it is now."""
    store = call.service.system.store
    return await viewed(
        call, stream, lambda view: _state(call, view, store.aliases.shown().get(stream, stream))
    )  # fmt: skip


def _state(call: HttpCall, view: AgentView, name: str) -> LettaAgent:
    ids, context = LettaIds(view.agent_id), view.context()
    config, labels = context.config, read_labels(call.service.system.store.root, view.agent_id)
    first, last = (next(iter(view.reader.read(view.agent_id, seq, seq))).time for seq in (1, view.seq))
    blocks = blocks_of(view)
    messages = [ids.step(one.turn, one.step, "message") if one.event.kind == "model_reply" and one.step
                else ids.message_at(one.seq) for one in context.messages]  # fmt: skip
    return LettaAgent(
        id=ids.agent, name=call.shown(name), system=config.text, description=labels.description or None,
        tags=labels.tags, metadata=labels.metadata, model=config.model,
        llm_config={
            "model": config.model, "context_window": config.window, "model_endpoint_type": "openai",
            "handle": config.model, "put_inner_thoughts_in_kwargs": False,
        },
        model_settings={"provider_type": "openai", **_sampling(config)},
        compaction_settings={"model": config.summarizer} if config.summarizer else None,
        timezone=config.zone, blocks=blocks, memory=LettaMemory(blocks=blocks), tools=tools_of(view, config),
        sources=[folder_of(call, row["source"]) for row in view.rows("sources") if row["source"]],
        message_ids=list(dict.fromkeys(messages)), created_at=first, updated_at=last,
    )  # fmt: skip


def _sampling(config: AgentConfigured) -> Mapping[str, Any]:
    sampling = config.sampling
    given = {"temperature": sampling.temperature, "max_output_tokens": sampling.max_tokens, "seed": sampling.seed}
    return {name: value for name, value in given.items() if value is not None}


def blocks_of(view: AgentView) -> Sequence[LettaBlock]:
    """Return the memory blocks of an agent, in the order of their labels."""
    ids = LettaIds(view.agent_id)
    return [
        LettaBlock(
            id=shared_block_id(row["origin"]) if row["origin"] else ids.block(row["label"]), label=row["label"],
            value=row["value"], limit=row["limit"], description=row["description"] or None,
            read_only=row["read_only"],
        )
        for row in sorted(view.rows("core_memory"), key=lambda row: row["label"])
    ]  # fmt: skip


def tools_of(view: AgentView, config: AgentConfigured) -> Sequence[LettaTool]:
    """Return the functions of an agent, in the order in which its model sees them."""
    schemas = view.schemas(config.functions)
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
