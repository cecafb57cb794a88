"""Show the OpenAPI document to people: one page, rendered here, that a small script makes searchable.

Everything comes from this server, and the page may load nothing else: neither a browser without scripts nor a network
without the internet keeps a reader from it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import Response

from everlog.interfaces.http.core.openapi import openapi
from everlog.interfaces.http.core.routes import HttpCall, Route, RouteTable
from everlog.interfaces.http.pages.page_templates import templates_in

OpenApiObject = dict[str, Any]

FOLDER = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'none'; img-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def docs_pages(table: Callable[[], RouteTable], version: str) -> RouteTable:
    """Return the routes of the page and of what it loads. `table`: all routes of the server."""
    made: list[str] = []

    async def show_docs(_: HttpCall) -> Response:
        """Show the description of the API."""
        if not made:
            made.append(rendered(openapi(table(), version)))
        return Response(made[0], headers=HEADERS, media_type="text/html")

    async def show_script(_: HttpCall) -> Response:
        """Return the script of the page."""
        return Response((FOLDER / "docs.js").read_bytes(), headers=HEADERS, media_type="text/javascript")

    async def show_style(_: HttpCall) -> Response:
        """Return the style of the page."""
        return Response((FOLDER / "docs.css").read_bytes(), headers=HEADERS, media_type="text/css")

    return (
        Route("GET", "/docs", show_docs, "Show the API", is_open=True, hidden=True, media=("text/html",)),
        Route("GET", "/docs.js", show_script, "Search the page", is_open=True, hidden=True, media=("text/javascript",)),
        Route("GET", "/docs.css", show_style, "Style the page", is_open=True, hidden=True, media=("text/css",)),
    )


def rendered(document: OpenApiObject) -> str:
    """Return an OpenAPI document as a page."""
    tags = [
        {"name": tag["name"], "operations": [one for one in _operations(document) if one["tag"] == tag["name"]]}
        for tag in document["tags"]
    ]
    schemas = [
        {"name": name, "about": _paragraphs(schema), "fields": _fields(schema)}
        for name, schema in sorted(document["components"]["schemas"].items())
    ]
    return templates_in(FOLDER).render("docs.html", info=document["info"], tags=tags, schemas=schemas)


def _operations(document: OpenApiObject) -> list[OpenApiObject]:
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            answers = {status: answer for status, answer in operation["responses"].items() if status < "300"}
            found.append(
                {
                    "id": f"{method}-{operation['operationId']}",
                    "method": method.upper(),
                    "path": path,
                    "tag": operation["tags"][0],
                    "role": operation["x-role"],
                    "summary": operation["summary"],
                    "about": _paragraphs(operation),
                    "parameters": [
                        {
                            "name": one["name"],
                            "place": one["in"],
                            "type": _type(one["schema"]),
                            "about": one.get("description", ""),
                            "required": one["required"],
                        }
                        for one in operation["parameters"]
                    ],
                    "body": [(media, _type(content.get("schema", {}))) for media, content in body.items()],
                    "answers": [
                        (status, media, _type(content.get("schema", {})))
                        for status, answer in answers.items()
                        for media, content in (answer.get("content") or {"": {}}).items()
                    ],
                }
            )
    return found


def _paragraphs(described: OpenApiObject) -> list[str]:
    return [" ".join(part.split()) for part in described.get("description", "").split("\n\n") if part.strip()]


def _fields(schema: OpenApiObject) -> list[OpenApiObject]:
    required = schema.get("required", ())
    return [
        {"name": name, "type": _type(field), "about": field.get("description", ""), "required": name in required}
        for name, field in schema.get("properties", {}).items()
    ]


def _type(schema: Any) -> str:
    """Return the type that a schema describes, in a word or a few."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}".strip()
    named = schema.get("format") or schema.get("type", "")
    return " | ".join(named) if isinstance(named, list) else str(named)
