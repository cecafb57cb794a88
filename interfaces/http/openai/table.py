"""The table of OpenAI's surface: every route, with its role. They are described by OpenAI's own documents."""

from everlog.interfaces.http.core.routes import Route, RouteTable
from everlog.interfaces.http.openai import chat, models
from everlog.interfaces.http.openai.chat_shapes import ChatBody, ChatCompletion, ModelList, ModelShape
from everlog.interfaces.http.openai.surface import PREFIX

BODY_BYTES_MAX = 16 * 1024 * 1024
"""Size of a request: a client resends its whole conversation."""

OPENAI: RouteTable = (
    Route("GET", f"{PREFIX}/models", models.list_models, "List agents as models", answer=ModelList, hidden=True),
    Route("GET", f"{PREFIX}/models/{{model}}", models.show_model, "Show an agent as a model", answer=ModelShape,
          hidden=True),
    Route("POST", f"{PREFIX}/chat/completions", chat.complete_chat, "Answer a conversation", "talk", body=ChatBody,
          answer=ChatCompletion, hidden=True, body_max=BODY_BYTES_MAX),
)  # fmt: skip
