"""Run agents with memory whose whole state is an append-only log of typed events.

    import everlog

    with everlog.open("~/.everlog") as system:
        print(system.agent("sam").ask("Hi, I sail"))

`everlog.open` blocks; `everlog.open_system` is the same for asyncio. `everlog.connect` and `everlog.connect_system`
have the same API for the agents of a server (`everlog serve`). Every failure raises an `EverlogError`. A name is
imported when it is first used, so that `import everlog` is fast. The packages can be imported directly, for example
`from everlog.events import UserMessage`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlog.actors.a2a.remote_functions import a2a_tools
    from everlog.actors.agent.agent_setup import InitialBlock, Settings
    from everlog.actors.agent.conversation_import import ImportedMessage
    from everlog.actors.agent_ref import AgentRef
    from everlog.actors.agent_state import AgentState
    from everlog.actors.agent_system import AgentSystem
    from everlog.actors.api import ServiceOptions, open_system
    from everlog.actors.erasure.selection import Selection
    from everlog.actors.functions.extras import Grants
    from everlog.actors.functions.memories_search import MEMORIES_SEARCH
    from everlog.actors.functions.tools import ProcessLimits, Tool, tool
    from everlog.actors.gateway.gateway_limits import GatewayLimits
    from everlog.actors.mcp.mcp_functions import mcp_tools
    from everlog.actors.memory.core_memory import Memory
    from everlog.actors.memory.document_load import Document
    from everlog.actors.memory_views import MemoryViews
    from everlog.actors.ports.effects import Filters
    from everlog.actors.ports.function_call import cancelled, progress
    from everlog.actors.ports.ports import Ports
    from everlog.actors.recollection.memory_levels import KnownSummaries, SummaryLimits
    from everlog.actors.reply import Reply, SendOutcome
    from everlog.actors.rerun.rerun import RerunOptions, RerunOutcome
    from everlog.actors.runtime import Run
    from everlog.actors.sync_api import (
        SyncAgent,
        SyncSystem,
        open,  # noqa: A004 - `everlog.open`, as `gzip.open`
    )
    from everlog.events import (
        AgentConfigured,
        AgentCreated,
        AgentDeleted,
        AgentForked,
        AgentMoved,
        AlreadyDecided,
        ApprovalDecided,
        ApprovalRequested,
        ApprovalRule,
        ArchivalDeleted,
        ArchivalInserted,
        ArchivalUpdated,
        ArchiveDown,
        ArchiveError,
        BadInput,
        BadReply,
        BlockRemoved,
        BudgetExceeded,
        Busy,
        ClusterError,
        ContextOverflow,
        ContextTrimmed,
        CorruptLog,
        DerivationReplied,
        DocumentLoaded,
        DocumentRemoved,
        DuplicateId,
        EditConflict,
        EmbedderError,
        EntityNamed,
        Event,
        EverlogError,
        FactEnded,
        FactNoted,
        Fenced,
        ForeignRows,
        FunctionError,
        FunctionResult,
        FunctionRule,
        FunctionStarted,
        GenerationChosen,
        Heartbeat,
        HeartbeatsPaused,
        HostLost,
        ImportanceRated,
        InsightNoted,
        McpError,
        MemoriesDerived,
        MemoriesWithdrawn,
        MemoryEdited,
        MessageSent,
        ModelError,
        ModelFailed,
        ModelReply,
        ModelSwitched,
        Moved,
        NewerFormat,
        OverBudget,
        PartitionBusy,
        PlanChanged,
        PlanItem,
        PlanMade,
        Poisoned,
        Rating,
        Record,
        RecordsErased,
        ReplyRejected,
        ReplyRethought,
        RulesApplied,
        Sampling,
        Section,
        SourceAttached,
        SourceDetached,
        StaleId,
        StoreError,
        Summary,
        SummaryExpanded,
        SystemAlert,
        TimerCancelled,
        TimerSet,
        TurnAbandoned,
        TurnCancelled,
        TurnsHidden,
        UnknownAgent,
        UsageError,
        UserLogin,
        UserMessage,
        WrongSequence,
        event_of,
    )
    from everlog.interfaces.client.connect import connect, connect_system

__all__ = [
    "MEMORIES_SEARCH",
    "AgentConfigured",
    "AgentCreated",
    "AgentDeleted",
    "AgentForked",
    "AgentMoved",
    "AgentRef",
    "AgentState",
    "AgentSystem",
    "AlreadyDecided",
    "ApprovalDecided",
    "ApprovalRequested",
    "ApprovalRule",
    "ArchivalDeleted",
    "ArchivalInserted",
    "ArchivalUpdated",
    "ArchiveDown",
    "ArchiveError",
    "BadInput",
    "BadReply",
    "BlockRemoved",
    "BudgetExceeded",
    "Busy",
    "ClusterError",
    "ContextOverflow",
    "ContextTrimmed",
    "CorruptLog",
    "DerivationReplied",
    "Document",
    "DocumentLoaded",
    "DocumentRemoved",
    "DuplicateId",
    "EditConflict",
    "EmbedderError",
    "EntityNamed",
    "Event",
    "EverlogError",
    "FactEnded",
    "FactNoted",
    "Fenced",
    "Filters",
    "ForeignRows",
    "FunctionError",
    "FunctionResult",
    "FunctionRule",
    "FunctionStarted",
    "GatewayLimits",
    "GenerationChosen",
    "Grants",
    "Heartbeat",
    "HeartbeatsPaused",
    "HostLost",
    "ImportanceRated",
    "ImportedMessage",
    "InitialBlock",
    "InsightNoted",
    "KnownSummaries",
    "McpError",
    "MemoriesDerived",
    "MemoriesWithdrawn",
    "Memory",
    "MemoryEdited",
    "MemoryViews",
    "MessageSent",
    "ModelError",
    "ModelFailed",
    "ModelReply",
    "ModelSwitched",
    "Moved",
    "NewerFormat",
    "OverBudget",
    "PartitionBusy",
    "PlanChanged",
    "PlanItem",
    "PlanMade",
    "Poisoned",
    "Ports",
    "ProcessLimits",
    "Rating",
    "Record",
    "RecordsErased",
    "Reply",
    "ReplyRejected",
    "ReplyRethought",
    "RerunOptions",
    "RerunOutcome",
    "RulesApplied",
    "Run",
    "Sampling",
    "Section",
    "Selection",
    "SendOutcome",
    "ServiceOptions",
    "Settings",
    "SourceAttached",
    "SourceDetached",
    "StaleId",
    "StoreError",
    "Summary",
    "SummaryExpanded",
    "SummaryLimits",
    "SyncAgent",
    "SyncSystem",
    "SystemAlert",
    "TimerCancelled",
    "TimerSet",
    "Tool",
    "TurnAbandoned",
    "TurnCancelled",
    "TurnsHidden",
    "UnknownAgent",
    "UsageError",
    "UserLogin",
    "UserMessage",
    "WrongSequence",
    "a2a_tools",
    "cancelled",
    "connect",
    "connect_system",
    "event_of",
    "mcp_tools",
    "open",
    "open_system",
    "progress",
    "tool",
]

_MODULES = {
    "ImportedMessage": "everlog.actors.agent.conversation_import",
    "Reply": "everlog.actors.reply",
    "SendOutcome": "everlog.actors.reply",
    "Run": "everlog.actors.runtime",
    "AgentState": "everlog.actors.agent_state",
    "SyncSystem": "everlog.actors.sync_api",
    "SyncAgent": "everlog.actors.sync_api",
    "GatewayLimits": "everlog.actors.gateway.gateway_limits",
    "Document": "everlog.actors.memory.document_load",
    "Filters": "everlog.actors.ports.effects",
    "KnownSummaries": "everlog.actors.recollection.memory_levels",
    "MEMORIES_SEARCH": "everlog.actors.functions.memories_search",
    "MemoryViews": "everlog.actors.memory_views",
    "SummaryLimits": "everlog.actors.recollection.memory_levels",
    "RerunOutcome": "everlog.actors.rerun.rerun",
    "AgentRef": "everlog.actors.agent_ref",
    "AgentSystem": "everlog.actors.agent_system",
    "InitialBlock": "everlog.actors.agent.agent_setup",
    "Grants": "everlog.actors.functions.extras",
    "Memory": "everlog.actors.memory.core_memory",
    "Ports": "everlog.actors.ports.ports",
    "ServiceOptions": "everlog.actors.api",
    "Settings": "everlog.actors.agent.agent_setup",
    "ProcessLimits": "everlog.actors.functions.tools",
    "Tool": "everlog.actors.functions.tools",
    "RerunOptions": "everlog.actors.rerun.rerun",
    "Selection": "everlog.actors.erasure.selection",
    "a2a_tools": "everlog.actors.a2a.remote_functions",
    "cancelled": "everlog.actors.ports.function_call",
    "connect": "everlog.interfaces.client.connect",
    "connect_system": "everlog.interfaces.client.connect",
    "mcp_tools": "everlog.actors.mcp.mcp_functions",
    "open": "everlog.actors.sync_api",
    "open_system": "everlog.actors.api",
    "progress": "everlog.actors.ports.function_call",
    "tool": "everlog.actors.functions.tools",
}
"""Module of each public name that is neither an event nor an error; events and errors are in `everlog.events`."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("everlog")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES.get(name, "everlog.events")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
