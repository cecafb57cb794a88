"""The console in a real browser: it travels, talks and signs in, with the keyboard, at any width, in both themes."""

import asyncio
import re
from pathlib import Path

import pytest

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealIds
from everlog.interfaces.http.console.tilde_names import written
from everlog.interfaces.testing.manual_clock import ManualClock
from tests.interfaces.console.test_every_page import script
from tests.support.cli.command_line import Script, says
from tests.support.http.hostile_texts import HOSTILE
from tests.support.http.real_browser import browser_page, browser_path
from tests.support.http.served_store import served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TABS = (
    "",
    "/chat",
    "/memory",
    "/memory/human",
    "/context",
    "/records",
    "/records/3",
    "/search?q=hi",
    "/settings",
    "/memory/human/edit",
    "/memories",
    "/archive",
    "/fork",
)
SMALLEST = """() => [...document.querySelectorAll("a, button, select, summary, input")].filter(one => {
  const box = one.getBoundingClientRect();
  const inline = one.matches("p a, li a, h1 a, h2 a, h3 a, th a, td a, .said a, .skip, .hidden");
  return !inline && box.width > 0 && (box.width < 24 || box.height < 24);
}).map(one => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280, 3840])
def test_every_page_fits(tmp_path: Path, theme: str, width: int) -> None:
    """On every page, in both themes, nothing is wider than the window, targets are at least 24 pixels, there is a
    title, and the browser has nothing to complain about.
    """
    path = browser_path()

    async def main() -> None:
        async with served(tmp_path, script()) as server:
            await (await server.system.agent("sam")).ask("Hi")
            async with browser_page(path, color_scheme=theme, viewport={"width": width, "height": 900}) as page:
                for address in (
                    "/console/agents",
                    "/console/sql?q=FROM messages",
                    "/console/approvals?decided=true",
                    "/console/costs?days=30",
                    "/console/compare?a=sam&a_at=3",
                    "/console/sign-in",
                    "/console/preferences",
                    "/console/search?q=hi",
                    "/console/library",
                    "/console/jobs",
                    "/console/cluster",
                    "/console/keys",
                    *(f"/console/a/sam{tab}" for tab in TABS),
                ):
                    await page.goto(server.address + address)
                    wide = await page.evaluate("() => document.documentElement.scrollWidth")
                    assert wide <= width, address
                    assert await page.evaluate(SMALLEST) == [], address
                    assert (await page.title()).endswith(" · everlog"), address

    asyncio.run(main())


def test_travel_with_the_keyboard_alone(tmp_path: Path) -> None:
    """Keys on the slider lead through the life: the page shows each moment without being loaded again, and the address
    names it; a page that is loaded at that address shows the same.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, script()) as server:
            agent = await server.system.agent("sam")
            await agent.ask("I have a dog")
            await agent.ask("A later word")
            outline = (await server.client.get("/console/a/sam/life.json")).json()
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam")
                await page.evaluate("() => { window.kept = true }")
                await page.locator("#slider").focus()
                await page.keyboard.press("Shift+E")
                edit = outline["edit"][-1]
                await expect(page.locator("#where")).to_have_text(str(edit))
                await expect(page.locator(".core ins")).to_contain_text("Has a dog.")
                await expect(page.locator(".past")).to_be_visible()
                await page.keyboard.press("ArrowLeft")
                await expect(page.locator("#where")).to_have_text(str(edit - 1))
                await expect(page.locator(".core")).not_to_contain_text("Has a dog.")
                await page.keyboard.press("g")
                await expect(page.locator(".where")).to_contain_text("agent_created")
                await page.keyboard.press("Shift+G")
                await expect(page.locator(".talk")).to_contain_text("A later word")
                await page.keyboard.press("p")
                await expect(page.locator("#where")).to_have_text(str(outline["turn"][-1]))
                await expect(page).to_have_url(f"{server.address}/console/a/sam?as_of={outline['turn'][-1]}")
                assert await page.evaluate("() => window.kept && document.activeElement.id") == "slider"
                spoken = await page.locator("#slider").get_attribute("aria-valuetext")
                before = await page.locator("#moment").inner_text()
                await page.reload()
                assert await page.locator("#moment").inner_text() == before
                assert await page.locator("#slider").get_attribute("aria-valuetext") == spoken

    asyncio.run(main())


