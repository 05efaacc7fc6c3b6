"""How a request is refused: a status code and one sentence, as {"error": …}."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse


class Refusal(Exception):  # noqa: N818, no error of ours
    """Ends a request with a status code and a sentence."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}

    def response(self) -> JSONResponse:
        return JSONResponse({"error": self.message}, self.status, self.headers)


class ErrorAnswer(BaseModel):
    """What every refusal looks like."""

    error: str


_MEANINGS = {
    400: "the request cannot be understood, or asks for what there is not",
    403: "an API key is missing, or not one of the server's",
    404: "there is no such thing",
    405: "the address takes another method",
    408: "the request took too long to arrive",
    413: "the request is too large",
    429: "too many requests; `Retry-After` says when to come again",
    500: "the server failed",
    503: "the server is busy; `Retry-After` says when to come again",
    504: "the translation took too long",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers with these codes, for the description of the interface."""
    return {status: {"model": ErrorAnswer, "description": _MEANINGS[status]} for status in statuses}
