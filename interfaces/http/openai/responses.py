"""Answer, look up, resume and cancel responses: each is a run of an agent, which no connection holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from everlog.events import BadInput, Record
from everlog.interfaces.http.conversations.client_history import (
    ClientExchange,
    ClientHistory,
    client_history,
    question_digest,
)
from everlog.interfaces.http.conversations.conversation_log import LoggedExchange
from everlog.interfaces.http.conversations.conversation_run import (
    ResentRequest,
    newest_branch,
    root_of,
    run_of_request,
)
from everlog.interfaces.http.conversations.resent_history import ExchangeDigests
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, not_found
from everlog.interfaces.http.openai.chat import attempt_of, check_tools, conversation_key, headers_of
from everlog.interfaces.http.openai.chat_answers import PLAIN_STYLE
from everlog.interfaces.http.openai.client_conversations import ConversationFolder
from everlog.interfaces.http.openai.models import stream_of_model
from everlog.interfaces.http.openai.response_events import response_events
from everlog.interfaces.http.openai.response_ids import RESPONSE, RunPlace, id_of_run, run_of_id
from everlog.interfaces.http.openai.response_objects import ResponseFacts, item_id_of, response_maker
from everlog.interfaces.http.openai.response_shapes import (
    ItemList,
    ItemsQuery,
    MessageItem,
    ResponseBody,
    ResponseQuery,
    TextPart,
)
from everlog.interfaces.http.runs.run_items import RunEnded, drained, ended_items, joined_items
from everlog.interfaces.http.runs.run_reading import begun, finished
from everlog.interfaces.http.runs.sdk_repeats import repeat_of

_ROLES: Mapping[str, str] = {"function_call_output": "tool", "function_call": "tool", "reasoning": "tool"}
"""Roles of items that are no message of anyone."""


async def create_response(call: HttpCall) -> Any:
    """Answer a message: the next of a conversation, of a response before it, or of a resent history."""
    body: ResponseBody = call.body
    _check(body)
    request = await _request_of(call, body)
    run = await run_of_request(call, request)
    asked, items = await begun(call, run, preview=body.stream)
    facts = ResponseFacts(
        RunPlace(run.stream, run.run),
        asked_at=asked.recorded_at,
        previous=body.previous_response_id or (id_of_run(RESPONSE, run.stream, run.earlier) if run.earlier else ""),
        conversation=run.conversation,
        background=body.background,
        metadata=body.metadata or {},
    )
    headers = headers_of(call, run)
    make = response_maker(call, facts)
    if body.stream:
        return EventStreamResponse(
            call.service, call.caller, response_events(items, item_id_of(facts.place), make), headers, PLAIN_STYLE
        )
    if body.background:
        call.service.detach(drained(items))
        return JsonResponse(make((), None), headers=headers)
    done = await finished(items)
    return JsonResponse(make(done.records, done.end), headers=headers)


def _check(body: ResponseBody) -> None:
    check_tools(body.tools, body.tool_choice)
    wanted = body.text and body.text.format
    if wanted and wanted.get("type", "text") != "text":
        raise BadInput("An agent answers in words: `text.format` is text, or left out. Nothing was sent.")
    if body.previous_response_id and body.conversation:
        raise BadInput("Give `previous_response_id` or `conversation`, not both. Nothing was sent.")


def messages_of(given: str | Sequence[Mapping[str, Any]], instructions: str | None = None) -> list[dict[str, Any]]:
    """Return the messages in the input of a response."""
    listed: Sequence[Mapping[str, Any]] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages: list[dict[str, Any]] = [{"role": "system", "content": instructions}] if instructions else []
    for item in listed:
        kind = str(item.get("type", "message"))
        messages.append({**item, "role": _ROLES.get(kind, item.get("role", kind))})
    return messages


async def _request_of(call: HttpCall, body: ResponseBody) -> ResentRequest:
    """Return the request in terms of the conversation that it belongs to."""
    root = stream_of_model(call, body.model)
    history = client_history(messages_of(body.input, body.instructions))
    request = ResentRequest(
        root=root, name="", prior=history.prior, question=history.question, note=history.note,
        speaker=history.speaker, user=body.user or "", attempt=attempt_of(call),
    )  # fmt: skip
    if body.previous_response_id:
        name, known = await _after_response(call, root, body.previous_response_id)
        return request._replace(name=name, prior=[*known, *history.prior])
    if body.conversation:
        name = body.conversation if isinstance(body.conversation, str) else body.conversation.id
        return request._replace(name=name, prior=[*await _in_conversation(call, root, name, history), *history.prior])
    return request._replace(name=conversation_key(call, body.metadata))


async def _after_response(call: HttpCall, root: str, given: str) -> tuple[str, Sequence[ExchangeDigests]]:
    """Return the conversation of a response, and its exchanges up to there."""
    place = await run_of_id(call, given)
    talk = await call.service.conversations.of(place.stream)
    name = talk.conversation_of(place.run)
    exchanges = talk.exchanges(name or "")
    known = next((n for n, one in enumerate(exchanges) if one.run == place.run), None)
    if name is None or known is None:
        raise not_found(f"response {given[:80]!r}")
    if root_of(place.stream) != root and place.stream != root:
        raise BadInput(
            f"The response {given[:80]!r} is of the agent {call.shown(root_of(place.stream))!r}: give that as `model`. "
            "Nothing was sent."
        )
    return name, [one.digests for one in exchanges[: known + 1] if not one.hidden]


async def _in_conversation(
    call: HttpCall, root: str, name: str, history: ClientHistory
) -> Sequence[ExchangeDigests | ClientExchange]:
    """Return what was said in a conversation before a question. The file of the conversation learns its agent."""
    folder = ConversationFolder(call.service.system.store.root)
    found = await call.service.ports.aside(folder.read, name, call.names.tenant)
    if found is None:
        raise not_found(f"conversation {name[:80]!r}")
    if not found.stream:
        await call.service.ports.aside(folder.write, msgspec.structs.replace(found, stream=root))
    elif found.stream != root:
        raise BadInput(
            f"The conversation is held with the agent {call.shown(found.stream)!r}: give that as `model`. Nothing was "
            "sent."
        )
    exchanges = await newest_branch(call, root, name)
    if not exchanges:
        seeds = [*messages_of(found.items), {"role": "user", "content": history.question}]
        return client_history(seeds).prior if found.items else ()
    if _repeats(call, exchanges[-1], history.question):
        exchanges = exchanges[:-1]
    return [one.digests for one in exchanges]


def _repeats(call: HttpCall, last: LoggedExchange, question: str) -> bool:
    """Return True if a request is the client's own repeat of its newest question."""
    return repeat_of(call.request.headers) is not None and last.asked == question_digest(question)


