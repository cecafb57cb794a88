"""A town of ten agents for one day: they plan, meet, tell each other what they remember, and reflect in the evening.

    python docs/examples/town.py FOLDER                  in this process, with a clock of its own: always the same day
    python docs/examples/town.py FOLDER --runtime ray    in a cluster, tomorrow

No model is asked. Whoever speaks says what matters most of all that it remembers and that the listeners have not heard
from it; everybody in the same place is a witness and remembers it. So news travels: Isabella invites two people, and
in the evening the park is full. Whom the news reached, and when, is one query.
"""

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from everlog import (
    AgentRef,
    AgentSystem,
    ImportedMessage,
    InitialBlock,
    MessageSent,
    PlanItem,
    Ports,
    Settings,
    UserMessage,
    open_system,
)
from everlog.testing import CountingIds, ManualClock

DAY = datetime(2026, 5, 4, tzinfo=UTC)
HOURS = range(8, 19)
"""Hours of the day at which people meet."""
PARTY, EVENING = 17, 21
"""Hours of the party, and of the time to reflect."""
TOLD_MAX = 2
"""Number of people who speak in one place in one hour."""


class Person(NamedTuple):
    """One person of the town: where it is at which hour, and what it has to tell."""

    work: str
    lunch: str
    news: Sequence[tuple[int, str]]
    """Hour from which it knows something of its own, and what it says of it."""


PEOPLE: Mapping[str, Person] = {
    "Isabella": Person("cafe", "cafe", [(8, "I am planning a party in the park today at 17:00, please come!")]),
    "Klaus": Person("library", "cafe", [(8, "I live in Oak Street."), (14, "I moved to Mill Lane.")]),
    "Maria": Person("library", "cafe", [(8, "I love physics.")]),
    "Sam": Person("town hall", "cafe", [(9, "I want to become mayor, and the vote is in 3 weeks.")]),
    "Jennifer": Person("studio", "park", [(8, "My favourite colour is blue.")]),
    "Tom": Person("shop", "park", [(10, "I do not trust Sam with the money of the town.")]),
    "Lea": Person("school", "park", [(8, "I have a dog named Rex.")]),
    "Carlos": Person("shop", "cafe", [(12, "I work at the shop, and I am proud of it.")]),
    "Ayesha": Person("library", "park", [(8, "I am writing a thesis on language.")]),
    "Giorgio": Person("town hall", "park", [(11, "I am going to count the votes next week.")]),
}


class Wish(NamedTuple):
    """Something that a person would say."""

    name: str
    said: str
    news: str
    """The same without who said it first."""
    importance: int


