"""Answers of servers as the model reads them: each type of content, of both revisions of the protocol."""

import asyncio
from typing import Any

import pytest

from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import FunctionResult
from tests.support.mcp.server_worlds import called, connections_to, functions

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

ENTRY = ServerEntry(command="unused")


class Place(BaseModel):
    city: str
    degrees: int


def server() -> Any:
    made = MCPServer("parts")

    @made.tool(structured_output=False)
    def parts() -> list[Any]:
        """Return a part of each type."""
        return [
            TextContent(type="text", text="Look:"),
            ImageContent(type="image", data="QUJDRA==", mime_type="image/png"),
            AudioContent(type="audio", data="QUJD", mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="file:///a.txt", name="a.txt", mime_type="text/plain"),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="memo://1", text="Buy milk.")),
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri="memo://2", blob="QUJD")),
        ]

    @made.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def weather(city: str) -> Place:
        """Tell the weather."""
        return Place(city=city, degrees=7)

    @made.tool()
    def long() -> str:
        """Return a long text."""
        return "x" * 1_000_000

    @made.tool()
    def broken() -> str:
        """Fail."""
        raise ToolError("The disk is full.")

    return made


def test_each_type_of_content_is_text_for_the_model() -> None:
    """Texts are shown; of images, audio and blobs the model reads type and size, of a link its address."""
    with connections_to(server()) as made:
        assert called(functions(ENTRY, made)["parts"]) == (
            "Look:\n[image: image/png, 4 bytes, which are not shown]\n"
            "[audio: audio/wav, 3 bytes, which are not shown]\n"
            "[link to file:///a.txt: a.txt, text/plain]\n[resource memo://1]\nBuy milk.\n"
            "[resource at memo://2: of unknown type, 3 bytes, which are not shown]"
        )


def test_a_structured_result_is_shown_once() -> None:
    """A server sends a structure and its text; the model reads it once."""
    with connections_to(server()) as made:
        text = called(functions(ENTRY, made)["weather"], city="Oslo")
        assert isinstance(text, str)
        assert (text.count("Oslo"), text.count("degrees")) == (1, 1)


def test_an_endless_text_is_cut() -> None:
    """No answer fills the memory of an agent."""
    with connections_to(server()) as made:
        text = called(functions(ENTRY, made)["long"])
        assert isinstance(text, str)
        assert len(text) <= 100_000


def test_a_failed_function_is_a_failed_call() -> None:
    """The model reads the server's words."""
    with connections_to(server()) as made:
        result = called(functions(ENTRY, made)["broken"])
        assert isinstance(result, FunctionResult)
        assert (result.ok, result.unknown) == (False, False)
        assert "The disk is full." in result.text


def test_the_newest_revision_is_spoken_where_the_server_knows_it() -> None:
    """The offer says which revision was agreed on, and who the server is."""
    with connections_to(server()) as made:
        offer = asyncio.run(made.offer("parts", ENTRY))
        assert (offer.protocol, offer.server.split()[0]) == ("2026-07-28", "parts")


def test_hints_choose_effects_and_approvals_and_the_operator_overrules_them() -> None:
    """A function without hints acts once and waits for a person; one that says it only reads does neither. The
    operator's word comes first.
    """
    with connections_to(server()) as made:
        tools = functions(ENTRY, made)
        assert {name: (tool.effect, tool.approval) for name, tool in tools.items()} == {
            "weather": ("read_only", False),
            **dict.fromkeys(("parts", "long", "broken"), ("at_most_once", True)),
        }
        mine = ServerEntry(command="unused", effect="read_only", approval=True)
        assert {(tool.effect, tool.approval) for tool in functions(mine, made).values()} == {("read_only", True)}
