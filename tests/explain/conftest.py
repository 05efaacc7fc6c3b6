"""A real browser, and a server of the page for it.

The server here answers the addresses that the page asks, through the same `explain_json` and `page_html` as any other;
`served_page` is the only place that knows which server it is.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import threading
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DragomanError
from dragoman.explain.api import explain_json
from dragoman.explain.page import page_html
from dragoman.translator import Translator, load

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LANGUAGES = [("xa", "Forth"), ("xb", "Back")]


@pytest.fixture(scope="session")
def translator(run: Path) -> Translator:
    return load(run, engine="torch")


@pytest.fixture(scope="session")
def served_page(translator: Translator) -> Iterator[str]:
    """The address of a server with a model for xa to xb and one for xb to xa."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(translator))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def _handler(translator: Translator) -> type[BaseHTTPRequestHandler]:
    files: dict[str, bytes] = {}
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, body: bytes, kind: str = "application/json", status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            codes = [code for code, _ in LANGUAGES]
            listed = [{"code": code, "name": name, "targets": codes} for code, name in LANGUAGES]
            if self.path == "/":
                self.answer(page_html().encode(), "text/html; charset=utf-8")
            elif self.path == "/languages":
                self.answer(json.dumps(listed).encode())
            elif self.path == "/frontend/settings":
                self.answer(json.dumps({"apiKeys": False, "keyRequired": False}).encode())
            else:
                self.answer(files[self.path], "application/octet-stream")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                with lock:
                    answer, status = self.found(body), 200
            except DragomanError as error:
                answer, status = {"error": error.message}, 400
            with contextlib.suppress(ConnectionError):  # the page has asked something newer, and does not wait for this
                self.answer(json.dumps(answer).encode(), status=status)

        def found(self, body: bytes) -> dict[str, Any]:
            if self.path == "/translate_file":
                lines = self.uploaded(body).decode().splitlines()
                files["/download_file/1.txt"] = "".join(f"{translator(line)}\n" for line in lines).encode()
                return {"translatedFileUrl": "http://elsewhere.example/download_file/1.txt"}
            fields = json.loads(body)
            if self.path == "/v1/attention":
                return explain_json(
                    translator, fields["q"], fields.get("translation"), tuple(fields.get("off_heads", ()))
                )
            (best,) = translator.translate([fields["q"]], nbest=1 + fields["alternatives"])
            return {"translatedText": best.text, "alternatives": [one.text for one in best.alternatives]}

        def uploaded(self, body: bytes) -> bytes:
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            parts = BytesParser(policy=HTTP).parsebytes(head + body).iter_parts()
            content = {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts
            }
            assert (content["source"], content["target"]) == (b"xa", b"xb")
            found = content["file"]
            assert isinstance(found, bytes)
            return found

    return Handler


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)} is installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_tab(browser: Any) -> Any:
    """Opens a tab with options of its own; its console has to stay empty, and it may ask nobody but this machine."""
    return partial(_Tab, browser)


@pytest.fixture
def tab(open_tab: Any) -> Iterator[Any]:
    """Such a tab, of a usual size."""
    with open_tab(viewport={"width": 1280, "height": 900}) as page:
        yield page


class _Tab:
    """A tab of its own; in the end, nothing may have gone wrong in it nor left the machine."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self._context = browser.new_context(accept_downloads=True, **options)

    def __enter__(self) -> Any:
        page = self._context.new_page()
        self._troubles: list[str] = []
        page.on("console", lambda message: self._troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self._troubles.append(f"error: {error}"))
        page.on("request", lambda request: self._see(request.url))
        page.on("requestfailed", self._failed)
        page.on("response", lambda answer: answer.ok or self._troubles.append(f"{answer.status} {answer.url}"))
        page.set_default_timeout(30_000)
        return page

    def _see(self, url: str) -> None:
        if not re.match(r"(http://127\.0\.0\.1:\d+/|file:|data:|blob:)", url):
            self._troubles.append(f"request off the machine: {url}")

    def _failed(self, request: Any) -> None:
        if "ABORTED" not in (request.failure or ""):  # the page gives up questions that newer ones replace
            self._troubles.append(f"failed: {request.url} {request.failure}")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._context.close()
        if error is None:
            assert self._troubles == []
