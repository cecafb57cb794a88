"""`message_chatgpt`: a question to another model, which knows nothing of the conversation and keeps nothing."""

from collections.abc import Awaitable, Callable

import msgspec

from everlog.actors.formats import parse_reply
from everlog.actors.ports.agent_constants import WINDOW_TOKENS_MAX
from everlog.actors.ports.effects import Model
from everlog.events import FunctionError, ModelError

HelperCall = Callable[[str], Awaitable[str]]
"""From a question to its answer. Raises ModelError."""

PROMPT = (
    "You help another assistant that cannot ask you again. Answer briefly, in plain text: say what you know, say "
    "plainly what you do not know, and leave out greetings."
)
"""The system message of the question; the offline model knows such a question by its words."""


class HelperModel:
    """Somebody else to ask."""

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
    """What the model `name` says to `question`, asked afresh. Raises ModelError, for an empty answer too."""
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
    """For tools that are only looked at: nobody runs them."""
    raise NotImplementedError


def _request(name: str, question: str) -> bytes:
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    return msgspec.json.encode({"model": name, "messages": messages})
