"""A bot of lines: what it reads it says to sam, what sam does it prints. `python docs/examples/front_end.py FOLDER`"""

import asyncio
import sys

from everlog.actors.api import open_system
from everlog.events import Call, EverlogError
from everlog.interfaces.common.front_end import FrontEnd, Notice
from everlog.interfaces.output.narrator import Narrator


class Bot(FrontEnd):
    def assistant_message(self, text: str, name: str) -> None:
        print(f"{name}>", text)

    def function_message(self, call: Call, text: str, *, ok: bool) -> None:
        print("+" if ok else "-", call.name, text)

    def notice(self, about: Notice, text: str) -> None:
        if about != "model_failed":  # the error says it
            print("*", text)

    def error(self, error: EverlogError) -> None:
        print("!", error)


async def talk(folder: str) -> None:
    interface = Narrator(Bot())
    async with open_system(folder) as system:
        agent = await system.agent("sam")
        for line in sys.stdin:
            try:
                async for record in agent.send(line.strip()):
                    interface.on_records([record])
            except EverlogError as error:
                interface.on_error(error)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1]))
