"""Every command and every Python example of README and the guides is run, on small files of the same names."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from served import served
from small_run import shared

from dragoman.cli.serve import command as serve
from dragoman.text.builtin import builtin_corpus

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
PAGES = [ROOT / "README.md", GUIDES / "train-a-translator.md", GUIDES / "look-inside.md"]
SERVING = GUIDES / "serve-it.md"
# Set-up is what the tests themselves run in, so these are looked up rather than run again.
SET_UP = ("make ", "pip ")
SERVED = ("dragoman serve ", "curl ")  # these have a test of their own


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """What is typed at a prompt on the page, without the comments."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run; not to be changed."""
    return shared(tmp_path_factory.getbasetemp())[2]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages speak of."""
    folder = tmp_path_factory.mktemp("desk")
    corpus = builtin_corpus(n_train=300, n_valid=20, n_test=20)
    for name, pairs in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
        for language, sentences in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            (folder / f"{name}.{language}").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    (folder / "input.en").write_text("The man reads a book.\n\nThe dog sleeps.\n", encoding="utf-8")
    return folder


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command that must succeed."""
    bin_folder = str(Path(sys.executable).parent)
    env = {**os.environ, "PATH": bin_folder + os.pathsep + os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    done = subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_example_of_a_page_works(
    page: Path, desk: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for file in desk.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    typed = [command for command in commands(page) if not command.startswith(SET_UP + SERVED)]
    if not any(command.startswith("dragoman train") for command in typed):  # the page begins with a trained model
        shutil.copytree(request.getfixturevalue("run"), tmp_path / "runs" / "en-de")
    assert len(typed) >= 3
    for command in typed:
        run(shlex.split(command.replace("--budget 30m", "--budget 60s")), tmp_path)  # nobody has that long here
        if "--output" in command:
            assert (tmp_path / shlex.split(command)[-1]).stat().st_size > 0
    if any("output.de" in command for command in typed):
        assert len((tmp_path / "output.de").read_text(encoding="utf-8").splitlines()) == 3
    for example in blocks(page, "python"):
        run([sys.executable, "-c", example], tmp_path)


@pytest.mark.parametrize("page", [PAGES[0], SERVING], ids=lambda page: page.name)
def test_every_serving_command_is_understood(page: Path) -> None:
    typed = [shlex.split(command)[2:] for command in commands(page) if command.startswith("dragoman serve ")]
    assert typed
    for arguments in typed:
        serve.make_context("serve", arguments)


def test_the_examples_of_the_serving_guide_work(trained: Path, tmp_path: Path) -> None:
    with served(trained, tmp_path) as server:
        asked = [command for command in commands(SERVING) if command.startswith("curl ")]
        for command in asked if shutil.which("curl") else []:
            answer = run(shlex.split(command.replace("http://127.0.0.1:5000", server.url)), tmp_path)
            assert set(json.loads(answer.stdout)) == {"translatedText"}
        examples = blocks(SERVING, "python")
        assert len(examples) == 2
        for example in examples:
            run([sys.executable, "-c", example.replace("http://127.0.0.1:5000", server.url)], tmp_path)


def test_the_make_targets_of_the_readme_are_there() -> None:
    for command in commands(PAGES[0]):
        if command.startswith("make "):
            target = command.split()[1]
            plan = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
            assert {"demo": "dragoman demo", "test": "-m pytest"}[target] in plan


def test_continuous_integration_runs_what_contributors_run() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert [line for line in script.splitlines() if line.startswith("make ")] == ["make check", "make test"]


def test_links_between_pages_lead_somewhere() -> None:
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("recipes/*.md"),
    ]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_tests_named_by_the_fidelity_page_exist() -> None:
    page = (ROOT / "docs" / "concepts" / "fidelity.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests|src)/[^`]+\.py)`", page))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_settings_page_is_up_to_date() -> None:
    code = (
        "import generate; assert generate.PAGE.read_text(encoding='utf-8') == generate.page(), 'run docs/generate.py'"
    )
    run([sys.executable, "-c", code], ROOT / "docs")
