"""Writes docs/reference/settings.md from the settings' dataclasses, so that it cannot say anything else.

.venv/bin/python docs/generate.py
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from dragoman.config import PRESETS, Config

PAGE = Path(__file__).parent / "reference" / "settings.md"


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Settings\n\nWritten by `docs/generate.py`; do not edit. Give them in a TOML file (`--config`), a section "
        "per stage, or one by one (`--set model.d_ff=1024`). All that decided a run is in its `config.toml`.\n"
    ]
    for name, section in get_type_hints(Config).items():
        parts.append(
            f"## [{name}]\n\n{inspect.getdoc(section)}\n\n| key | default | |\n| --- | --- | --- |\n{_rows(section)}"
        )
    parts.append("## Presets\n\nWhat `--preset` sets, where it differs from the defaults.\n\n" + _presets())
    return "\n".join(parts)


def _rows(section: type) -> str:
    comments = _comments(section)
    rows = []
    for field in fields(section):
        default = "not set" if field.default is None else f"`{field.default}`"
        rows.append(f"| `{field.name}` | {default} | {comments[field.name]} |\n")
    return "".join(rows)


def _comments(section: type) -> dict[str, str]:
    """The comment behind each field's line."""
    source = inspect.getsource(section)
    lines = source.splitlines()
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = lines[node.lineno - 1].partition("#")[2].strip().replace("|", "\\|")
    return found


def _presets() -> str:
    defaults = Config()
    rows = []
    for name, settings in PRESETS.items():
        changes = [
            f"`{section}.{key}={value}`"
            for section, values in settings.items()
            for key, value in values.items()
            if value != getattr(getattr(defaults, section), key)
        ]
        rows.append(f"| {name} | {', '.join(changes) or 'the defaults: the paper’s base model'} |\n")
    return "| preset | settings |\n| --- | --- |\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
