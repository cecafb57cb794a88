"""`message_chatgpt`: a question to another model, which does not see the conversation and remembers nothing.

Used by `extras.py`; `local_system.py` supplies the model.
"""

from collections.abc import Awaitable, Callable

import msgspec

from everlog.actors.formats import parse_reply
from everlog.actors.ports.agent_constants import WINDOW_TOKENS_MAX
from everlog.actors.ports.effects import Model
from everlog.events import FunctionError, ModelError

HelperCall = Callable[[str], Awaitable[str]]
"""Sends a question and returns its answer. Raises ModelError."""

PROMPT = (
    "You help another assistant that cannot ask you again. Answer briefly, in plain text: say what you know, say "
    "plainly what you do not know, and leave out greetings."
)
"""System message of the question; the offline model recognizes such a request by this text."""


class HelperModel:
    """The other model, as a function for the agent."""

    def __init__(self, ask: HelperCall) -> None:
        self._ask = ask

    async def message_chatgpt(self, message: str) -> str:
        """Ask another model a question. It sees nothing but this message, and remembers nothing afterwards.

        Args:
            message: The question, with everything that is needed to answer it.
        """
        try:
            return await self._ask(message)
        except ModelError as error:
            raise FunctionError(f"The other model gave no answer: {error}") from error


async def answer(models: Callable[[str], Model], name: str, question: str) -> str:
    """Ask the model `name` one question, without any history. Raise ModelError, also for an empty answer."""
    model = models(name)
    try:
        raw = (await model.ask(_request(name, question))).raw
    finally:
        await model.close()
    text = parse_reply.words(raw, WINDOW_TOKENS_MAX).text.strip()
    if not text:
        raise ModelError(f"The model {name!r} answered without a word. Ask in other words.", kind="rejected")
    return text


async def no_helper(_question: str) -> str:
    """Stand in for the helper where tools are only inspected and never run."""
    raise NotImplementedError


def _request(name: str, question: str) -> bytes:
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    return msgspec.json.encode({"model": name, "messages": messages})
