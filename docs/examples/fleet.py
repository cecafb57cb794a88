"""Questions to all agents at once. `python docs/examples/fleet.py FOLDER`"""

import asyncio
import sys

from everlog import open_system

BUSIEST = """
SELECT agent_id, count(*) AS messages, max(length(text)) AS longest
FROM messages WHERE role = 'user' GROUP BY agent_id ORDER BY messages DESC, agent_id
"""
CALLED = "SELECT name, count(*) AS n FROM function_calls GROUP BY name ORDER BY n DESC, name"
CHANGED = (
    "SELECT label, count(DISTINCT agent_id) AS agents FROM memory_history WHERE operation <> 'created' GROUP BY label"
)


async def main(folder: str) -> None:
    async with open_system(folder) as system:
        for name, words in (("ann", "Hi, my name is Ann"), ("bob", "Hi, I am Bob and I paint"), ("ann", "I sail")):
            agent = await system.agent(name)
            async for _ in agent.send(words):
                pass
        for query in (BUSIEST, CALLED, CHANGED):
            print(system.sql(query).to_pylist())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
