"""What a program keeps in an agent's archival memory. `python docs/examples/archive.py FOLDER`"""

import asyncio
import sys

from everlog import open_system


async def main(folder: str) -> None:
    async with open_system(folder) as system:
        agent = await system.agent("sam")
        memory_id = await agent.archive.insert("The gold is under the oak.", ["gold"])
        await agent.archive.update(memory_id, "The gold is under the elm.")
        view = system.view("sam")
        page = await view.searcher().archival("where is the gold", page=0)
        print([(hit.text, list(hit.tags)) for hit in page.results])
        await agent.archive.delete(memory_id)
        view.close()
        view = system.view("sam")
        for as_of in (view.head.seq - 2, view.head.seq):
            page = await view.searcher(as_of).archival("gold", page=0)
            print(f"as of seq {as_of}:", [hit.text for hit in page.results])
        view.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
