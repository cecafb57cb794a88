"""Fifty agents in shared hosts, and one question to all of them. `python docs/examples/fifty_agents.py FOLDER`"""

import asyncio
import sys

from everlog import open_system

NAMES = [f"agent-{number:02}" for number in range(50)]
REMEMBERED = """
SELECT operation, count(*) AS edits, count(DISTINCT agent_id) AS agents
FROM memory_history WHERE label = 'human' GROUP BY operation ORDER BY operation
"""


async def main(folder: str) -> None:
    async with open_system(folder, placement="shared") as system:
        async for made in system.create_many(NAMES):
            made.raise_for_error()
        answered = 0
        async for outcome in system.send_many((name, f"Hi, my name is Kim {name[-2:]}") for name in NAMES):
            if outcome.ok:
                answered += "Kim" in outcome.text
            else:
                print(f"{outcome.agent_id}: {outcome.error}")
        print(f"{answered} of {len(NAMES)} agents answered")
        table = await system.sql(REMEMBERED)
        print(table.to_pylist())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
