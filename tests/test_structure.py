"""The shape of the package: who imports whom, what is public, and what `--help` may load."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import errors

PACKAGE = Path(dragoman.__file__).parent
STAGES = ["text", "tokens", "batches", "model", "train", "checkpoint", "search", "score"]
COMPOSERS = [  # in line: each knows only those before it
    "watch", "config", "prepare", "engines", "translator", "distill", "budget", "describe", "session", "ending", "run",
]  # fmt: skip
USES = ["serve", "explain", "export", "paper"]  # of a trained model, strangers to one another
SHARED = ["errors", "memory", "_version"]


def top_level(module: str) -> str:
    """The part of the package a module belongs to: "dragoman.model.masks" is of "model"."""
    return module.removeprefix("dragoman").lstrip(".").split(".")[0]


def imports(source: Path) -> set[str]:
    """The modules of the package that a file imports, also inside functions and for types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = source.relative_to(PACKAGE.parent).parent.parts
            above = [] if node.level == 0 else [*package[: len(package) - node.level + 1]]
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {name for name in found if name == "dragoman" or name.startswith("dragoman.")}


def parts_imported(part: str) -> dict[str, set[str]]:
    """For each file of a part, the parts it imports from."""
    folder = PACKAGE / part
    sources = sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]
    return {
        str(source.relative_to(PACKAGE)): {top_level(name) for name in imports(source)} - {""} for source in sources
    }


def test_every_part_has_its_place() -> None:
    """A new file or folder at the top is a decision: it is entered here, and in the map of the package."""
    found = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert found - {"__init__"} <= {*STAGES, *COMPOSERS, *USES, *SHARED, "cli"}
    assert {*STAGES, *COMPOSERS, *SHARED, "explain", "cli"} <= found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_imports_earlier_stages_only(stage: str) -> None:
    allowed = {*STAGES[: STAGES.index(stage) + 1], "errors", "memory"}
    for source, parts in parts_imported(stage).items():
        assert parts <= allowed, f"{source} imports {sorted(parts - allowed)}"


def test_the_model_stands_alone() -> None:
    for source, parts in parts_imported("model").items():
        assert parts <= {"model", "errors"}, source
    for source in (PACKAGE / "model").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names}
            assert roots <= {*sys.stdlib_module_names, "torch", "dragoman"}, source.name
            assert not roots & {"os", "io", "pathlib", "logging", "shutil"}, f"{source.name} deals with files or logs"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "open"), source.name


def test_search_does_not_know_the_model() -> None:
    for source, parts in parts_imported("search").items():
        assert parts <= {"search", "errors"}, source


def test_errors_know_nobody() -> None:
    for part in SHARED:
        assert parts_imported(part) == {f"{part}.py": set()}


def test_composers_and_uses_do_not_know_the_command_line() -> None:
    for part in (*COMPOSERS, *(use for use in USES if (PACKAGE / use).exists())):
        for source, parts in parts_imported(part).items():
            assert "cli" not in parts, source
            strangers = {*USES} - {part}
            assert not parts & strangers, f"{source} imports {sorted(parts & strangers)}"


def test_nobody_but_the_ends_knows_a_use() -> None:
    for part in (*STAGES, *COMPOSERS, *SHARED):
        for source, parts in parts_imported(part).items():
            assert not parts & {*USES}, source


def test_the_composers_stand_in_line() -> None:
    """Settings know the stages; data is prepared from settings; training and use stand on top."""
    for i, composer in enumerate(COMPOSERS):
        for source, parts in parts_imported(composer).items():
            assert not parts & {*COMPOSERS[i + 1 :]}, source
    assert parts_imported("watch") == {"watch.py": set()}


def test_the_model_can_be_read_in_one_sitting() -> None:
    n_lines = sum(
        len(source.read_text(encoding="utf-8").splitlines()) for source in sorted((PACKAGE / "model").rglob("*.py"))
    )
    assert n_lines < 700


def test_the_public_names() -> None:
    """Exactly: what has a home in a module, every error, and the version; and each can be fetched."""
    all_errors = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.DragomanError)
    }
    assert set(dragoman.__all__) == set(dragoman._HOMES) | all_errors | {"__version__"}
    assert len(dragoman.__all__) == len(set(dragoman.__all__))
    assert dragoman.__all__ == sorted(dragoman.__all__)
    assert dir(dragoman) == dragoman.__all__
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    for name, home in dragoman._HOMES.items():
        assert getattr(dragoman, name) is getattr(importlib.import_module(home), name)
        assert getattr(dragoman, name).__module__ == home  # where it is defined, not a module that imports it
    with pytest.raises(AttributeError, match="has no attribute 'transformer'"):
        _ = dragoman.transformer


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert seen == dragoman._HOMES


def test_every_error_is_of_one_tree_and_documented_in_it() -> None:
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(value, errors.DragomanError)
            assert name in (errors.__doc__ or "")


def modules_loaded_by(code: str) -> set[str]:
    script = f"import json, sys\n{code}\nprint('\\n' + json.dumps(sorted(sys.modules)), flush=True)"
    result = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def commands() -> list[str]:
    from dragoman.cli import main

    return list(main._COMMANDS)


@pytest.mark.parametrize(
    "code",
    [
        "import dragoman",
        "import dragoman; dragoman.__version__; dragoman.DataError; dir(dragoman)",
        "from dragoman import Config, ModelConfig; Config()",
        "import dragoman.explain.api, dragoman.explain.page, dragoman.explain.importance, dragoman.explain.picture",
    ],
)
def test_importing_loads_no_torch(code: str) -> None:
    assert "torch" not in modules_loaded_by(code)


def test_help_loads_no_torch() -> None:
    """The help of the program and of each of its commands, all in one process."""
    calls = [["--help"], ["--version"], *([command, "--help"] for command in commands())]
    code = f"from dragoman.cli.main import run\nfor args in {calls!r}:\n    assert run(args) == 0, args"
    loaded = modules_loaded_by(code)
    assert "dragoman.cli.train" in loaded
    assert not loaded & {"torch", "matplotlib", "sentencepiece", "sacrebleu", "fastapi", "uvicorn"}


def test_the_server_needs_no_torch() -> None:
    loaded = modules_loaded_by("import dragoman.serve.server, dragoman.serve.app, dragoman.serve.service")
    assert "dragoman.translator" in loaded
    assert "torch" not in loaded
