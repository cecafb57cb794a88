"""The table of OpenAI's surface: every route, with its role. They are described by OpenAI's own documents."""

from everlog.interfaces.http.core.routes import EVENT_STREAM, JSON, Route, RouteTable
from everlog.interfaces.http.openai import chat, conversations, models, responses
from everlog.interfaces.http.openai import chat_shapes as chats
from everlog.interfaces.http.openai import response_shapes as shapes
from everlog.interfaces.http.openai.surface import PREFIX

BODY_BYTES_MAX = 16 * 1024 * 1024
"""Size of a request: a client resends its whole conversation."""
_BOTH = (JSON, EVENT_STREAM)
_RESPONSE = f"{PREFIX}/responses/{{response}}"
_CONVERSATION = f"{PREFIX}/conversations/{{conversation}}"

_ROUTES: RouteTable = (
    Route("POST", f"{PREFIX}/chat/completions", chat.complete_chat, "Answer a conversation", "talk",
          body=chats.ChatBody, answer=chats.ChatCompletion, body_max=BODY_BYTES_MAX, media=_BOTH),
    Route("POST", f"{PREFIX}/responses", responses.create_response, "Answer a message", "talk",
          body=shapes.ResponseBody, answer=shapes.ResponseShape, body_max=BODY_BYTES_MAX, media=_BOTH),
    Route("GET", _RESPONSE, responses.show_response, "Show or stream a response", query=shapes.ResponseQuery,
          answer=shapes.ResponseShape, media=_BOTH),
    Route("DELETE", _RESPONSE, responses.delete_response, "Refuse to delete a response", "talk"),
    Route("POST", f"{_RESPONSE}/cancel", responses.cancel_response, "Cancel a response", "talk",
          query=shapes.ResponseQuery, answer=shapes.ResponseShape),
    Route("GET", f"{_RESPONSE}/input_items", responses.list_input_items, "List what a response answers",
          query=shapes.ItemsQuery, answer=shapes.ItemList),
    Route("POST", f"{PREFIX}/conversations", conversations.create_conversation, "Create a conversation", "talk",
          body=shapes.ConversationBody, answer=shapes.ConversationShape),
    Route("GET", _CONVERSATION, conversations.show_conversation, "Show a conversation",
          answer=shapes.ConversationShape),
    Route("POST", _CONVERSATION, conversations.change_conversation, "Change a conversation's notes", "talk",
          body=shapes.ConversationBody, answer=shapes.ConversationShape),
    Route("DELETE", _CONVERSATION, conversations.delete_conversation, "Delete a conversation", "talk",
          answer=shapes.DeletedConversation),
    Route("GET", f"{_CONVERSATION}/items", conversations.list_items, "List what was said", query=shapes.ItemsQuery,
          answer=shapes.ItemList),
    Route("POST", f"{_CONVERSATION}/items", conversations.add_items, "Add what was said elsewhere", "talk",
          body=shapes.ConversationBody, answer=shapes.ItemList),
    Route("GET", f"{_CONVERSATION}/items/{{item}}", conversations.show_item, "Show an item",
          answer=shapes.MessageItem),
    Route("DELETE", f"{_CONVERSATION}/items/{{item}}", conversations.delete_item, "Refuse to delete an item", "talk"),
    Route("GET", f"{PREFIX}/models", models.list_models, "List agents as models", answer=chats.ModelList),
    Route("GET", f"{PREFIX}/models/{{model}}", models.show_model, "Show an agent as a model",
          answer=chats.ModelShape),
)  # fmt: skip

OPENAI: RouteTable = tuple(route._replace(hidden=True) for route in _ROUTES)
"""All routes of the surface, which the OpenAPI document of the native API leaves out."""
