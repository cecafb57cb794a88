"""Create, show, change and delete the conversations that clients keep on the server, and list what was said in them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from everlog.events import BadInput
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.conversations.client_history import client_history
from everlog.interfaces.http.conversations.conversation_log import LoggedExchange
from everlog.interfaces.http.conversations.conversation_run import newest_branch
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.openai.client_conversations import PREFIX, ConversationFile, ConversationFolder
from everlog.interfaces.http.openai.response_events import message_item
from everlog.interfaces.http.openai.response_ids import MESSAGE, RunPlace, id_of_run
from everlog.interfaces.http.openai.response_shapes import (
    ConversationBody,
    ConversationShape,
    DeletedConversation,
    ItemList,
    ItemsQuery,
    MessageItem,
)
from everlog.interfaces.http.openai.responses import messages_of, user_item

ITEMS_MAX = 100
"""Items of one page."""


def _folder(call: HttpCall) -> ConversationFolder:
    return ConversationFolder(call.service.system.store.root)


def _shape(conversation: ConversationFile) -> ConversationShape:
    return ConversationShape(
        id=conversation.id, created_at=conversation.created_at, metadata=dict(conversation.metadata)
    )


async def _found(call: HttpCall) -> ConversationFile:
    name = call.params["conversation"]
    found: ConversationFile | None = await call.service.ports.aside(_folder(call).read, name, call.names.tenant)
    if found is None:
        raise not_found(f"conversation {name[:80]!r}")
    return found


async def create_conversation(call: HttpCall) -> ConversationShape:
    """Create a conversation, with items that were said elsewhere before."""
    body: ConversationBody = call.body
    _check_items(body.items)
    now = call.service.ports.clock.now()
    made = ConversationFile(
        id=PREFIX + UUID(call.service.ports.ids.new(now)).hex, tenant=call.names.tenant,
        created_at=now // MICROSECONDS, metadata=body.metadata, items=body.items,
    )  # fmt: skip
    await call.service.ports.aside(_folder(call).write, made)
    return _shape(made)


def _check_items(items: Sequence[Any]) -> None:
    """Raise BadInput for items that an agent could not take in: they are checked before anything is kept."""
    if items:
        client_history([*messages_of(items), {"role": "user", "content": "?"}])


async def show_conversation(call: HttpCall) -> ConversationShape:
    """Show a conversation."""
    return _shape(await _found(call))


async def change_conversation(call: HttpCall) -> ConversationShape:
    """Change the client's notes on a conversation."""
    body: ConversationBody = call.body
    changed = msgspec.structs.replace(await _found(call), metadata=body.metadata)
    await call.service.ports.aside(_folder(call).write, changed)
    return _shape(changed)


async def delete_conversation(call: HttpCall) -> DeletedConversation:
    """Delete a conversation. What was said in it stays in the agent's log."""
    found = await _found(call)
    await call.service.ports.aside(_folder(call).delete, found.id)
    return DeletedConversation(id=found.id)


async def add_items(call: HttpCall) -> ItemList:
    """Add items to a conversation in which nothing was said yet."""
    body: ConversationBody = call.body
    found = await _found(call)
    if found.stream:
        raise BadInput(
            "Items can be added to a conversation until the agent has answered in it: after that, what is said goes "
            "through /responses. Nothing was added."
        )
    _check_items(body.items)
    added = msgspec.structs.replace(found, items=[*found.items, *body.items])
    await call.service.ports.aside(_folder(call).write, added)
    return _page(_brought(added)[len(found.items) :], ItemsQuery(order="asc"))


async def list_items(call: HttpCall) -> ItemList:
    """List what was said in a conversation, page by page."""
    return _page(await _items(call, await _found(call)), call.query)


async def show_item(call: HttpCall) -> MessageItem:
    """Show one item of a conversation."""
    wanted = call.params["item"]
    for item in await _items(call, await _found(call)):
        if item.id == wanted:
            return item
    raise not_found(f"item {wanted[:80]!r}")


async def delete_item(_: HttpCall) -> Any:
    """Refuse to delete an item: a log keeps what it acknowledged."""
    raise Refusal(
        501, "not-served",
        "Items are records of an agent's log, which keeps them. `everlog erase` erases the content of records.",
    )  # fmt: skip


def _page(items: Sequence[MessageItem], query: ItemsQuery) -> ItemList:
    """Return a page of items. Raises BadInput for an impossible one."""
    if not 1 <= query.limit <= ITEMS_MAX:
        raise BadInput(f"`limit` is from 1 to {ITEMS_MAX}, not {query.limit}.")
    listed = list(items) if query.order == "asc" else list(reversed(items))
    if query.after:
        listed = listed[next((n + 1 for n, one in enumerate(listed) if one.id == query.after), len(listed)) :]
    page = listed[: query.limit]
    return ItemList(
        data=page, first_id=page[0].id if page else "", last_id=page[-1].id if page else "",
        has_more=len(listed) > len(page),
    )  # fmt: skip


async def _items(call: HttpCall, conversation: ConversationFile) -> Sequence[MessageItem]:
    """Return all items of a conversation, oldest first: of its newest branch, or what the client brought along."""
    if not conversation.stream:
        return _brought(conversation)
    exchanges = await newest_branch(call, conversation.stream, conversation.id)
    texts = await call.service.ports.aside(_texts, call, conversation.stream, exchanges)
    items: list[MessageItem] = []
    for exchange, text in zip(exchanges, texts, strict=True):
        place = RunPlace(conversation.stream, exchange.run)
        items.append(user_item(place, text))
        if exchange.answers:
            items.append(message_item(id_of_run(MESSAGE, *place), "\n".join(exchange.answers), "completed"))
    return items


def _texts(call: HttpCall, stream: str, exchanges: Sequence[LoggedExchange]) -> Sequence[str]:
    """Return the questions of exchanges, from the log."""
    reader = call.service.system.store.reader(stream)
    return [next((record.text or "" for record in reader.read(stream, one.seq, one.seq)), "") for one in exchanges]


def _brought(conversation: ConversationFile) -> Sequence[MessageItem]:
    """Return the items that a client brought along, numbered by their place."""
    items = []
    for number, message in enumerate(messages_of(conversation.items)):
        item = message_item(f"{MESSAGE}{conversation.id.removeprefix(PREFIX)}{number:04}", _words(message), "completed")
        items.append(msgspec.structs.replace(item, role="assistant" if message["role"] == "assistant" else "user"))
    return items


def _words(message: Any) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in content or () if isinstance(part, dict))
