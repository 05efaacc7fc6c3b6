"""The application: every address, behind the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp

from dragoman._version import __version__
from dragoman.serve import libre, v1
from dragoman.serve.access import straight
from dragoman.serve.files import Files
from dragoman.serve.gate import Gate
from dragoman.serve.metrics import CONTENT_TYPE
from dragoman.serve.reference_page import reference_page
from dragoman.serve.refusals import Refusal, refusals
from dragoman.serve.service import Service

_ABOUT = "Translation by models trained with Dragoman; LibreTranslate's interface, and our own under /v1."


def make_app(
    service: Service,
    *,
    files: Path,
    page: Callable[[], str] | None = None,
    cors: Sequence[str] = (),
) -> ASGIApp:
    """The application for uvicorn.

    `page` makes what is served at "/"; without it there is no such address.
    `cors` are the origins whose pages may call us from a browser, "*" for all.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.close()

    app = FastAPI(
        title="Dragoman", version=__version__, description=_ABOUT,
        docs_url=None, redoc_url=None, openapi_url="/openapi.json", lifespan=lifespan,
    )  # fmt: skip
    routers = libre.make_router(service, Files(files, service, service.limits)), v1.make_router(service)
    for router in routers:
        app.include_router(router)
    _add_pages(app, service, page)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _refused_by_the_framework)
    app.add_exception_handler(RequestValidationError, _not_understood)
    answering = straight(app, *routers)
    if cors:
        answering = CORSMiddleware(answering, allow_origins=cors, allow_methods=["GET", "POST"], allow_headers=["*"])
    gate = Gate(answering, limits=service.limits, metrics=service.metrics)
    gate.knows({path for path in (*app.openapi()["paths"], "/", "/docs", "/openapi.json") if "{" not in path})
    service.metrics.gauge("dragoman_requests_under_way", "Requests being answered", lambda: gate.n_under_way)
    return gate


def _add_pages(app: FastAPI, service: Service, page: Callable[[], str] | None) -> None:
    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        response_class=PlainTextResponse,
        responses=refusals(500),
        tags=["Dragoman"],
    )
    async def metrics() -> Response:
        return Response(service.metrics.page(), media_type=CONTENT_TYPE)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(reference_page(app.openapi()))

    if page is not None:

        @app.get("/", include_in_schema=False)
        async def front() -> Response:
            return HTMLResponse(page())


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.response()


async def _refused_by_the_framework(request: Request, error: Exception) -> Response:
    """An address or a method that there is not."""
    assert isinstance(error, HTTPException)
    response = Refusal(error.status_code, str(error.detail)).response()
    response.headers.update(error.headers or {})
    return response


async def _not_understood(request: Request, error: Exception) -> Response:
    return Refusal(400, "Invalid request").response()