def test_travel_by_the_clock(tmp_path: Path) -> None:
    """By time, the slider has equal steps of the clock: the moment stays when the switch is used, a place between two
    events shows the one before, the picture follows, landmarks are found, and the next page goes by time too.
    """
    path = browser_path()
    clock = ManualClock(tick_us=1000)

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, ports=Ports(clock=clock, ids=RealIds())) as server:
            agent = await server.system.agent("sam")
            for wait_s in (0, 10, 10, 980):
                clock.skip(wait_s)
                await agent.ask(f"After {wait_s}")
            outline = (await server.client.get("/console/a/sam/life.json")).json()
            early, late = outline["clock"][500], outline["head"]
            assert outline["turn"][2] < early < outline["turn"][3] <= late
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam?as_of={early}")
                await page.select_option("#scale", "time")
                slider = page.locator("#slider")
                await expect(slider).to_have_attribute("max", "1000")
                await expect(page.locator("#density")).to_have_attribute("src", re.compile("scale=time"))
                assert await page.locator("#where").inner_text() == str(early)
                at = int(await slider.input_value())
                assert outline["clock"][at - 1] < early == outline["clock"][at]
                await slider.focus()
                await page.keyboard.press("End")
                await expect(page).to_have_url(f"{server.address}/console/a/sam?as_of={late}")
                await expect(page.locator(".talk")).to_contain_text("After 980")
                await page.keyboard.press("ArrowLeft")
                await expect(page).to_have_url(f"{server.address}/console/a/sam?as_of={early}")
                await expect(page.locator(".talk")).not_to_contain_text("After 980")
                assert await slider.input_value() == "999"
                await page.keyboard.press("p")
                await expect(page.locator("#where")).to_have_text(str(outline["turn"][2]))
                await page.goto(f"{server.address}/console/a/sam/memory?as_of={early}")
                await expect(page.locator("#scale")).to_have_value("time")
                await expect(slider).to_have_attribute("max", "1000")
                await page.select_option("#scale", "events")
                await expect(slider).to_have_attribute("max", str(late))
                assert await slider.input_value() == str(early)

    asyncio.run(main())


def test_a_drag_asks_for_few_moments(tmp_path: Path) -> None:
    """While the slider is dragged the number follows the hand, and far fewer moments than it passes are asked for; at
    the end the page shows the moment at which the slider is.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path) as server:
            agent = await server.system.agent("sam")
            for number in range(12):
                await agent.ask(f"Word {number}")
            async with browser_page(path) as page:
                asked: list[str] = []
                page.on("request", lambda request: asked.append(request.url) if "as_of=" in request.url else None)
                await page.goto(f"{server.address}/console/a/sam")
                box = await page.locator("#slider").bounding_box()
                await page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
                await page.mouse.down()
                for step in range(60):
                    await page.mouse.move(box["x"] + box["width"] * (1 - step / 80), box["y"] + box["height"] / 2)
                await page.mouse.up()
                at = await page.locator("#slider").input_value()
                await expect(page).to_have_url(f"{server.address}/console/a/sam?as_of={at}")
                await expect(page.locator("#where")).to_have_text(at)
                assert 1 <= len(asked) <= 30

    asyncio.run(main())


def test_a_chat_sends_once_and_shows_the_answer(tmp_path: Path) -> None:
    """A message that is sent with Ctrl-Enter is in the log once; the answer appears, with its thought folded, and the
    form is empty for the next one.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([says("Ahoy!", thought="A sailor.")])) as server:
            await server.system.agent("sam")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam/chat")
                await page.keyboard.type("Hello from the browser")
                await page.keyboard.press("Control+Enter")
                await expect(page.locator(".entry.agent").last).to_contain_text("Ahoy!")
                await expect(page.locator(".entry.user")).to_have_count(1)
                thought = page.locator(".entry.thought").last
                await expect(thought.locator(".said")).not_to_be_visible()
                await thought.locator("summary").press("Enter")
                await expect(thought.locator(".said")).to_have_text("A sailor.")
                await expect(page.locator("#words")).to_have_value("")
                await expect(page.locator("#cancel")).not_to_be_visible()
                records = (await server.call("GET", "/agents/sam/records"))["records"]
                assert [one["text"] for one in records if one["type"] == "user_message"] == ["Hello from the browser"]

    asyncio.run(main())


