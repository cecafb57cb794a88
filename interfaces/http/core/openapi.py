"""Describe the routes as an OpenAPI 3.1 document, from the same table that the application is built from."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec

from everlog.interfaces.http.core.routes import JSON, NoQuery, Route, RouteTable
from everlog.interfaces.wire.problems import Problem

_REFS = "#/components/schemas/{name}"
_PART = re.compile(r"\{(\w+)\}")
_PROBLEMS = (400, 404, 408, 409, 412, 413, 415, 421, 422, 429, 500, 502, 503)
"""Statuses that any route may answer with a problem."""

JsonObject = dict[str, Any]


def openapi(table: RouteTable, version: str) -> JsonObject:
    """Return the document, as an object to encode as JSON. `version`: of everlog."""
    shown = [route for route in table if not route.hidden]
    kinds: list[Any] = [Problem]
    for route in shown:
        kinds += [kind for kind in (route.body, route.answer) if kind is not None]
        if route.query is not NoQuery:
            kinds.append(route.query)
    unique = list(dict.fromkeys(kinds))
    schemas, components = msgspec.json.schema_components(unique, ref_template=_REFS)
    named = dict(zip(unique, schemas, strict=True))
    paths: dict[str, JsonObject] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, named, components)
    for kind in {route.query for route in shown} - {NoQuery}:
        components.pop(kind.__name__, None)
    return {
        "openapi": "3.1.0",
        "info": {"title": "everlog", "version": version, "summary": "Agents whose whole state is an append-only log."},
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {}],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(route) for route in shown)],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key of `everlog keys`"}},
        },
    }


def _operation(route: Route, schemas: Mapping[Any, JsonObject], components: Mapping[str, JsonObject]) -> JsonObject:
    described = cleandoc(route.handler.__doc__ or "")
    operation: JsonObject = {
        "operationId": route.handler.__name__.strip("_"),
        "summary": route.summary,
        "tags": [_tag(route)],
        "parameters": [*_path_parameters(route), *_query_parameters(route, components)],
        "responses": _responses(route, schemas),
        "x-role": route.role,
    }
    if described and described != route.summary:
        operation["description"] = described
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[route.body]}}}
    elif route.body_types or route.body_media != JSON:
        types = route.body_types or (route.body_media,)
        operation["requestBody"] = {"required": True, "content": {media: {} for media in types}}
    return operation


def _path_parameters(route: Route) -> Iterator[JsonObject]:
    for name in _PART.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(route: Route, components: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    if route.query is NoQuery:
        return
    schema = components[route.query.__name__]
    for name, field in schema["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in field.items() if key != "description"},
            **({"description": field["description"]} if "description" in field else {}),
        }


def _responses(route: Route, schemas: Mapping[Any, JsonObject]) -> JsonObject:
    content: JsonObject = {}
    for media in route.media:
        has_shape = media == JSON and route.answer is not None
        content[media] = {"schema": schemas[route.answer]} if has_shape else {}
    found: JsonObject = {}
    for status in (route.status, *route.statuses):
        status = 204 if route.answer is None and route.media == (JSON,) else status
        found[str(status)] = {"description": HTTPStatus(status).phrase}
        if status != 204:
            found[str(status)]["content"] = content
    problem = {"content": {JSON: {"schema": schemas[Problem]}}}
    for status in (*_PROBLEMS, *(() if route.is_open else (401, 403))):
        found[str(status)] = {"description": HTTPStatus(status).phrase, **problem}
    return found


def _tag(route: Route) -> str:
    parts = [part for part in route.path.split("/") if part and not part.startswith("{") and part not in {"api", "v1"}]
    return parts[0] if len(parts) < 2 or parts[0] != "agents" else parts[1]
