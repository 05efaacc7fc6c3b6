"""The page as one HTML file that asks nobody for anything but, where it has no data, its own server."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

_SCRIPTS = ("matrices.js", "draw.js", "explorer.js", "decoding.js", "translate.js", "start.js")


def page_html(data: Mapping[str, Any] | None = None, *, name: str = "", view: Mapping[str, Any] | None = None) -> str:
    """The page that shows `data`, as `explain_json` makes it; without data, the page that a server gives at "/".

    `name` is that of the model. `view` is what is opened first: {"kind": "cross", "layer": 2, "head": 3}, where the
    layer may be "all" and the head "mean" or "rollout".
    """
    given = {"data": data, "name": name, "view": view}
    parts = {
        "mode": "served" if data is None else "file",
        "title": html.escape("Dragoman" + (f": {data['source']}" if data else f" {name}".rstrip())),
        "style": _read("style.css"),
        "script": "\n".join(_read(script) for script in _SCRIPTS),
        # Nothing in a text can end the element that it stands in.
        "data": json.dumps(given, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }
    pieces = _read("page.html").split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        part, _, rest = piece.partition("}}")
        filled += [parts[part], rest]
    return "".join(filled)


def _read(name: str) -> str:
    return (files("dragoman.explain") / "page" / name).read_text(encoding="utf-8")
