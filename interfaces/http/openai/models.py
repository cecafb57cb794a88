"""Offer each agent as a model of OpenAI's API."""

from everlog.events import UnknownAgent
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.conversations.conversation_run import is_branch
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.openai.chat_shapes import ModelList, ModelShape


async def list_models(call: HttpCall) -> ModelList:
    """List the agents that a client can talk to; branches of conversations are left out."""
    store = call.service.system.store

    def listed() -> list[ModelShape]:
        names = [name for name in store.register_files.scan().routes if call.names.owns(name) and not is_branch(name)]
        return [shape for name in names if (shape := _shape(call, name)) is not None]

    return ModelList(data=await call.service.ports.aside(listed))


async def show_model(call: HttpCall) -> ModelShape:
    """Show an agent as a model."""
    shape: ModelShape | None = await call.service.ports.aside(_shape, call, stream_of_model(call, call.params["model"]))
    if shape is None:
        raise UnknownAgent(f"There is no agent {call.params['model']!r} here.")
    return shape


def stream_of_model(call: HttpCall, model: str) -> str:
    """Return the name in the store of the agent that a client means by a model."""
    return call.service.system.store.stream_of(call.names.inner(model))


def _shape(call: HttpCall, stream: str) -> ModelShape | None:
    """Return an agent as a model; None for one without a log, and for one that was deleted."""
    reader = call.service.system.store.reader(stream)
    first = next(reader.read(stream, 1, 1), None)
    if first is None:
        return None
    return ModelShape(id=call.shown(stream), created=first.recorded_at // MICROSECONDS)
