"""A bot for Matrix: each room is an agent, which everybody in the room talks to.

    MATRIX_TOKEN=... EVERLOG_KEY=... python docs/examples/matrix_bot.py MATRIX_URL EVERLOG_URL

Invite it to a room. It keeps nothing of its own, so it can be killed at any moment. A message of the room is sent under
an id that is made of its Matrix id: the agent's log takes it once. Whatever the agent says is read from its log, also
what a timer made it say, and sent under the id of its record: the room takes it once. The place in the log up to which
the room has it, and the place in Matrix up to which the agents have it, are account data of the bot, in Matrix.
"""

import asyncio
import os
import sys
from contextlib import suppress
from hashlib import sha256
from urllib.parse import quote

import httpx2

from everlog import EverlogError, ModelError, Ports, UserMessage, connect_system
from everlog.events import derived_id

WAIT_MS = int(os.environ.get("MATRIX_WAIT_MS", "20000"))
"""Time for which Matrix keeps a question for news open, milliseconds; words of a timer wait for it at most."""
FRESH_MS, PERIOD_MS = 20 * 3600_000, 12 * 3600_000
"""Age up to which a message has an id of its own time: a log takes ids of a day. An older one has that of a period."""
CLOCK = Ports().clock
SAID = """
    SELECT said.seq, said.event_id, said.text, heard.payload ->> 'conversation' AS thread
    FROM records AS said LEFT JOIN records AS heard ON heard.turn = said.turn AND heard.type = 'user_message'
    WHERE said.type = 'message_sent' AND said.seq > {after} AND said.text IS NOT NULL ORDER BY said.seq
"""


class Matrix:
    """The client-server API of Matrix, which is asked again until it answers."""

    def __init__(self, http, user=""):
        self.http, self.user = http, user

    async def call(self, method, path, body=None, **query):
        pause = 0.1
        while True:
            with suppress(httpx2.TransportError):
                answer = await self.http.request(method, f"/_matrix/client/v3{path}", json=body, params=query)
                if answer.status_code == 200:
                    return answer.json()
                if answer.status_code == 404 and method == "GET":
                    return None
                if answer.status_code < 500 and answer.status_code != 429:
                    raise SystemExit(f"Matrix refuses {method} {path}: {answer.status_code} {answer.text[:300]}")
                pause = (
                    max(pause, answer.json().get("retry_after_ms", 0) / 1000) if answer.status_code == 429 else pause
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2, 10)

    def data_path(self, room=""):
        return f"/user/{quote(self.user)}" + (f"/rooms/{quote(room)}" if room else "") + "/account_data/everlog.place"


class Room:
    """One room, and its agent."""

    def __init__(self, matrix, system, room):
        self.matrix, self.system, self.id, self.agent_id = matrix, system, room, f"matrix:{room}"
        self.agent, self.place, self.lock = None, None, asyncio.Lock()

    async def hear(self, event):
        """Send a message of the room to the agent, and return when it is in the log."""
        content = event["content"]
        relation = content.get("m.relates_to") or {}
        text, thread = content.get("body"), ""
        if relation.get("rel_type") == "m.thread":
            thread = relation.get("event_id", "")
        if relation.get("rel_type") == "m.replace":
            text = f"(I correct what I wrote before:) {(content.get('m.new_content') or {}).get('body')}"
        if event["sender"] == self.matrix.user or content.get("msgtype") != "m.text" or not str(text or "").strip():
            return None
        self.agent = self.agent or await self.system.agent(self.agent_id)
        now, at = CLOCK.now() // 1000, event["origin_server_ts"]
        at = at if -3600_000 < now - at < FRESH_MS else now // PERIOD_MS * PERIOD_MS
        event_id = derived_id(at * 1000, sha256(event["event_id"].encode()).digest())
        said = UserMessage(text=text, name=event["sender"], conversation=thread)
        records = aiter(self.agent.send(said, event_id=event_id))
        with suppress(ModelError):  # it is in the log, and of an earlier try
            await anext(records, None)
        return records

    async def answer(self, records):
        """Wait for the end of a run, and say what the agent said."""
        try:
            async for record in records:
                if record.type == "message_sent":
                    await self.say()
        except ModelError as error:
            await self.send(f"failed-{sha256(str(error).encode()).hexdigest()[:16]}", f"({error})", "m.notice")
        except EverlogError as error:  # the run continues, and its words are said at a later look
            print(self.id, error, file=sys.stderr)
        await self.say()

    async def say(self):
        """Send what the agent has said since the place that the room has."""
        async with self.lock:
            path = self.matrix.data_path(self.id)
            if self.place is None:
                self.place = (await self.matrix.call("GET", path) or {"seq": 0})["seq"]
            rows = (await self.system.sql(SAID.format(after=self.place), agent=self.agent_id)).to_pylist()
            for row in rows:
                await self.send(str(row["event_id"]), row["text"], thread=row["thread"])
            if rows:
                await self.matrix.call("PUT", path, {"seq": rows[-1]["seq"]})
                self.place = rows[-1]["seq"]

    async def send(self, key, text, kind="m.text", thread=None):
        """Send a message to the room once: Matrix knows it by the key."""
        content = {"msgtype": kind, "body": text}
        if thread:
            reply = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
            content["m.relates_to"] = {**reply, "m.in_reply_to": {"event_id": thread}}
        await self.matrix.call("PUT", f"/rooms/{quote(self.id)}/send/m.room.message/{quote(key)}", content)


