"""The table of the Letta surface: every route, with its role and shapes.

Letta's clients end the addresses of lists with a `/`, other programs do not: both forms are served, because a redirect
would send each body twice.
"""

from collections.abc import Iterator

from everlog.interfaces.http.core.routes import EVENT_STREAM, JSON, Route, RouteTable
from everlog.interfaces.http.core.uploads import UPLOAD_BYTES_MAX
from everlog.interfaces.http.letta import (
    agent_files,
    agents,
    blocks,
    conversations,
    folders,
    messages,
    models,
    passages,
    runs,
    sending,
    tools,
)
from everlog.interfaces.http.letta.agent_states import LettaAgent, LettaBlock, LettaFolder, LettaTool
from everlog.interfaces.http.letta.letta_calls import LettaNotice, LettaPageQuery
from everlog.interfaces.http.letta.not_served import REASONS, refusing
from everlog.interfaces.http.letta.surface import PREFIX
from everlog.interfaces.http.letta.translation.agent_settings import LettaAgentBody, LettaBlockBody
from everlog.interfaces.http.letta.translation.letta_messages import LettaMessage
from everlog.interfaces.http.letta.translation.message_input import LettaMessageBody
from everlog.interfaces.http.letta.translation.run_shapes import LettaRun, LettaStep
from everlog.interfaces.http.letta.translation.run_streams import LettaResponse, LettaUsage

A = "/v1/agents/{agent_id}"
B = "/v1/blocks/{block_id}"
C = "/v1/conversations/{conversation_id}"
CORE = f"{A}/core-memory/blocks"
F = "/v1/folders/{folder_id}"
R = "/v1/runs/{run_id}"
TEXTS = f"{A}/archival-memory"
MULTIPART = "multipart/form-data"
_BOTH = (JSON, EVENT_STREAM)

TALKING: RouteTable = (
    Route("POST", f"{A}/messages", sending.send_message, "Send messages", "talk", body=LettaMessageBody,
          answer=LettaResponse, media=_BOTH),
    Route("POST", f"{A}/messages/stream", sending.stream_message, "Send messages and stream the answer", "talk",
          body=LettaMessageBody, media=(EVENT_STREAM,)),
    Route("POST", f"{A}/messages/async", sending.send_in_background, "Send messages in the background", "talk",
          body=LettaMessageBody, answer=LettaRun),
    Route("POST", f"{A}/messages/cancel", messages.cancel_runs, "Cancel runs", "talk",
          body=messages.LettaCancelBody, answer=dict[str, str]),
    Route("GET", f"{A}/messages", messages.list_messages, "List messages", query=messages.LettaMessageQuery,
          answer=list[LettaMessage]),
    Route("POST", f"{A}/summarize", messages.compact, "Summarize the context", "talk",
          answer=messages.LettaCompaction),
    Route("GET", "/v1/messages/{message_id}", messages.show_message, "Show a message", answer=list[LettaMessage]),
    Route("POST", "/v1/messages/search", messages.search_messages, "Search messages",
          body=messages.LettaMessageSearch, answer=list[messages.LettaFoundMessage]),
)  # fmt: skip

RUNS: RouteTable = (
    Route("GET", "/v1/runs/", runs.list_runs, "List runs", query=runs.LettaRunQuery, answer=list[LettaRun]),
    Route("GET", R, runs.show_run, "Show a run", answer=LettaRun),
    Route("GET", f"{R}/messages", runs.list_run_messages, "List the messages of a run", query=LettaPageQuery,
          answer=list[LettaMessage]),
    Route("GET", f"{R}/steps", runs.list_run_steps, "List the steps of a run", query=LettaPageQuery,
          answer=list[LettaStep]),
    Route("GET", f"{R}/usage", runs.show_usage, "Show the tokens of a run", answer=LettaUsage),
    Route("POST", f"{R}/stream", runs.stream_run, "Stream a run again", body=runs.LettaResumeBody,
          media=(EVENT_STREAM,)),
    Route("GET", "/v1/steps/{step_id}", runs.show_step, "Show a step", answer=LettaStep),
)  # fmt: skip

