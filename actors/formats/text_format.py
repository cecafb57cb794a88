"""Text calling format: one prompt with turns in ChatML, and a call as JSON in the model's text. Pure.

The reply is not prefilled: a model may think first, and all of its text is read. A `<|` in any text is written as
`< |`, so that no text can end its turn or begin another. Used through `calling.py`. Raise `agent_constants.RENDERER` if
requests change, and `parse_reply.READER` if a reply may be parsed differently.
"""

from collections.abc import Iterable, Sequence

import msgspec

from everlog.actors.formats import json_call_format
from everlog.actors.formats.calling_format import AssistantMessage, ParsedReply, options, summary_options
from everlog.actors.formats.chat_messages import ChatMessages
from everlog.actors.prompt.context import Context

SHAPE = json_call_format.CallSyntax(within=True)
START, END = "<|im_start|>", "<|im_end|>"
STOP = (END, START)

_json = msgspec.json.Encoder()


class TextFormat:
    """Calling format that uses `prompt`."""

    def shown(self, context: Context, system: str) -> ChatMessages:
        """Return the turns of the prompt."""
        return json_call_format.chat(context, system, SHAPE)

    def described(self, schemas: Sequence[str]) -> str:
        """Describe the functions for the system message."""
        return json_call_format.describe_functions(tuple(schemas), SHAPE)

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """Return a completion request with one prompt."""
        chat = self.shown(context, system)
        body = _body(context.model, ((message.role, message.content) for _, message in chat))
        return chat, body[:-1] + options(context) + b"}", b""

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """Return a completion request with two turns."""
        body = _body(context.summarizer, (("system", instructions), ("user", transcript)))
        return body[:-1] + summary_options(context) + b"}"

    def read(self, said: AssistantMessage) -> ParsedReply:
        """Parse the calls in the text, up to the mark that ends the turn."""
        own, repairs = text_before_stop(said.text)
        reading = json_call_format.read_calls(msgspec.structs.replace(said, text=own), SHAPE)
        return msgspec.structs.replace(reading, repairs=[*repairs, *reading.repairs])


def text_before_stop(text: str) -> tuple[str, list[str]]:
    """Return the text of the model's own turn, and the repair steps: not every server stops at the marks."""
    own = text.removeprefix(f"{START}assistant\n")
    end = min((place for mark in STOP if (place := own.find(mark)) >= 0), default=len(own))
    return own[:end], ["stop"] if own[:end] != text else []


def _body(model: str, turns: Iterable[tuple[str, str]]) -> bytes:
    written = "".join([f"{START}{role}\n{_escaped(content)}{END}\n" for role, content in turns])
    return _json.encode({"prompt": f"{written}{START}assistant\n", "model": model, "stop": STOP})


def _escaped(words: str) -> str:
    return words.replace("<|", "< |")
