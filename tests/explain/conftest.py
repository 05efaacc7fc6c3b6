"""A real browser, and a real server of the page for it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from served import served

from dragoman.translator import Translator, load

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def translator(run: Path) -> Translator:
    return load(run, engine="torch")


@pytest.fixture(scope="session")
def served_page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a model for xa to xb and one for xb to xa."""
    flags = ("--model", f"xb-xa={run}", "--engine", "torch", "--precision", "float32", "--threads", "1")
    with served(run, tmp_path_factory.mktemp("served"), *flags, model="xa-xb") as server:
        yield server.url + "/"


@pytest.fixture(scope="module")
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
