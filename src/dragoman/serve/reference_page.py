"""The page at /docs: the interface as OpenAPI describes it, without a script or anything from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid #8888; border-radius: 6px; margin: .5rem 0; padding: .5rem 1rem; }
summary { cursor: pointer; }
pre { overflow-x: auto; background: #8882; padding: .75rem; border-radius: 6px; }
code { font-family: ui-monospace, monospace; }
"""


def reference_page(schema: Mapping[str, Any]) -> str:
    """The page for an OpenAPI document."""
    info = schema["info"]
    sections = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            sections.append(_operation(f"{method.upper()} {path}", operation))
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width, initial-scale=1">'
        f"<title>{_text(info['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_text(info['title'])} {_text(info['version'])}</h1><p>{_text(info.get('description', ''))}</p>"
        f"<p>The same for programs: <a href=openapi.json>openapi.json</a></p>{''.join(sections)}"
        f"<h2>Schemas</h2>{_code(schema.get('components', {}))}</body></html>\n"
    )


def _operation(name: str, operation: Mapping[str, Any]) -> str:
    parts = [f"<details><summary><code>{_text(name)}</code> {_text(operation.get('summary', ''))}</summary>"]
    for parameter in operation.get("parameters", ()):
        parts.append(f"<p><code>{_text(parameter['name'])}</code> in the {_text(parameter['in'])}</p>")
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        parts.append(f"<h3>Body</h3><p>{_text(', '.join(content))}</p>{_code(next(iter(content.values()))['schema'])}")
    answers = "".join(
        f"<li><code>{_text(status)}</code> {_text(answer['description'])}</li>"
        for status, answer in operation["responses"].items()
    )
    return "".join([*parts, f"<h3>Answers</h3><ul>{answers}</ul></details>"])


def _code(value: Any) -> str:
    return f"<pre><code>{_text(json.dumps(value, indent=2, ensure_ascii=False))}</code></pre>"


def _text(value: Any) -> str:
    return html.escape(str(value))
