"""Answer requests at addresses of Letta's API that everlog knows and does not serve, in words that say why."""

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import Handler, HttpCall, Method

CODE = (
    "Code is not taken over HTTP: functions are written in Python and given to all agents by the operator, with "
    "`everlog serve --tools FILE` (docs/how_to/write_a_function.md)."
)
CONVERSATIONS = "A conversation is its messages in the agent's log: it has no settings, and is not deleted alone."

REASONS: dict[tuple[Method, str], tuple[int, str]] = {
    ("POST", "/v1/agents/{agent_id}/recompile"): (501, "The system prompt is rendered for each request from the log."),
    ("PATCH", "/v1/agents/{agent_id}/reset-messages"): (
        501,
        "Messages stay in the log: undo turns (POST /api/v1/agents/{name}/undo), or fork the agent.",
    ),
    ("PATCH", "/v1/agents/{agent_id}/messages/{message_id}"): (501, "What was said is never edited."),
    ("POST", "/v1/agents/{agent_id}/tools/{tool_name}/run"): (501, "Only agents call their functions."),
    ("POST", "/v1/tools/"): (403, CODE),
    ("PUT", "/v1/tools/"): (403, CODE),
    ("PATCH", "/v1/tools/{tool_id}"): (403, CODE),
    ("DELETE", "/v1/tools/{tool_id}"): (403, CODE),
    ("POST", "/v1/tools/search"): (501, "Functions are not searched by meaning: list them with `search`."),
    ("PATCH", "/v1/conversations/{conversation_id}"): (501, CONVERSATIONS),
    ("DELETE", "/v1/conversations/{conversation_id}"): (501, CONVERSATIONS),
    ("POST", "/v1/conversations/{conversation_id}/recompile"): (501, CONVERSATIONS),
    ("PATCH", "/v1/folders/{folder_id}"): (501, "A folder has only its name, which cannot be changed."),
    ("DELETE", "/v1/folders/{folder_id}"): (
        501,
        "Documents are taken out by the operator: `everlog load --prune`, and `everlog erase`.",
    ),
    ("DELETE", "/v1/folders/{folder_id}/{file_id}"): (
        501,
        "Documents are taken out by the operator: `everlog load --prune`, and `everlog erase`.",
    ),
    ("GET", "/v1/runs/{run_id}/trace"): (501, "Requests to models are not shown here: `everlog context` shows them."),
    ("DELETE", "/v1/runs/{run_id}"): (501, "Runs stay in the log."),
    ("GET", "/v1/messages/"): (501, "Messages are listed by agent: agents.messages.list."),
    ("GET", "/v1/steps/"): (501, "Steps are listed by run: runs.steps.list."),
}
"""Status and words, by method and path below the prefix."""


def refusing(status: int, words: str) -> Handler:
    """Return the handler that refuses each request with a status and words."""

    async def refuse(_: HttpCall) -> None:
        raise Refusal(status, "forbidden" if status == 403 else "not-supported", f"{words} Nothing was done.")

    return refuse