AGENTS: RouteTable = (
    Route("GET", "/v1/agents/", agents.list_agents, "List agents", query=agents.LettaAgentQuery,
          answer=list[LettaAgent]),
    Route("POST", "/v1/agents/", agents.create_agent, "Create an agent", "admin", body=LettaAgentBody,
          answer=LettaAgent),
    Route("GET", A, agents.show_agent, "Show an agent", answer=LettaAgent),
    Route("PATCH", A, agents.update_agent, "Change an agent", "admin", body=LettaAgentBody, answer=LettaAgent),
    Route("DELETE", A, agents.delete_agent, "Delete an agent", "admin", answer=LettaNotice),
    Route("GET", f"{A}/export", agent_files.export_agent, "Write an agent file", query=agent_files.LettaFileQuery),
    Route("POST", "/v1/agents/import", agent_files.import_agents, "Make agents from an agent file", "admin",
          answer=agent_files.LettaImported, body_media=MULTIPART, body_max=UPLOAD_BYTES_MAX),
    Route("GET", "/v1/tags/", agents.list_tags, "List tags", answer=list[str]),
    Route("GET", f"{A}/tools", tools.list_agent_tools, "List the functions of an agent", query=LettaPageQuery,
          answer=list[LettaTool]),
    Route("PATCH", f"{A}/tools/attach/{{tool_id}}", tools.attach_tool, "Attach a function", "admin",
          answer=LettaAgent),
    Route("PATCH", f"{A}/tools/detach/{{tool_id}}", tools.detach_tool, "Detach a function", "admin",
          answer=LettaAgent),
    Route("PATCH", f"{A}/tools/approval/{{tool_name}}", tools.require_approval, "Let a function wait for approvals",
          "admin", query=tools.LettaApprovalFlag, body=tools.LettaApprovalFlag, answer=LettaAgent),
    Route("GET", "/v1/tools/", tools.list_tools, "List functions", query=tools.LettaToolQuery,
          answer=list[LettaTool]),
    Route("GET", "/v1/tools/{tool_id}", tools.show_tool, "Show a function", answer=LettaTool),
    Route("GET", "/v1/models/", models.list_models, "List models", answer=list[models.LettaModel]),
    Route("GET", "/v1/models/embedding", models.list_embedders, "List embedders", answer=list[models.LettaEmbedder]),
    Route("GET", "/v1/health/", models.show_health, "Show the version", answer=models.LettaHealth),
)  # fmt: skip

MEMORY: RouteTable = (
    Route("GET", CORE, blocks.list_agent_blocks, "List the blocks of an agent", query=LettaPageQuery,
          answer=list[LettaBlock]),
    Route("GET", f"{CORE}/{{label}}", blocks.show_agent_block, "Show a block of an agent", answer=LettaBlock),
    Route("PATCH", f"{CORE}/{{label}}", blocks.update_agent_block, "Change a block of an agent", "talk",
          body=blocks.LettaBlockChange, answer=LettaBlock),
    Route("PATCH", f"{CORE}/attach/{{block_id}}", blocks.attach_block, "Attach a block", "admin", answer=LettaAgent),
    Route("PATCH", f"{CORE}/detach/{{block_id}}", blocks.detach_block, "Detach a block", "admin", answer=LettaAgent),
    Route("GET", "/v1/blocks/", blocks.list_blocks, "List shared blocks", query=blocks.LettaBlockQuery,
          answer=list[LettaBlock]),
    Route("POST", "/v1/blocks/", blocks.create_block, "Create a shared block", "admin", body=LettaBlockBody,
          answer=LettaBlock),
    Route("GET", B, blocks.show_block, "Show a block", answer=LettaBlock),
    Route("PATCH", B, blocks.update_block, "Change a block", "talk", body=blocks.LettaBlockChange, answer=LettaBlock),
    Route("DELETE", B, blocks.delete_block, "Delete a block", "admin", answer=LettaBlock),
    Route("GET", f"{B}/agents", blocks.list_block_agents, "List the agents of a block", query=LettaPageQuery,
          answer=list[LettaAgent]),
    Route("GET", TEXTS, passages.list_passages, "List texts", query=passages.LettaPassageQuery,
          answer=list[passages.LettaPassage]),
    Route("POST", TEXTS, passages.create_passage, "Store a text", "talk", body=passages.LettaPassageBody,
          answer=list[passages.LettaPassage]),
    Route("GET", f"{TEXTS}/search", passages.search_passages, "Search texts", query=passages.LettaPassageSearch,
          answer=passages.LettaFoundTexts),
    Route("DELETE", f"{TEXTS}/{{memory_id}}", passages.delete_passage, "Delete a text", "talk", answer=LettaNotice),
    Route("POST", "/v1/passages/search", passages.search_all_passages, "Search texts of agents",
          body=passages.LettaPassagesBody, answer=list[passages.LettaFoundPassage]),
)  # fmt: skip

