"""A function of one's own, and two agents that are asked at once. `python docs/examples/own_tool.py FOLDER`"""

import asyncio
import sys

from everlog import AgentSystem, open_system, tool


@tool(effect="read_only")
def tide(place: str) -> str:
    """Tell when the tide is high.

    Args:
        place: Name of a place at the coast.
    """
    return f"High tide in {place} is at noon."


async def talk(system: AgentSystem, name: str, words: str) -> str:
    agent = await system.agent(name)
    reply = await agent.ask(words)
    return f"{name}: {reply} (functions: {', '.join(call.name for call in reply.calls) or 'none'})"


async def main(folder: str) -> None:
    async with open_system(folder, tools=[tide]) as system:
        print(await talk(system, "ann", "Hi, my name is Chad"))
        question = "What is my name?"
        for line in await asyncio.gather(talk(system, "ann", question), talk(system, "bob", question)):
            print(line)
        async with await system.view("ann") as ann:
            memory = await ann.memory()
            print(memory["human"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
