"""Run the MemGPT paper's conversation opener: a user logs in, and the agent speaks first.

Run as `python -m bench.paper.opener`; docs/explanation/benchmarks.md explains the keys of its figures.

The scenes are made here: for each user, lines about the user in core memory, and one thing that the user said long ago,
behind so much other talk that only `conversation_search` finds it. An opener uses the lines, or the past, if it has one
of their words; each is compared with the same opener and the other users' words too, which is the floor.
"""

import asyncio
import random
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.support.experiments import (
    AT_ONCE,
    Call,
    Chosen,
    Outcome,
    agents,
    mean,
    model_options,
    pose,
    results,
    shown,
    since_input,
)
from bench.support.harness import Figure, Line, line, noise, options, show, workspace
from bench.support.script import words
from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.conversation_import import ImportedMessage
from everlog.actors.agent_system import AgentSystem
from everlog.events import MessageSent, UserLogin, UserMessage
from everlog.store.embedding.embedder import embedder_of

FUNCTION = "conversation_search"
WINDOW_SCRIPT = 8_192
TALK = 240
"""Number of messages after what the user said long ago; with them the conversation overflows the window."""
START, PAUSE = datetime(2024, 3, 1, tzinfo=UTC), timedelta(minutes=1)
KEYS = ("opener_persona", "opener_past", "opener_sim_1", "opener_sim_3")

_HUMAN = re.compile(r"<human[^>]*>\n(.*?)\n</human>", re.DOTALL)


class Scene(msgspec.Struct, frozen=True):
    """One user, and the words by which an opener shows that it uses what is known."""

    lines: Sequence[str]
    """Lines about the user in core memory; the paper's persona lines. The past is about the first one."""
    line_words: Sequence[str]
    """Words of the lines that the past does not have."""
    past: str
    """Message of the user long ago."""
    past_words: Sequence[str]


SCENES = (
    Scene(["Chad restores violins.", "Chad has a twin in Lisbon.", "Chad is afraid of geese."],
          ["violins", "twin", "lisbon", "geese"],
          "On Friday I glue the cracked violin that the orchestra sent from Vienna.", ["cracked", "vienna"]),
    Scene(["Mira is a keeper of bees.", "Mira studies at the observatory.", "Mira never eats breakfast."],
          ["keeper", "observatory", "breakfast"],
          "My bees swarmed into the neighbour's chimney, and the sweep had to come.", ["chimney", "sweep"]),
    Scene(["Owen is the driver of a tram.", "Owen collects stamps.", "Owen has three daughters."],
          ["driver", "stamps", "daughters"],
          "The tram derailed at the museum stop, and I have to testify in August.", ["derailed", "testify"]),
    Scene(["Ines plays chess by mail.", "Ines swims in lakes.", "Ines bakes rye loaves."],
          ["mail", "swims", "rye"],
          "I play chess against a retired dentist who sacrificed his queen on a postcard.", ["dentist", "postcard"]),
    Scene(["Tomas is a grower of saffron.", "Tomas sings bass.", "Tomas walks with a cane."],
          ["grower", "bass", "cane"],
          "The saffron failed this year: voles ate two thousand bulbs.", ["voles", "bulbs"]),
    Scene(["Yuki is a designer of kites.", "Yuki is allergic to walnuts.", "Yuki repairs radios."],
          ["designer", "walnuts", "radios"],
          "For the contest I design a kite of carbon rods shaped like a manta.", ["carbon", "manta"]),
)  # fmt: skip


class Plan(msgspec.Struct, frozen=True):
    """Scale of the measurement."""

    scenes: Sequence[Scene] = SCENES
    chosen: Chosen = Chosen()


QUICK = Plan(scenes=SCENES[:3])

Opened = Sequence[tuple[Scene, Outcome]]


def human(scene: Scene) -> InitialBlock:
    """Return the block of core memory with the lines about the user."""
    return InitialBlock("human", "\n".join(scene.lines))