class Bot:
    """The rooms of one user of Matrix."""

    def __init__(self, matrix, system):
        self.matrix, self.system, self.rooms = matrix, system, {}

    async def run(self):
        """Carry messages to and fro, for ever. An error ends it: start it again, and it continues."""
        self.matrix.user = (await self.matrix.call("GET", "/account/whoami"))["user_id"]
        since = (await self.matrix.call("GET", self.matrix.data_path()) or {}).get("since")
        now = await self.matrix.call("GET", "/sync", timeout=0)
        if since is None:  # the first start: what was said before is not for the agents
            since = now["next_batch"]
            await self.keep(since)
        await self.join(now)
        known = set(await self.system.agents())
        for room in (await self.matrix.call("GET", "/joined_rooms"))["joined_rooms"]:
            if self.room(room).agent_id in known:
                self.room(room).agent = await self.system.agent(self.room(room).agent_id)
        async with asyncio.TaskGroup() as answers:
            while True:
                for room in [room for room in self.rooms.values() if room.agent]:
                    await room.say()
                news = await self.matrix.call("GET", "/sync", since=since, timeout=WAIT_MS)
                await self.join(news)
                parts = [(room, part["timeline"]) for room, part in news.get("rooms", {}).get("join", {}).items()]
                for room, timeline in parts:
                    for event in await self.new_events(room, timeline, since):
                        if (records := await self.room(room).hear(event)) is not None:
                            answers.create_task(self.room(room).answer(records))
                since = news["next_batch"]
                if any(timeline.get("events") for _, timeline in parts):  # what is kept is news itself
                    await self.keep(since)

    async def keep(self, since):
        """Keep the place up to which the agents have everything."""
        await self.matrix.call("PUT", self.matrix.data_path(), {"since": since})

    async def join(self, news):
        """Join the rooms to which the bot is invited."""
        for room in news.get("rooms", {}).get("invite", {}):
            await self.matrix.call("POST", f"/join/{quote(room)}", {})

    def room(self, room):
        return self.rooms.setdefault(room, Room(self.matrix, self.system, room))

    async def new_events(self, room, timeline, since):
        """Return the messages of a room since a place in Matrix, or since the bot joined it, oldest first."""
        events, before = timeline.get("events", []), timeline.get("prev_batch")
        while timeline.get("limited") and before and not any(map(self.is_own_join, events)):
            query = {"from": before, "to": since, "dir": "b", "limit": 100}
            page = await self.matrix.call("GET", f"/rooms/{quote(room)}/messages", **query) or {}
            events, before = [*reversed(page.get("chunk", ())), *events], page.get("end")
        joined = max((n for n, event in enumerate(events) if self.is_own_join(event)), default=-1)
        return [event for event in events[joined + 1 :] if event["type"] == "m.room.message" and event["content"]]

    def is_own_join(self, event):
        return (event["type"], event.get("state_key")) == ("m.room.member", self.matrix.user)


async def main(matrix_url, everlog_url):
    headers = {"Authorization": f"Bearer {os.environ['MATRIX_TOKEN']}"}
    timeout = httpx2.Timeout(30, read=WAIT_MS / 1000 + 60)
    async with (
        httpx2.AsyncClient(base_url=matrix_url, headers=headers, timeout=timeout, trust_env=False) as http,
        connect_system(everlog_url, key=os.environ.get("EVERLOG_KEY")) as system,
    ):
        await Bot(Matrix(http), system).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
