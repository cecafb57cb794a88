"""Two agents, talked to at once. `python docs/examples/talk.py FOLDER`"""

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


async def meet(system: AgentSystem, name: str, words: str) -> str:
    """Say something to an agent, and wait for what it says."""
    agent = await system.agent(name)
    said = [record.text async for record in agent.send(words) if record.type == "message_sent"]
    return f"{name}: {said[-1]}"


async def main(folder: str) -> None:
    async with open_system(folder, tools=[tide]) as system:
        await meet(system, "ann", "Hi, my name is Chad and I sail")
        for line in await asyncio.gather(
            meet(system, "ann", "What is my name?"),
            meet(system, "bob", "What is my name?"),
        ):
            print(line)
        view = system.view("ann")
        print([row["text"] for row in view.rows("recall_memory") if row["role"] == "user"])
        view.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