FOLDERS: RouteTable = (
    Route("GET", "/v1/folders/", folders.list_folders, "List folders", query=folders.LettaFolderQuery,
          answer=list[LettaFolder]),
    Route("POST", "/v1/folders/", folders.create_folder, "Create a folder", "admin", body=folders.LettaFolderBody,
          answer=LettaFolder),
    Route("GET", F, folders.show_folder, "Show a folder", answer=LettaFolder),
    Route("GET", f"{F}/files", folders.list_files, "List files", query=LettaPageQuery,
          answer=list[folders.LettaFile]),
    Route("GET", f"{F}/files/{{file_id}}", folders.show_file, "Show a file", answer=folders.LettaFile),
    Route("POST", f"{F}/upload", folders.upload_file, "Upload a file", "admin", query=folders.LettaUploadQuery,
          answer=folders.LettaFile, body_media=MULTIPART, body_max=UPLOAD_BYTES_MAX),
    Route("GET", f"{F}/agents", folders.list_folder_agents, "List the agents of a folder", answer=list[str]),
    Route("GET", f"{A}/folders", folders.list_agent_folders, "List the folders of an agent", query=LettaPageQuery,
          answer=list[LettaFolder]),
    Route("PATCH", f"{A}/folders/attach/{{folder_id}}", folders.attach_folder, "Attach a folder", "admin",
          answer=LettaAgent),
    Route("PATCH", f"{A}/folders/detach/{{folder_id}}", folders.detach_folder, "Detach a folder", "admin",
          answer=LettaAgent),
)  # fmt: skip

CONVERSATIONS: RouteTable = (
    Route("GET", "/v1/conversations/", conversations.list_conversations, "List conversations",
          query=conversations.LettaConversationQuery, answer=list[conversations.LettaConversation]),
    Route("POST", "/v1/conversations/", conversations.create_conversation, "Begin a conversation", "talk",
          query=conversations.LettaAgentOfConversation, body=conversations.LettaConversationBody,
          answer=conversations.LettaConversation),
    Route("GET", C, conversations.show_conversation, "Show a conversation",
          query=conversations.LettaAgentOfConversation, answer=conversations.LettaConversation),
    Route("POST", f"{C}/fork", conversations.fork_conversation, "Fork the agent of a conversation", "admin",
          query=conversations.LettaAgentOfConversation, answer=conversations.LettaConversation),
    Route("POST", f"{C}/messages", conversations.send_in_conversation, "Send messages in a conversation", "talk",
          body=LettaMessageBody, answer=LettaResponse, media=_BOTH),
    Route("GET", f"{C}/messages", conversations.list_conversation_messages, "List the messages of a conversation",
          query=messages.LettaMessageQuery, answer=list[LettaMessage]),
    Route("POST", f"{C}/stream", conversations.stream_conversation, "Stream a run of a conversation again",
          body=runs.LettaResumeBody, media=(EVENT_STREAM,)),
    Route("POST", f"{C}/cancel", conversations.cancel_conversation, "Cancel what the agent does", "talk",
          query=conversations.LettaAgentOfConversation, body=messages.LettaCancelBody, answer=dict[str, str]),
    Route("POST", f"{C}/compact", conversations.compact_conversation, "Summarize the context", "talk",
          query=conversations.LettaAgentOfConversation, answer=messages.LettaCompaction),
)  # fmt: skip

NOT_SERVED: RouteTable = tuple(
    Route(method, path, refusing(status, words), "Refuse in words", body_types=(JSON, MULTIPART))
    for (method, path), (status, words) in REASONS.items()
)


def _addresses(routes: RouteTable) -> Iterator[Route]:
    """Yield each route in both forms of its path. Paths with more fixed parts come first, because they are more
    specific.
    """
    for route in sorted(routes, key=lambda route: [part.startswith("{") for part in route.path.split("/")]):
        path = f"{PREFIX}{route.path.rstrip('/')}"
        yield route._replace(path=path, hidden=True)
        yield route._replace(path=f"{path}/", hidden=True)


LETTA: RouteTable = tuple(_addresses((*TALKING, *RUNS, *AGENTS, *MEMORY, *FOLDERS, *CONVERSATIONS, *NOT_SERVED)))
"""All routes of the Letta surface."""
