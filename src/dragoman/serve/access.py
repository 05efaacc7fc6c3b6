"""The beginning of every request that costs something: its fields, its key, its turn."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.serve.fields import checked, read_fields
from dragoman.serve.refusals import Refusal
from dragoman.serve.service import Service

M = TypeVar("M", bound=BaseModel)


def straight(app: ASGIApp, *routers: APIRouter) -> ASGIApp:
    """The application, but requests go at once to those functions of the routers that take a request as it is.

    FastAPI would look for parameters to fill in and for an answer to check, with layers of its own around that, which
    takes as long as all the rest.
    """
    plain = {
        (method, route.path): route.endpoint
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and route.dependant.request_param_name == "request"
        for method in route.methods or ()
    }

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = plain.get((scope.get("method", ""), scope.get("path", "")))
        if endpoint is None:
            await app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await endpoint(request)
        except Refusal as refusal:
            response = refusal.response()
        finally:
            await request.close()  # files that came with a form
        await response(scope, receive, send)

    return answer


async def admitted(request: Request, service: Service, model: type[M]) -> M:
    """The fields of a request, if its key is one of ours and it does not come too often."""
    fields = await read_fields(request, max_part_bytes=service.limits.max_body_bytes)
    check_access(request, service, fields)
    return checked(model, fields)


def check_access(request: Request, service: Service, fields: dict[str, Any]) -> None:
    """Refuses a request without a key where one is needed, and one too many."""
    who = f"address {request.client.host if request.client else ''}"
    if service.keys is not None:
        key = fields.get("api_key")
        if not isinstance(key, str) or not key:
            raise Refusal(403, "an API key is required: ask the operator of this server for one")
        name = service.keys.name_of(key)
        if name is None:
            raise Refusal(403, "Invalid API key")
        request.scope["state"]["notes"]["key"] = name
        who = f"key {name}"
    wait_s = service.rate.wait_s(who)
    if wait_s:
        raise Refusal(429, "Slow down: too many requests", retry_after_s=wait_s)


def check_size(service: Service, texts: list[str]) -> None:
    """Refuses too many texts, or too long ones."""
    limits, n_chars = service.limits, sum(map(len, texts))
    for n, most in ((len(texts), limits.max_texts), (n_chars, limits.max_chars)):
        if n > most:
            raise Refusal(400, f"Invalid request: request ({n}) exceeds text limit ({most})")


def body_schema(service: Service, model: type[BaseModel], *kinds: str) -> dict[str, Any]:
    """The description of a body that may come in several ways, with the languages of this server."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    for name, field in schema["properties"].items():
        if name in ("source", "target"):
            field["enum"] = [*service.languages, *(["auto"] if name == "source" else [])]
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": _whole(schema, definitions)} for kind in kinds}}
    }


def _whole(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with its parts in their places: they could not be referred to from there."""
    if isinstance(schema, list):
        return [_whole(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {key: _whole(value, definitions) for key, value in schema.items()}
