"""A translator in another process answers as one in this process would, and neither outlives the other unnoticed."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tame_work

from dragoman.errors import ConfigError, ModelError
from dragoman.search.step import Sampling
from dragoman.serve.remote import RemoteTranslator, TranslatorFailedError
from dragoman.text.glossary import Glossary, Term

T = TypeVar("T")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text("[search]\nbeam = 3\n")
    return tmp_path


def asked(folder: Path, ask: Callable[[RemoteTranslator], Awaitable[T]]) -> T:
    """What becomes of questions, after which both ends are closed."""

    async def main() -> T:
        translator = RemoteTranslator(folder, "tame_work", n_at_a_time=3, engine="auto")
        translator.wait()
        await translator.connect()
        try:
            return await ask(translator)
        finally:
            await translator.close()
            assert translator._process.poll() is not None

    return asyncio.run(main())


def test_all_of_a_translation_arrives(folder: Path) -> None:
    here = tame_work.ObedientTranslator()
    assert asked(folder, lambda there: there.translate(["a b", "c"])) == here.translate(["a b", "c"])


def test_all_options_arrive(folder: Path) -> None:
    options: dict[str, Any] = {
        "beam": None, "length_penalty": 0.25, "nbest": 2, "prefix": "Ä", "sampling": Sampling(top_k=3, seed=2**60),
    }  # fmt: skip
    here = tame_work.ObedientTranslator()
    assert asked(folder, lambda there: there.translate(["options"], **options)) == here.translate(
        ["options"], **options
    )


def test_a_glossary_arrives(folder: Path) -> None:
    terms = [Term("dog", ("Hund", "Hunde")), Term("cat", ("Katze",))]
    (found,) = asked(folder, lambda there: there.translate(["options"], glossary=Glossary(terms)))
    assert "Glossary object" in found.text


def test_an_explanation_is_passed_on(folder: Path) -> None:
    told = asked(folder, lambda there: there.explain("a", None, ["cross.0.1"]))
    assert json.loads(told) == {"heads": ["a", None, ["cross.0.1"]]}


def test_what_it_is(folder: Path) -> None:
    async def about(there: RemoteTranslator) -> tuple[Any, ...]:
        return there.n_at_once, there.n_subwords, there.engine, there.config.search.beam

    assert asked(folder, about) == (2, 17, "simplenamespace", 3)


def test_answers_come_as_they_are_done(folder: Path) -> None:
    async def both(there: RemoteTranslator) -> list[str]:
        order: list[str] = []

        async def one(text: str) -> None:
            await there.translate([text])
            order.append(text)

        await asyncio.gather(one("slowly"), one("at once"))
        return order

    assert asked(folder, both) == ["at once", "slowly"]


def test_nobody_waits_for_an_answer_that_is_not_wanted_any_more(folder: Path) -> None:
    async def ask(there: RemoteTranslator) -> str:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(there.translate(["slowly"]), 0.05)
        return (await there.translate(["slowly", "b"]))[1].text

    assert asked(folder, ask) == "B"


def test_a_failure_concerns_but_its_own_question_and_tells_nothing_of_the_text(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def ask(there: RemoteTranslator) -> list[Any]:
        return await asyncio.gather(there.translate(["fail"]), there.translate(["b"]), return_exceptions=True)

    failed, (found,) = asked(folder, ask)
    assert isinstance(failed, TranslatorFailedError)
    assert found.text == "B"
    log = capfd.readouterr().err
    assert json.loads(log)["failure"] == "RuntimeError"
    assert "tame_work.py" in json.loads(log)["at"][-1]
    assert "users" not in log


def test_what_a_user_did_wrong_is_said_as_it_was(folder: Path) -> None:
    with pytest.raises(ConfigError, match="nbest=9") as error:
        asked(folder, lambda there: there.translate(["refuse"]))
    assert error.value.hint == "use less"


def test_a_model_that_cannot_be_loaded(folder: Path) -> None:
    with pytest.raises(ConfigError, match="is not a choice") as error:
        RemoteTranslator(folder, "tame_work", n_at_a_time=1, engine="none").wait()
    assert error.value.hint == "use another"
    with pytest.raises(ModelError, match="ended by itself"):
        RemoteTranslator(folder, "tame_work", n_at_a_time=1, engine="crash").wait()


def test_when_it_dies_everybody_is_told_and_the_server_is_to_stop(folder: Path) -> None:
    stops: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: stops.append(number))

    async def ask(there: RemoteTranslator) -> list[Any]:
        found = await asyncio.gather(there.translate(["slowly"]), there.translate(["die"]), return_exceptions=True)
        with pytest.raises(TranslatorFailedError):
            await there.translate(["later"])
        assert there.has_ended
        assert "code -9" in there.ended().message
        return found

    try:
        assert [type(one) for one in asked(folder, ask)] == [TranslatorFailedError] * 2
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stops == [signal.SIGTERM]
