"""The command line as a program whose model's replies come from a test, over a connection."""

import asyncio
import sys

import msgspec

from everlog.actors.ports.effects import DeltaCallback, ModelResponse, ReplyDelta
from everlog.interfaces.cli.main import main
from everlog.interfaces.common.front_end import CommandEnvironment


class Spoken:
    """A model with a connection for each request; each line is a delta, or the whole reply if it is a string."""

    name = "spoken"

    def __init__(self, port: int) -> None:
        self._port = port

    async def ask(self, request: bytes, *, on_delta: DeltaCallback | None = None, **_: object) -> ModelResponse:
        del request
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while True:
                line = msgspec.json.decode(await reader.readline(), type=ReplyDelta | str)
                if isinstance(line, str):
                    return ModelResponse(line, 1)
                if on_delta is not None:
                    on_delta(line)
        finally:
            writer.close()

    async def close(self) -> None:
        pass


if __name__ == "__main__":
    port, *argv = sys.argv[1:]
    sys.exit(main(argv, world=CommandEnvironment(model=lambda *_: Spoken(int(port)))))