def next_call(messages: Sequence[dict[str, Any]]) -> Call:
    """Return the script's next call: a search for the first line about the user, then an opener of that line and of the
    first result.
    """
    block = _HUMAN.search(messages[0]["content"])
    about = block[1].splitlines()[0] if block else ""
    found = [shown(result)[1] for result in results(since_input(messages, "login")[1])]
    if not found:
        return FUNCTION, {"query": about, "page": 0, "request_heartbeat": True}
    return "send_message", {"message": " ".join(["Welcome back!", about, *found[0][:1]])}


def said(scene: Scene, chance: random.Random) -> list[ImportedMessage]:
    """Return the conversation: what the user said long ago, then other talk."""
    texts = [scene.past, *(words(chance, 30) for _ in range(TALK))]
    kinds = (UserMessage, MessageSent)
    return [
        ImportedMessage(kinds[number % 2](text=text, imported=True), START + number * PAUSE)
        for number, text in enumerate(texts)
    ]


async def measure(folder: Path, plan: Plan) -> Opened:
    """Let the user of each scene log in to an agent of its own."""
    scripted = plan.chosen.scripted
    room = asyncio.Semaphore(AT_ONCE if scripted else 1)

    async def one(system: AgentSystem, number: int, scene: Scene) -> tuple[Scene, Outcome]:
        window = WINDOW_SCRIPT if scripted else None
        async with room:
            settings = Settings(model=plan.chosen.model, window=window, blocks=[human(scene)])
            agent = await system.agent(f"user-{number}", settings)
            await agent.import_messages(said(scene, random.Random(number)))
            found = await pose(agent, UserLogin())
            await agent.unload()
            return scene, found

    async with agents(folder, plan.chosen, next_call) as system:
        return await asyncio.gather(*(one(system, number, scene) for number, scene in enumerate(plan.scenes)))


def uses(opener: str, some: Sequence[str]) -> bool:
    """Return True if the opener has one of these words."""
    return not set(re.findall(r"\w+", opener.lower())).isdisjoint(some)


def similarity(opener: str, scene: Scene, count: int) -> float:
    """Return the mean cosine similarity of an opener and the `count` lines about the user that are nearest to it: the
    paper's SIM-1 and SIM-3, with `wordllama-256`. 0 without an opener.
    """
    if not opener:
        return 0.0
    vectors = embedder_of().embed([opener, *scene.lines])
    return mean(sorted((float(vectors[0] @ vector) for vector in vectors[1:]), reverse=True)[:count])


def figures(opened: Opened) -> list[Figure]:
    """Return the parts of the openers that use the lines and the past, and SIM-1 and SIM-3.

    The floor of each is the same of the openers with the other users' scenes: what any opener would have.
    """
    own = [(found.answer, scene) for scene, found in opened]
    others = [(answer, other) for answer, scene in own for _, other in own if other is not scene]
    return [
        _figure("opener_persona", [[float(uses(a, s.line_words)) for a, s in some] for some in (own, others)]),
        _figure("opener_past", [[float(uses(a, s.past_words)) for a, s in some] for some in (own, others)]),
        _figure("opener_sim_1", [[similarity(a, s, 1) for a, s in some] for some in (own, others)]),
        _figure("opener_sim_3", [[similarity(a, s, 3) for a, s in some] for some in (own, others)]),
    ]


def _figure(key: str, scores: Sequence[Sequence[float]]) -> Figure:
    """Return the mean of the openers' own scores; the floor is the mean of the others."""
    own, others = scores
    return Figure(key, mean(own), "ratio", mean(others))


def report(plan: Plan) -> None:
    """Measure what `plan` asks for and print it."""
    with workspace() as folder:
        before = noise(folder)
        opened = asyncio.run(measure(folder / "store", plan))
    found = figures(opened)
    rows = [line(one, "1" if one.key in KEYS[:2] else "", f"{len(opened)} openers") for one in found]
    rows.append(Line("found by words alone", f"{sum(one.by_words for _, one in opened)} pages", "", "0"))
    rows.append(Line("failed", f"{sum(one.failed for _, one in opened)} openers", "", "0", plan.chosen.model))
    show("opener", before, found, rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    about = "Use of core memory and of the past when the agent speaks first."
    args = options("paper.opener", about, argv, model_options)
    plan = QUICK if args.quick else Plan()
    report(msgspec.structs.replace(plan, chosen=Chosen(args.model, args.base_url)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
