"""Encode the answer of an agent as a chat completion, whole or in chunks."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from everlog.actors.answer_text import AnswerText
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.reply import Reply, TokenCount
from everlog.events import ModelReply, Record, event_of
from everlog.interfaces.http.conversations.conversation_run import ConversationRun
from everlog.interfaces.http.core.event_streams import StreamStyle
from everlog.interfaces.http.core.routes import HttpCall, encode
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.openai.chat_shapes import (
    AnswerMessage,
    ChatChoice,
    ChatChunk,
    ChatCompletion,
    ChatDelta,
    ChatUsage,
    ChunkChoice,
    PromptDetails,
)
from everlog.interfaces.http.openai.response_ids import COMPLETION, id_of_run
from everlog.interfaces.http.openai.surface import error_body
from everlog.interfaces.http.runs.run_items import RunEnded, RunItem, RunLeft
from everlog.interfaces.http.runs.run_reading import reply_of

DONE = b"data: [DONE]\n\n"
PLAIN_STYLE = StreamStyle(retry=False, stop=b"")
"""Streams of OpenAI's clients, which understand comments, but neither `retry` nor `id`."""


def usage_of_tokens(tokens: TokenCount) -> ChatUsage:
    """Return the tokens of a run, as OpenAI's clients read them."""
    return ChatUsage(
        prompt_tokens=tokens.input, completion_tokens=tokens.output, total_tokens=tokens.total,
        prompt_tokens_details=PromptDetails(cached_tokens=tokens.cached),
    )  # fmt: skip


def completion(id: str, created: int, model: str, message: AnswerMessage, tokens: TokenCount) -> ChatCompletion:
    """Return a whole answer."""
    return ChatCompletion(
        id=id, created=created, model=model, choices=[ChatChoice(message=message)], usage=usage_of_tokens(tokens)
    )


def completion_of(run: ConversationRun, model: str, created: int, reply: Reply) -> ChatCompletion:
    """Return the answer of a run that has ended."""
    message = AnswerMessage(
        role="assistant", content=reply.text, refusal=None, reasoning_content=thoughts_of(reply.records)
    )
    return completion(id_of_run(COMPLETION, run.stream, run.run), created, model, message, reply.tokens)


def thoughts_of(records: Sequence[Record]) -> str:
    """Return the thoughts of a run, one per line."""
    events = (event_of(record) for record in records if record.type == ModelReply.kind)
    return "\n".join(event.text for event in events if isinstance(event, ModelReply) and event.text)


async def chunks_of(
    call: HttpCall, run: ConversationRun, model: str, created: int, items: AsyncIterator[RunItem], *, usage: bool
) -> AsyncIterator[bytes]:
    """Yield the events of a stream: text and thoughts as they come, and one end."""
    chunks = ChunkEncoder(id_of_run(COMPLETION, run.stream, run.run), created, model)
    records: list[Record] = []
    yield chunks.of(ChatDelta(role="assistant", content=""))
    answer, thoughts = AnswerText(), _ThoughtText()
    async for item in items:
        sent = b""
        if isinstance(item, Preview):
            sent = chunks.text(answer.preview(item)) + chunks.thought(thoughts.preview(item))
        elif isinstance(item, RunLeft | RunEnded):
            if item.error is not None:
                yield data(error_body(problem_for(item.error, call.names))) + DONE
                return
            end = chunks.of(ChatDelta(), finish_reason="stop")
            if usage:
                end += chunks.usage(usage_of_tokens((await reply_of(call, run.stream, run.run, records)).tokens))
            yield end + DONE
        else:
            records += item
            sent = b"".join(chunks.text(answer.record(r)) + chunks.thought(thoughts.record(r)) for r in item)
        if sent:
            yield sent


def data(body: msgspec.Struct) -> bytes:
    """Return one event without a name, as OpenAI's clients read it."""
    return b"data: %s\n\n" % encode(body)


class _ThoughtText:
    """Thoughts of a run as they grow: those that were previewed are not repeated by their record."""

    def __init__(self) -> None:
        self._shown = ""

    def preview(self, preview: Preview) -> str:
        """Return the text that a preview adds."""
        if preview.kind != "thought":
            return ""
        self._shown += preview.text
        return preview.text

    def record(self, record: Record) -> str:
        """Return the text that a record adds."""
        if record.type != ModelReply.kind:
            return ""
        said = event_of(record)
        text = said.text if isinstance(said, ModelReply) else ""
        shown, self._shown = self._shown, ""
        rest = text.removeprefix(shown)
        return f"{rest}\n" if text else ""


class ChunkEncoder:
    """Events of one stream."""

    def __init__(self, id: str, created: int, model: str) -> None:
        self._id, self._created, self._model = id, created, model

    def of(self, delta: ChatDelta, finish_reason: str | None = None) -> bytes:
        """Return an event with a part of the answer."""
        return self._event([ChunkChoice(delta=delta, finish_reason=finish_reason)])

    def text(self, text: str) -> bytes:
        """Return an event with more of the answer; nothing for an empty text."""
        return self.of(ChatDelta(content=text)) if text else b""

    def thought(self, text: str) -> bytes:
        """Return an event with more of the thoughts; nothing for an empty text."""
        return self.of(ChatDelta(reasoning_content=text)) if text else b""

    def usage(self, usage: ChatUsage) -> bytes:
        """Return the event with the tokens, which has no choice."""
        return self._event([], usage)

    def _event(self, choices: Sequence[ChunkChoice], usage: ChatUsage | None = None) -> bytes:
        return data(
            ChatChunk(
                id=self._id, object="chat.completion.chunk", created=self._created, model=self._model,
                choices=choices, usage=usage,
            )
        )  # fmt: skip