async def show_response(call: HttpCall) -> Any:
    """Show a response, or stream it from an event on: the rest of it, and what is to come."""
    query: ResponseQuery = call.query
    place = await run_of_id(call, call.params["response"])
    found = await _found(call, place)
    make = response_maker(call, await _facts(call, place, found.input))
    if query.stream:
        items = joined_items(call.service, place.stream, place.run, found)
        after = -1 if query.starting_after is None else query.starting_after
        events = response_events(items, item_id_of(place), make, after)
        return EventStreamResponse(call.service, call.caller, events, style=PLAIN_STYLE)
    if found.status == "running":
        return JsonResponse(make(found.records, None))
    end = ended_items(found)[-1]
    assert isinstance(end, RunEnded)
    return JsonResponse(make(found.records, end))


async def _facts(call: HttpCall, place: RunPlace, asked: Record) -> ResponseFacts:
    talk = await call.service.conversations.of(place.stream)
    name = talk.conversation_of(place.run) or ""
    exchanges = talk.exchanges(name)
    at = next((n for n, one in enumerate(exchanges) if one.run == place.run), 0)
    previous = exchanges[at - 1] if at else None
    earlier = "" if previous is None or previous.imported else id_of_run(RESPONSE, place.stream, previous.run)
    return ResponseFacts(place, asked_at=asked.recorded_at, previous=earlier, conversation=name)


async def _found(call: HttpCall, place: RunPlace) -> Any:
    found = await call.service.run_of(place.stream, place.run)
    if found is None:
        raise not_found(f"response {call.params['response'][:80]!r}")
    return found


async def cancel_response(call: HttpCall) -> Any:
    """Cancel a response that is at work. One that has ended stays as it is."""
    place = await run_of_id(call, call.params["response"])
    found = await _found(call, place)
    if found.status == "running":
        handle = call.service.system.handle(place.stream, by=call.caller.key_id)
        await handle.cancel(turn=found.input.turn)
    return await show_response(call)


async def delete_response(_: HttpCall) -> Any:
    """Refuse to delete a response: a log keeps what it acknowledged."""
    raise Refusal(
        501, "not-served",
        "Responses are records of an agent's log, which keeps them. `everlog erase` erases the content of records.",
    )  # fmt: skip


async def list_input_items(call: HttpCall) -> ItemList:
    """List what a response answers: the message of the user."""
    place = await run_of_id(call, call.params["response"])
    found = await _found(call, place)
    item = user_item(place, found.input.text or "")
    query: ItemsQuery = call.query
    shown: Sequence[MessageItem] = () if query.after == item.id else (item,)
    return ItemList(data=shown, first_id=item.id, last_id=item.id, has_more=False)


def user_item(place: RunPlace, text: str) -> MessageItem:
    """Return the message that a run answers."""
    return MessageItem(id=f"{item_id_of(place)}u", role="user", content=[TextPart(type="input_text", text=text)])
