"""Any text survives encoding, and a vocabulary that cannot be made or read says why."""

import logging
from pathlib import Path

import pytest
import sentencepiece as spm
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DataError, ModelError
from dragoman.tokens.subwords import Subwords, TokensConfig

TEXT = [
    "Ein Mann fährt mit dem Fahrrad durch die Straße.",
    "A man rides a bicycle through the street.",
    "Zwei Frauen und ein Kind sitzen auf einer Bank im Park und lesen Bücher.",
    "Two women and a child sit on a bench in the park reading books.",
    "Der Hund läuft über den Strand, während die Sonne untergeht.",
    "The dog runs over the beach while the sun sets.",
] * 3


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return Subwords.train(TEXT, vocab_size=400)


@given(text=st.text() | st.text("a ▁<s>/\t\n0x41"))
@example("")
@example(" ")
@example("  two  spaces  ")
@example("\ttab\nnewline\r\n\0NUL")
@example("👩‍👩‍👧 e\u0301 मानक हिन्दी 漢字 \U0010ffff")
@example("▁")
@example(" ▁ ▁▁a▁ b▁")
@example("<s></s><unk><pad><0x41> ⁇ ▅")
@example("\ufeffmark\u2028break\u2029\x85")
@settings(deadline=None, max_examples=200)
def test_decode_returns_what_encode_was_given(subwords: Subwords, text: str) -> None:
    ids = subwords.encode(text)
    assert subwords.decode(ids) == text
    assert all(4 <= i < subwords.vocab_size for i in ids)  # no special id, and unknown least of all


def test_known_words_are_few_readable_pieces(subwords: Subwords) -> None:
    pieces = subwords.pieces(subwords.encode("the man"))
    assert "".join(pieces) == "▁the▁man"
    assert len(pieces) <= 4


def test_special_ids(subwords: Subwords) -> None:
    assert (subwords.pad_id, subwords.unk_id, subwords.bos_id, subwords.eos_id) == (0, 1, 2, 3)
    assert subwords.pieces([0, 1, 2, 3, 4]) == ["<pad>", "<unk>", "<s>", "</s>", "<0x00>"]
    ids = subwords.encode("a dog")
    assert subwords.decode([2, *ids, 1, 3, 0, 0]) == "a dog"


def test_bytes_that_form_no_character_decode_without_error(subwords: Subwords) -> None:
    assert subwords.decode([4 + 0xE2, 4 + 0x96]) == "\ufffd\ufffd"


def test_half_a_surrogate_pair_is_refused(subwords: Subwords) -> None:
    with pytest.raises(DataError, match="half a surrogate pair"):
        subwords.encode("a\ud800")


def test_training_is_reproducible_and_takes_an_iterator(tmp_path: Path) -> None:
    for name in "ab":
        Subwords.train(iter(TEXT), vocab_size=350).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_saving_and_loading(subwords: Subwords, tmp_path: Path) -> None:
    path = tmp_path / "subwords.model"
    path.write_bytes(b"an older one")
    subwords.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["subwords.model"]
    loaded = Subwords.load(path)
    assert loaded.vocab_size == subwords.vocab_size == 400
    assert loaded.encode("Ein Fahrrad ▁ x") == subwords.encode("Ein Fahrrad ▁ x")


def test_sentencepiece_itself_reads_the_file(subwords: Subwords, tmp_path: Path) -> None:
    subwords.save(tmp_path / "m")
    theirs = spm.SentencePieceProcessor(model_file=str(tmp_path / "m"))
    assert theirs.encode(TEXT[0]) == subwords.encode(TEXT[0])


def test_a_vocabulary_larger_than_the_text_supports_is_cut_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        subwords = Subwords.train(TEXT, vocab_size=37_000)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"the text supports a vocabulary of {subwords.vocab_size} subwords, not the 37000 asked for; "
        f"{subwords.vocab_size} are used"
    )
    assert 400 < subwords.vocab_size < 1000
    assert subwords.decode(subwords.encode("Straße ▁")) == "Straße ▁"


def test_a_vocabulary_too_small_for_the_characters() -> None:
    with pytest.raises(ConfigError, match=r"tokens\.vocab_size=270 is too small") as caught:
        Subwords.train(TEXT, vocab_size=270)
    smallest = int(str(caught.value.hint).split()[-1]) + 1
    assert Subwords.train(TEXT, vocab_size=smallest).vocab_size == smallest
    with pytest.raises(ConfigError, match=r"tokens\.vocab_size=260 leaves no room"):
        TokensConfig(vocab_size=260)


@pytest.mark.parametrize("texts", [[], [""], [" ", "\t"]])
def test_no_text_is_an_error(texts: list[str]) -> None:
    with pytest.raises(DataError, match="no text to learn subwords from"):
        Subwords.train(texts, vocab_size=300)


def test_text_that_sentencepiece_cannot_use_is_an_error() -> None:
    with pytest.raises(DataError, match="no subwords can be learnt"):
        Subwords.train(["x" * 200_000], vocab_size=300)


def test_training_text_is_thinned_evenly_and_reproducibly(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.tokens import subwords as module

    monkeypatch.setattr(module, "_MAX_TRAINING_LINES", 100)
    sample = module._sample(str(i) for i in range(10_000))
    assert len(set(sample)) == 100
    assert sample == module._sample(str(i) for i in range(10_000))
    assert 4000 < sum(map(int, sample)) / 100 < 6000  # from everywhere, not from the beginning


def test_damaged_files_are_refused(subwords: Subwords, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        Subwords.load(tmp_path / "missing")
    subwords.save(tmp_path / "m")
    model = (tmp_path / "m").read_bytes()
    cut = [model[:length] for length in range(0, len(model), 101)]
    for garbage in [b"garbage" * 99, b"\xff" * 99, b"\0" * 99, *cut]:
        (tmp_path / "m").write_bytes(garbage)
        with pytest.raises(ModelError, match="m: ") as caught:
            Subwords.load(tmp_path / "m")
        assert caught.value.hint


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    def train(name: str, **settings: object) -> Path:
        with open(tmp_path / name, "wb") as file:
            spm.SentencePieceTrainer.train(
                sentence_iterator=iter(TEXT), model_writer=file, model_type="bpe", minloglevel=2, **settings
            )
        return tmp_path / name

    with pytest.raises(ModelError, match=r"has pad, unk, bos, eos = \(-1, 0, 1, 2\)"):
        Subwords.load(train("theirs", vocab_size=300, byte_fallback=True))
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    with pytest.raises(ModelError, match="has no byte pieces"):
        Subwords.load(train("small", vocab_size=100, **ids))
