"""Answer a front end's own prompt by the agent's model, without the agent: nothing of it is kept."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from everlog.actors.formats.parse_reply import words
from everlog.actors.hosting.agent_factory import models_through
from everlog.actors.reply import TokenCount
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.core.event_streams import EventStreamResponse
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.openai.chat_answers import DONE, PLAIN_STYLE, ChunkEncoder, completion
from everlog.interfaces.http.openai.chat_shapes import AnswerMessage, ChatBody, ChatDelta
from everlog.interfaces.http.openai.response_ids import COMPLETION


async def answer_alone(call: HttpCall, body: ChatBody, stream: str) -> Any:
    """Answer a request by the model of an agent. Raises UnknownAgent, ModelError."""
    system = call.service.system
    async with await system.view(stream) as view:
        name = (await view.context()).config.model
    model = models_through(system.ask, stream, system.store.root, "")(name)
    messages = [{"role": one.get("role"), "content": one.get("content")} for one in body.messages]
    answered = await model.ask(msgspec.json.encode({"model": name, "messages": messages}))
    said = words(answered.raw, window=0)
    now = call.service.ports.clock.now()
    shown, created = f"{COMPLETION}{call.service.ports.ids.new(now).replace('-', '')}", now // MICROSECONDS
    if body.stream:
        chunks = ChunkEncoder(shown, created, body.model)

        async def events() -> AsyncIterator[bytes]:
            yield chunks.of(ChatDelta(role="assistant", content=said.text))
            yield chunks.of(ChatDelta(), finish_reason="stop") + DONE

        return EventStreamResponse(call.service, call.caller, events(), style=PLAIN_STYLE)
    tokens = TokenCount(said.usage.prompt, said.usage.completion, said.usage.cached)
    message = AnswerMessage(role="assistant", content=said.text, refusal=None)
    return completion(shown, created, body.model, message, tokens)
