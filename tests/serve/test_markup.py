"""Tags stay, text is translated, and tags inside a sentence go where their words went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.serve.html_blocks import Run, blocks
from dragoman.serve.markup import Markup

GERMAN = {
    "The red car is very fast.": "Das rote Auto ist sehr schnell.",
    "red car": "rotes Auto",
    "car": "Auto",
    "very": "sehr",
    "Hello world!": "Hallo Welt!",
    "world": "Welt",
    "I saw him yesterday.": "Gestern habe ich ihn gesehen.",
    "yesterday": "gestern",
    "saw": "sah",
}


def translated(source: str) -> str:
    markup = Markup(source, "en")
    return markup.filled([GERMAN.get(sentence, sentence) for sentence in markup.sentences])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Hello world!", "Hallo Welt!"),
        ("Hello <b>world</b>!", "Hallo <b>Welt</b>!"),
        (
            '<P CLASS="x" data-y=1>The <b>red <i>car</i></b> is <em>very</em> fast.</P>',
            '<P CLASS="x" data-y=1>Das <b>rote <i>Auto</i></b> ist <em>sehr</em> schnell.</P>',
        ),
        # Words change their order, and the element goes with them.
        ("I saw him <i>yesterday</i>.", "<i>Gestern</i> habe ich ihn gesehen."),
        (
            "<p><b>Hello world!</b> I saw him yesterday.<br/>Hello world!</p>",
            "<p><b>Hallo Welt!</b> Gestern habe ich ihn gesehen.<br/>Hallo Welt!</p>",
        ),
        ("<i>Hello world! I saw him yesterday.</i>", "<i>Hallo Welt! Gestern habe ich ihn gesehen.</i>"),
        ("<script>Hello world!</script><!-- Hello world! -->", "<script>Hello world!</script><!-- Hello world! -->"),
        ('<p translate="no">Hello world!</p>Hello world!', '<p translate="no">Hello world!</p>Hallo Welt!'),
        ('<a title="Hello world!">Hello world!</a>', '<a title="Hello world!">Hallo Welt!</a>'),
        ("1 &lt; 2 &amp; 3", "1 &lt; 2 &amp; 3"),
        ("<b>Hello world!", "<b>Hallo Welt!"),
        ("<i></i><a>Hello world!<i></i></a>", "<i></i><a>Hallo Welt!<i></i></a>"),
        ("Hello\n   world!", "Hallo Welt!"),
    ],
)
def test_html_is_translated(source: str, target: str) -> None:
    assert translated(source) == target


def test_a_sentence_with_too_many_elements_is_translated_in_pieces() -> None:
    markup = Markup("<b>one</b> two " * 200, "en")
    assert markup.filled(markup.sentences) == "<b>one</b> two " * 200
    assert markup.sentences[:2] == ["one", "two"]


PIECES = [
    "<b>", "</b>", "<i a='1'>", "</i>", "<p>", "</p>", "<br>", "<img x>", " ", "a", "B. ", "word", "&amp;", "&lt;", "&",
    "\n", "<!-- x -->", "<script>", "</script>", "<svg>", "</svg>", "<span translate=no>", "</span>", "<!doctype x>",
    "<?x?>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=16))
def test_no_tag_is_lost_or_invented(pieces: list[str]) -> None:
    source = "".join(pieces)
    markup = Markup(source, "en")
    result = markup.filled(markup.sentences)
    for tag in PIECES:
        if tag.startswith("<"):
            assert result.count(tag) == source.count(tag), tag


@given(st.text(alphabet="<>/ab&;!-[]?'\"= \n", max_size=60))
def test_what_is_hardly_html_survives(source: str) -> None:
    kept = [block for block in blocks(source) if isinstance(block, str)]
    assert all(piece in source for piece in kept)
    markup = Markup(source, "en")
    assert isinstance(markup.filled(markup.sentences), str)
    assert all(isinstance(block, Run | str) for block in blocks(source))
