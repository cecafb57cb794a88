"""Text calling formats: one prompt with marked turns, and a call as JSON in the model's text. Pure.

The reply is not prefilled: a model may think first, and all of its text is read. Used through `calling.py`. Raise
`agent_constants.RENDERER` if requests change, and `parse_reply.READER` if a reply may be parsed differently.
"""

from collections.abc import Iterable, Sequence

import msgspec

from everlog.actors.formats import json_call_format
from everlog.actors.formats.calling_format import AssistantMessage, ParsedReply, options, summary_options
from everlog.actors.formats.chat_messages import ChatMessages
from everlog.actors.formats.turn_marks import TurnMarks
from everlog.actors.prompt.context import Context

SHAPE = json_call_format.CallSyntax(within=True)
_json = msgspec.json.Encoder()


class TextFormat:
    """Calling format that uses `prompt`."""

    def __init__(self, marks: TurnMarks) -> None:
        self._marks = marks

    def shown(self, context: Context, system: str) -> ChatMessages:
        """Return the turns of the prompt."""
        return json_call_format.chat(context, system, SHAPE)

    def described(self, schemas: Sequence[str]) -> str:
        """Describe the functions for the system message."""
        return json_call_format.describe_functions(tuple(schemas), SHAPE)

    def body(self, context: Context, system: str, schemas: Sequence[str]) -> tuple[ChatMessages, bytes, bytes]:
        """Return a completion request with one prompt."""
        chat = self.shown(context, system)
        body = self._body(context.model, ((message.role, message.content) for _, message in chat))
        return chat, body[:-1] + options(context) + b"}", b""

    def summary(self, context: Context, instructions: str, transcript: str) -> bytes:
        """Return a completion request with two turns."""
        body = self._body(context.summarizer, (("system", instructions), ("user", transcript)))
        return body[:-1] + summary_options(context) + b"}"

    def read(self, said: AssistantMessage) -> ParsedReply:
        """Parse the calls in the text, up to the mark that ends the turn."""
        own, repairs = text_before_stop(said.text, self._marks)
        reading = json_call_format.read_calls(msgspec.structs.replace(said, text=own), SHAPE)
        return msgspec.structs.replace(reading, repairs=[*repairs, *reading.repairs])

    def _body(self, model: str, turns: Iterable[tuple[str, str]]) -> bytes:
        return _json.encode({"prompt": self._marks.prompt(turns), "model": model, "stop": self._marks.stop})


def text_before_stop(text: str, marks: TurnMarks) -> tuple[str, list[str]]:
    """Return the text of the model's own turn, and the repair steps."""
    own = marks.own_turn(text)
    return own, ["stop"] if own != text else []
