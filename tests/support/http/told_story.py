"""A short life of an agent, for tests and pictures of the console: a man, his dog, his town, and a call that waits."""

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.served_store import Served

MESSAGES = (
    "Hi, I am Chad. I repair harpsichords in Lisbon.",
    "Rex died in March. He was fourteen, and the best dog I know of.",
    "Can we sail on Sunday?",
    "What should I do in March?",
)
LAST = "I move to Porto next week."


def _append(text: str) -> tuple[str, dict[str, object]]:
    return "core_memory_append", {"name": "human", "content": text, "request_heartbeat": True}


def story_model() -> Script:
    """Return the model of the story."""
    move = {"name": "human", "old_content": "Lives in Lisbon", "new_content": "Lives in Porto"}
    return Script([
        completion(_append("Name: Chad. Lives in Lisbon, and repairs harpsichords."), thought="His name and trade."),
        says("Good to meet you, Chad. A harpsichord in Lisbon must suffer from the salt air.", thought="Greet him."),
        completion(_append("His dog Rex died in March."), thought="This is serious. I keep it, and am kind."),
        says("I am so sorry about Rex. Fourteen years is a whole life together.", thought="Be brief."),
        says("Sunday looks calm: light wind from the north."),
        says("Walk along the river in Lisbon, slowly. It will be the first March without Rex.", thought="Be careful."),
        completion(words="Chad, who repairs harpsichords in Lisbon, lost his dog Rex in March."),
        completion(("core_memory_replace", move), thought="He moves: I ask before I change it."),
        says("I asked for your approval before I change that."),
        *(says("Porto has harpsichords, too.") for _ in range(4)),
    ])  # fmt: skip


async def told(server: Served) -> None:
    """Let sam live the story. Its last call waits for a person."""
    sam = await server.system.agent("sam")
    for text in MESSAGES:
        await sam.ask(text)
    await sam.summarize()
    rule = {"approvals": [{"function": "core_memory_replace", "decision": "ask"}]}
    await server.call("PATCH", "/agents/sam", {"settings": rule}, status=200)
    await sam.ask(LAST)
