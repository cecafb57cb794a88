"""Serve the outline of an agent's life: the picture over the slider, its landmarks for scripts, and jumps to them."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec
from starlette.responses import Response

from everlog.interfaces.http.console.agent_frame import TABS
from everlog.interfaces.http.console.agent_life import (
    EDIT,
    FAILURE,
    LANDMARKS,
    OTHER,
    SUMMARY,
    TALK,
    AgentLife,
    LifeCache,
    LifeScale,
)
from everlog.interfaces.http.console.page_response import HEADERS, redirect
from everlog.interfaces.http.console.tilde_names import name_in, written
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse

BARS, HEIGHT = 500, 48
"""Bars of the picture, and its height in pixels."""
CLOCK_STEPS = 1000
"""Steps of the slider over a life, if it goes by time."""
_TABS = frozenset(name for name, _ in TABS)


class JumpParameters(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """A jump from a moment to a landmark."""

    origin: int
    """Seq to jump from."""
    to: Literal[
        "next-event", "previous-event", "next-turn", "previous-turn", "next-edit", "previous-edit", "next-summary",
        "previous-summary", "next-failure", "previous-failure", "first", "last",
    ]  # fmt: skip
    page: str = ""
    """Page of the agent to show there: one of its tabs, or the page of a memory block."""


class PictureParameters(msgspec.Struct, frozen=True):
    """Parameters of the picture of a life."""

    scale: LifeScale = "events"
    """Measure of equal widths: as many events, or as much time."""


class LifePages(NamedTuple):
    """Handlers of an agent's outline."""

    picture: Callable[[HttpCall], Any]
    outline: Callable[[HttpCall], Any]
    jump: Callable[[HttpCall], Any]


def life_pages(cache: LifeCache) -> LifePages:
    """Return the handlers. `cache`: the outlines that the server keeps."""

    async def life_of(call: HttpCall) -> AgentLife:
        call.params = {**call.params, "agent": name_in(call.params["agent"])}
        stream = call.stream

        def read() -> AgentLife:
            reader, _ = call.opened(stream)
            return cache.life(reader, stream)

        found: AgentLife = await call.service.ports.aside(read)
        return found

    async def show_picture(call: HttpCall) -> Response:
        """Draw the density of an agent's life."""
        query: PictureParameters = call.query
        life = await life_of(call)
        etag = f'"{life.last}-{query.scale}"'
        headers = {**HEADERS, "ETag": etag}
        if call.request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(drawn(life, query.scale), headers=headers, media_type="image/svg+xml")

    async def show_outline(call: HttpCall) -> Response:
        """Return the landmarks of an agent's life for the slider, and the events by the clock."""
        life = await life_of(call)
        points = {str(name): life.points[name].tolist() for name in LANDMARKS}
        return JsonResponse({"head": life.last, "clock": life.clock(CLOCK_STEPS), **points})

    async def jump(call: HttpCall) -> Response:
        """Go to the landmark of a page at which the landmark is; stay where there is none."""
        query: JumpParameters = call.query
        life = await life_of(call)
        if query.page not in _TABS and not query.page.startswith("memory/"):
            raise Refusal(400, "bad-input", f"An agent has no page {query.page[:80]!r}.")
        parts = query.page.split("/", 1)
        if len(parts) == 2:
            name_in(parts[1])
        seq = landing(life, query.origin, query.to)
        path = f"/console/a/{written(call.params['agent'])}{f'/{query.page}' if query.page else ''}"
        return redirect(f"{path}?as_of={seq}")

    return LifePages(show_picture, show_outline, jump)


def landing(life: AgentLife, origin: int, to: str) -> int:
    """Return the seq that a jump from `origin` leads to; `origin`, within the life, if there is no such landmark."""
    here = max(1, min(origin, life.last))
    if to in {"first", "last"}:
        return 1 if to == "first" else life.last
    direction, _, landmark = to.partition("-")
    if landmark == "event":
        return max(1, min(life.last, here + (1 if direction == "next" else -1)))
    found = life.after(landmark, here) if direction == "next" else life.before(landmark, here)  # type: ignore[arg-type]
    return here if found is None else found


def drawn(life: AgentLife, scale: LifeScale = "events") -> bytes:
    """Return the picture: a bar for each part of the life, as high as it has records (those of talk count threefold),
    and below it a mark for each part with an edit of memory, a summary or a failure.
    """
    bars = life.bars(BARS, scale)
    heights = [bar[TALK] + (sum(bar) - bar[TALK]) / 3 for bar in bars]
    tallest = max(heights, default=1) or 1
    inner = HEIGHT - 14
    talk, rest = [], []
    marks: dict[int, list[str]] = {EDIT: [], SUMMARY: [], FAILURE: []}
    for place, (bar, height) in enumerate(zip(bars, heights, strict=True)):
        whole, said = inner * height / tallest, inner * bar[TALK] / tallest
        rest.append(f"M{place} {inner}v-{whole:.1f}h1v{whole:.1f}z")
        if bar[TALK]:
            talk.append(f"M{place} {inner}v-{said:.1f}h1v{said:.1f}z")
        for row, kind in enumerate((EDIT, SUMMARY, FAILURE)):
            if bar[kind]:
                marks[kind].append(f"M{place} {inner + 1 + row * 4}h1v3h-1z")
    width = max(1, len(bars))
    assert OTHER == 0
    paths = [("rest", rest), ("talk", talk), ("edit", marks[EDIT]), ("sum", marks[SUMMARY]), ("fail", marks[FAILURE])]
    shapes = "".join(f'<path class="{name}" d="{"".join(path)}"/>' for name, path in paths if path)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none">'
        f"<style>{_STYLE}</style>{shapes}</svg>"
    ).encode()


_STYLE = (
    ".rest{fill:#c9c5ba}.talk{fill:#5b7fa6}.edit{fill:#7a4fb5}.sum{fill:#a06a00}.fail{fill:#c0392b}"
    "@media(prefers-color-scheme:dark){.rest{fill:#4a4f57}.talk{fill:#7fa8d4}.edit{fill:#b493e6}"
    ".sum{fill:#e0a93e}.fail{fill:#ef7f72}}"
)
