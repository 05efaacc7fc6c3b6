"""The fields of a request, whichever way they come: JSON, a form, or in the address, as LibreTranslate takes them."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from dragoman.serve.refusals import Refusal

M = TypeVar("M", bound=BaseModel)
_MOST_FIELDS = 1100  # of a form; a list of texts is a field many times


async def read_fields(request: Request, *, max_part_bytes: int) -> dict[str, Any]:
    """All fields; those of the body go before those of the address."""
    fields: dict[str, Any] = dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        try:
            form = await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=max_part_bytes)
        except MultiPartException as error:
            raise Refusal(400, f"Invalid request: {error.message}") from None
        except Exception as error:  # the parser of forms has errors of several kinds, all of them about the body
            raise Refusal(400, f"Invalid request: the form cannot be read ({type(error).__name__})") from None
        for name in form:
            values = [
                value if isinstance(value, UploadFile) else _one_kind_of_line_end(value) for value in form.getlist(name)
            ]
            fields[name] = values if name == "q" and len(values) > 1 else values[0]
        return fields
    body = await request.body()
    if body or kind == "application/json":
        try:
            found = from_json(body)  # refuses depths beyond its own limit
        except ValueError:
            raise Refusal(400, "Invalid request: the body is not JSON") from None
        if not isinstance(found, dict):
            raise Refusal(400, "Invalid request: the body is not a JSON object")
        fields |= found
    return fields


def _one_kind_of_line_end(text: str) -> str:
    """Browsers write the line ends of a form as CR and LF."""
    return text.replace("\r\n", "\n")


def checked(model: type[M], fields: dict[str, Any]) -> M:
    """The fields as the model says they are, or a refusal that names the first that is wrong."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "body"
        missing = first["type"] in ("missing", "string_too_short", "too_short")
        told = f"missing {name} parameter" if missing and name in model.model_fields else f"{name}: {first['msg']}"
        raise Refusal(400, f"Invalid request: {told}") from None
