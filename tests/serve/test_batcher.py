"""Requests share batches, and none of them notices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tame_server import TameTranslator

from dragoman.serve.batcher import Batcher, QueueFullError, Search


def batcher(translator: Any, **options: int) -> Batcher:
    return Batcher(translator.translate, **({"n_workers": 1, "max_batch": 4, "max_queue": 10} | options))


def test_requests_that_arrive_together_are_translated_together() -> None:
    translator = TameTranslator()

    async def main() -> list[list[str]]:
        one = batcher(translator)
        found = await asyncio.gather(*(one.translate([text], Search()) for text in "abc"))
        await one.close()
        return [[translation.text for translation in each] for each in found]

    assert asyncio.run(main()) == [["A"], ["B"], ["C"]]
    assert translator.calls == [["a", "b", "c"]]


def test_only_equal_searches_share_a_batch() -> None:
    translator = TameTranslator()

    async def main() -> None:
        one = batcher(translator)
        searches = [Search(), Search(beam=2), Search(), Search(beam=2)]
        found = await asyncio.gather(
            *(one.translate([text], search) for text, search in zip("abcd", searches, strict=True))
        )
        await one.close()
        assert [each[0].text for each in found] == ["A", "B", "C", "D"]

    asyncio.run(main())
    assert translator.calls == [["a", "c"], ["b", "d"]]


def test_long_requests_are_cut_into_batches_and_put_together_again() -> None:
    translator = TameTranslator()

    async def main() -> None:
        one = batcher(translator, n_workers=3)
        texts = [f"t{i}" for i in range(9)]
        first, second = await asyncio.gather(one.translate(texts, Search()), one.translate(["x"], Search()))
        await one.close()
        assert [each.text for each in first] == [text.upper() for text in texts]
        assert second[0].text == "X"
        assert one.n_waiting == 0

    asyncio.run(main())
    assert max(map(len, translator.calls)) <= 4


@pytest.mark.parametrize(("n", "n_left"), [(15, 15), (16, 0), (40, 0)])
def test_enough_for_a_batch_is_read_while_another_is_computed(n: int, n_left: int) -> None:
    async def main() -> None:
        translator = TameTranslator()
        translator.may_go_on.clear()
        one = batcher(translator, n_ahead=1, max_batch=64, max_queue=200)

        async def ask(text: str, n: int) -> list[asyncio.Future[Any]]:
            asked = [asyncio.ensure_future(one.translate([text], Search())) for _ in range(n)]
            for _ in range(5):  # turns of the event loop, in which all is given out that will be
                await asyncio.sleep(0)
            return asked

        asked = await ask("a", 1)
        asked += await ask("b", n)
        assert one.n_waiting == n_left
        if not n_left:
            asked += await ask("c", 30)
            assert one.n_waiting == 30, "no more than one is ahead of the worker"
        translator.may_go_on.set()
        found = await asyncio.gather(*asked)
        assert [each[0].text for each in found] == ["A", *"B" * n, *"C" * (len(asked) - n - 1)]
        await one.close()

    asyncio.run(main())


def test_a_request_that_finds_nobody_waiting_is_always_taken() -> None:
    async def main() -> None:
        translator = TameTranslator()
        translator.may_go_on.clear()
        one = batcher(translator, max_queue=2)
        large = asyncio.ensure_future(one.translate(["a"] * 50, Search()))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await one.translate(["b"], Search())
        translator.may_go_on.set()
        assert len(await large) == 50
        await one.close()

    asyncio.run(main())


def test_a_failure_reaches_those_whose_batch_it_was() -> None:
    async def main() -> None:
        one = batcher(TameTranslator(), max_batch=1)
        found = await asyncio.gather(
            one.translate(["fail"], Search()), one.translate(["a"], Search()), return_exceptions=True
        )
        await one.close()
        assert isinstance(found[0], RuntimeError)
        assert [each.text for each in found[1]] == ["A"]  # type: ignore[union-attr]

    asyncio.run(main())