def test_editing_a_message_makes_a_fork(tmp_path: Path) -> None:
    """A message that is edited is sent to a fork that begins before it: the fork has the new words and not the old
    ones, and the original is as it was.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([says("One."), says("Two."), says("Other.")])) as server:
            agent = await server.system.agent("sam")
            await agent.ask("First")
            await agent.ask("Second")
            head = (await server.call("GET", "/agents/sam"))["head"]
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam/chat")
                await page.locator("[data-edit]").last.click()
                await expect(page.locator("#words")).to_have_value("Second")
                await page.locator("#fork-name").fill("sam-2")
                await page.locator("#words").fill("Second, in other words")
                await page.keyboard.press("Control+Enter")
                await expect(page.locator("h1")).to_have_text("sam-2")
                await expect(page.locator("#talk")).to_contain_text("Other.")
                assert "Second, in other words" in await page.locator("#talk").inner_text()
                assert "Two." not in await page.locator("#talk").inner_text()
            assert (await server.call("GET", "/agents/sam"))["head"] == head

    asyncio.run(main())


def test_another_tab_shows_what_was_said(tmp_path: Path) -> None:
    """A chat that is only looked at shows what another program says to the agent, without being loaded again."""
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([says("From elsewhere.")])) as server:
            agent = await server.system.agent("sam")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam/chat")
                await agent.ask("A word")
                await expect(page.locator("#talk")).to_contain_text("From elsewhere.")

    asyncio.run(main())


def test_a_chat_that_was_cut_off_shows_what_it_missed_once(tmp_path: Path) -> None:
    """While the server is away, a proxy refuses the stream of a chat. Back online, the chat asks for the records after
    the last that it has, without being loaded again, and shows what was said meanwhile, each message once.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path, Script([says("While you slept."), says("And after.")])) as server:
            agent = await server.system.agent("sam")
            async with browser_page(path, refused=503) as page:
                refused = asyncio.Event()

                async def refuse(route):
                    await route.fulfill(status=503)
                    refused.set()

                await page.route("**/stream?after=*", refuse)
                await page.goto(f"{server.address}/console/a/sam/chat")
                await refused.wait()
                await agent.ask("A word")
                await page.unroute("**/stream?after=*")
                await page.evaluate("() => window.dispatchEvent(new Event('online'))")
                await expect(page.locator("#talk")).to_contain_text("While you slept.")
                await agent.ask("Another")
                await expect(page.locator("#talk")).to_contain_text("And after.")
                talk = await page.locator("#talk").inner_text()
                assert [talk.count(said) for said in ("A word", "While you slept.", "Another", "And after.")] == [1] * 4

    asyncio.run(main())


def test_a_page_counts_new_events(tmp_path: Path) -> None:
    """A page that is looked at says how many events came since, leaves the moment as it is, and leads to now."""
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path) as server:
            agent = await server.system.agent("sam")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/a/sam")
                shown = await page.locator("#where").inner_text()
                await expect(page.locator("#new")).to_be_hidden()
                await agent.ask("A later word")
                head = (await server.call("GET", "/agents/sam"))["head"]
                await expect(page.locator("#new-count")).to_have_text(f"{head - int(shown)} new events.")
                assert await page.locator("#where").inner_text() == shown
                await page.locator("#new a").click()
                await expect(page.locator(".talk")).to_contain_text("A later word")

    asyncio.run(main())


def test_signing_in_and_out(tmp_path: Path) -> None:
    """A page that needs a key asks for it, and is shown when it was given; scripts do not see the key; after signing
    out the page asks again.
    """
    path = browser_path()

    async def main() -> None:
        from playwright.async_api import expect

        async with served(tmp_path) as server:
            await server.system.agent("sam")
            secret = server.key()["Authorization"].removeprefix("Bearer ")
            async with browser_page(path) as page:
                await page.goto(f"{server.address}/console/sign-in?next=/console/a/sam/memory")
                await page.locator("#key").fill(secret)
                await page.keyboard.press("Enter")
                await expect(page.locator("h1")).to_have_text("sam")
                assert page.url == f"{server.address}/console/a/sam/memory"
                assert await page.evaluate("() => document.cookie") == ""
                await page.get_by_role("button", name="Sign out").click()
                await expect(page.locator("h1")).to_have_text("Sign in")

    asyncio.run(main())


def test_hostile_words_do_nothing(tmp_path: Path) -> None:
    """Attacks as names and as words: no script runs, no title changes, nothing is asked for elsewhere, and the pages
    stay usable.
    """
    path, name = browser_path(), "<img src=x onerror=top.x=1>"

    async def main() -> None:
        batches = ["\n".join(HOSTILE[at::20]) for at in range(20)]  # a page shows them all
        async with served(tmp_path, Script([says(text, thought=text) for text in batches])) as server:
            agent = await server.system.agent(name)
            for text in batches:
                await agent.ask(text)
            with LocalSystem(server.system.store).view(name) as view:
                answer = next(one.seq for one in view.reader.read(name) if one.type == "message_sent")
            async with browser_page(path) as page:
                for tab in (*TABS, f"/words/{answer}"):
                    await page.goto(f"{server.address}/console/a/{written(name)}{tab}")
                    for details in (await page.locator("details").all())[:20]:
                        await details.evaluate("one => { one.open = true }")
                    assert await page.evaluate("() => top.x") is None, tab
                    assert "owned" not in await page.title(), tab
                    assert await page.locator("h1").count() == 1, tab

    asyncio.run(main())