class Town:
    """One day of some people. `at` is the time of the town."""

    def __init__(
        self,
        system: AgentSystem,
        start: datetime,
        clock: ManualClock | None,
        people: Mapping[str, Person] = PEOPLE,
        hours: Sequence[int] = HOURS,
    ) -> None:
        self.system, self.start, self.at = system, start, start
        self._clock, self._people, self._hours = clock, people, hours
        self.agents: dict[str, AgentRef] = {}
        self.places: dict[str, str] = dict.fromkeys(people, "home")
        self.plans: dict[str, int] = {}
        self.invited: set[str] = {"Isabella"}
        self.told: dict[str, set[tuple[str, str]]] = {name: set() for name in people}
        """Of each person, with whom it has spoken of which news."""
        self.transcript: list[str] = []

    async def live(self) -> list[str]:
        """Live one day, and return its transcript."""
        await self._wake()
        before = 0
        for hour in self._hours:
            self._set_time(hour)
            await self._tell_own_news(before, hour)
            before = hour
            await self._move(hour)
            for place in sorted({*self.places.values()} - {"home"}):
                await self._meet(place)
        self._set_time(EVENING)
        await self._reflect()
        return self.transcript

    def _set_time(self, hour: int, minute: int = 0) -> None:
        self.at = self.start + timedelta(hours=hour, minutes=minute)
        if self._clock is not None:
            self._clock.skip((self.at - self._clock.time).total_seconds())

    def _note(self, place: str, text: str) -> None:
        self.transcript.append(f"{self.at:%H:%M}  {place:<9}  {text}")

    async def _wake(self) -> None:
        """Create everybody, each with a plan for the day."""
        self._set_time(7)
        for name, person in self._people.items():
            persona = InitialBlock("persona", f"You are {name}. You live in a small town.")
            settings = Settings(blocks=[persona])
            self.agents[name] = agent = await self.system.agent(name, settings)
            waking = await self._witness(agent, "", f"Today I work at the {person.work}.", own=True)
            hours = [(8, 4, person.work), (12, 1, person.lunch), (13, 4, person.work), (17, 1, "home")]
            items = [self._item(f"Be at the {place}", hour, length, place) for hour, length, place in hours]
            self.plans[name] = await agent.memories.make_plan(f"The day of {name}", items, sources=[waking])

    def _item(self, text: str, hour: int, length: int, place: str) -> PlanItem:
        start = self.start + timedelta(hours=hour)
        return PlanItem(text=text, start=int(start.timestamp()) * 1_000_000, minutes=60 * length, place=place)

    async def _tell_own_news(self, before: int, hour: int) -> None:
        """Let those who have news since the hour `before` remember it: they will tell it at the next meeting."""
        for name, person in self._people.items():
            for since, text in person.news:
                if before < since <= hour:
                    await self._witness(self.agents[name], "", text, own=True)

    async def _move(self, hour: int) -> None:
        """Move everybody to where the newest plan for this hour says."""
        rows = (await self.system.sql(PLANNED.format(at=(self.start + timedelta(hours=hour)).isoformat()))).to_pylist()
        planned = {row["agent_id"]: row["place"] for row in rows}
        for name in self._people:
            place = planned.get(name, "home")
            if place != self.places[name]:
                self.places[name] = place
                if place != "home":
                    self._note(place, f"{name} arrives")

    async def _meet(self, place: str) -> None:
        """Let those in a place tell each other something, at most TOLD_MAX of them, what matters most first."""
        present = [name for name in self._people if self.places[name] == place]
        if len(present) == 1:
            return
        wishes = [await self._wish(name, [other for other in present if other != name]) for name in present]
        heard: set[str] = set()
        for wish in sorted((wish for wish in wishes if wish), key=lambda wish: (-wish.importance, wish.name)):
            if len(heard) < TOLD_MAX and wish.news not in heard:
                heard.add(wish.news)
                self._set_time(self.at.hour, 10 * len(heard))
                await self._say(place, wish, [other for other in present if other != wish.name])
        self._set_time(self.at.hour)

    async def _say(self, place: str, wish: Wish, others: Sequence[str]) -> None:
        """Let everybody in a place remember what one of them says, and react to it."""
        self._note(place, f"{wish.name}: {wish.said}")
        self.told[wish.name] |= {(other, wish.news) for other in others}
        for other in others:
            self.told[other].add((wish.name, wish.news))
            seq = await self._witness(self.agents[other], wish.name, wish.said)
            await self._react(other, wish.name, wish.said, seq)

    async def _wish(self, name: str, others: Sequence[str]) -> Wish | None:
        """Return what matters most of all that a person remembers and has not spoken of with one of the others."""
        ranked = await self.agents[name].memories.search("", 20, mode="paper", kinds=["message"], now=self.at)
        for found in ranked.results:
            item = found.item
            author, _, quoted = item.text.partition(" said: ")
            author, news = (author, quoted) if quoted else (item.name or name, item.text)
            new = [other for other in others if (other, news) not in self.told[name] and other != author]
            if new and not news.startswith("Today") and (author != name or not quoted):
                return Wish(name, news if author == name else f"{author} said: {news}", news, item.importance)
        return None

    async def _witness(self, agent: AgentRef, speaker: str, text: str, *, own: bool = False) -> int:
        """Let an agent remember what was said, and return the seq of the record."""
        if own:
            event: MessageSent | UserMessage = MessageSent(text=text, name=speaker or agent.agent_id, imported=True)
        else:
            event = UserMessage(text=text, name=speaker, imported=True)
        report = await agent.import_messages([ImportedMessage(event, self.at)])
        return report.records[0].seq

    async def _react(self, name: str, speaker: str, said: str, seq: int) -> None:
        """Change the plan of a person who hears of the party for the first time."""
        if "party" not in said or name in self.invited or self.at.hour >= PARTY:
            return
        self.invited.add(name)
        memories = self.agents[name].memories
        await memories.change_plan(self.plans[name], 3, "cancelled", f"{speaker} told me of the party", sources=[seq])
        party = [self._item("Go to the party", PARTY, 2, "park")]
        await memories.make_plan("The party", party, sources=[seq])

    async def _reflect(self) -> None:
        """Let everybody conclude facts and insights from the day."""
        for name, agent in self.agents.items():
            await agent.memories.derive("facts")
            await agent.memories.derive("reflection")
            for insight in (await agent.memories.list(kinds=["insight"]))[:1]:
                self._note("home", f"{name} thinks: {insight.text}")


PLANNED = """
SELECT agent_id, arg_max(place, plan) AS place FROM plan_items
WHERE status = 'planned' AND starts_at <= TIMESTAMPTZ '{at}'
    AND starts_at + minutes * INTERVAL 1 MINUTE > TIMESTAMPTZ '{at}'
GROUP BY agent_id
"""
HEARD = """
SELECT agent_id, min(said_at) AS heard_at, arg_min(name, said_at) AS from_whom
FROM memories WHERE kind = 'message' AND contains(text, 'party') GROUP BY agent_id ORDER BY heard_at, agent_id
"""


def pages(heard: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield a line for each person who heard of the party."""
    for row in heard:
        yield f"{row['heard_at']:%H:%M}  {row['agent_id']} heard of the party from {row['from_whom']}"


async def main(folder: str, runtime: str) -> list[str]:
    """Live one day in a store, print it, and return what was printed."""
    clock = ManualClock(DAY) if runtime == "local" else None
    today = datetime.fromtimestamp(Ports().clock.now() // 1_000_000, UTC)
    tomorrow = today.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    ports = Ports(clock=clock, ids=CountingIds()) if clock else None
    async with open_system(folder, runtime=runtime, placement="shared", shards=1, timers=False, ports=ports) as system:
        lines = await Town(system, DAY if clock else tomorrow, clock).live()
        heard = (await system.sql(HEARD)).to_pylist()
    printed = [*lines, "", *pages(heard)]
    print("\n".join(printed))
    return printed


if __name__ == "__main__":
    given = argparse.ArgumentParser(description="Live one day in a town of ten agents.")
    given.add_argument("folder", metavar="FOLDER")
    given.add_argument("--runtime", choices=("local", "ray"), default="local")
    options = given.parse_args()
    asyncio.run(main(options.folder, options.runtime))
