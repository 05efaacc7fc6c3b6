"""CTranslate2 behind our interface: the same answers as our own engine, from a run folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from small_run import Corpus

from dragoman.checkpoint.folder import FORMAT_VERSION
from dragoman.config import load_config
from dragoman.engines.processor import has_avx512
from dragoman.errors import ConfigError
from dragoman.text.glossary import Glossary, Term
from dragoman.tokens.shortlist import Shortlist
from dragoman.translator import Translation, Translator, load


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Translator:
    return load(folder, engine="ct2", precision="float32", threads=1)


def assert_same(found: list[Translation], expected: list[Translation]) -> None:
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, two in zip(found, expected, strict=True):
        assert one.score == pytest.approx(two.score, abs=1e-4)
        assert one.log_prob == pytest.approx(two.log_prob, abs=1e-4)
        assert [other.score for other in one.alternatives] == pytest.approx(
            [other.score for other in two.alternatives], abs=1e-4
        )


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.4])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_the_same_tokens_and_scores(
    ours: Translator, theirs: Translator, sentences: list[str], beam: int, alpha: float
) -> None:
    options = {"beam": beam, "length_penalty": alpha}
    expected = ours.translate(sentences, **options)
    assert len({one.text for one in expected}) > 30
    found = theirs.translate(sentences, **options)
    limits = [len(ours.subwords.encode(text)) + ours.config.search.max_extra_tokens for text in sentences]
    ended = [row for row, limit in enumerate(limits) if len(expected[row].tokens) < limit]  # and were not cut
    assert len(ended) > 0.7 * len(sentences)
    assert_same([found[row] for row in ended], [expected[row] for row in ended])


def test_what_the_limit_of_length_cuts_is_counted_with_its_end(
    ours: Translator, theirs: Translator, sentences: list[str]
) -> None:
    """Translations here are about as long as their sources: a limit of as many tokens cuts some of them."""
    limited = [
        Translator(one.engine, one.subwords, replace(one.config, search=replace(one.config.search, max_extra_tokens=0)))
        for one in (ours, theirs)
    ]
    expected, found = (one.translate(sentences, beam=2, token_log_probs=True) for one in limited)
    limits = [len(ours.subwords.encode(text)) for text in sentences]
    is_free = [len(a.tokens) < n > len(b.tokens) for n, a, b in zip(limits, expected, found, strict=True)]
    assert 5 < sum(is_free) < len(sentences) - 5
    assert_same(*([one for one, free in zip(each, is_free, strict=True) if free] for each in (found, expected)))
    for limit, one in zip(limits, found, strict=True):
        assert len(one.tokens) <= limit
        assert one.log_prob == pytest.approx(sum(one.token_log_probs or ()), abs=1e-4)
    same = sum(a.tokens == b.tokens for a, b in zip(expected, found, strict=True))
    assert same > 0.8 * len(sentences)


@pytest.mark.parametrize("options", [{"prefix": "kiba"}, {"no_repeat_ngram": 2}, {"prefix": "su ta", "beam": 1}])
def test_what_is_forced_and_forbidden(
    ours: Translator, theirs: Translator, sentences: list[str], options: dict[str, Any]
) -> None:
    expected, found = (one.translate(sentences[:40], token_log_probs=True, **options) for one in (ours, theirs))
    same = 0
    for one, two in zip(expected, found, strict=True):
        for each in (one, two):
            assert each.text.startswith(options.get("prefix", ""))
            runs = list(pairwise(each.tokens))
            assert len(set(runs)) == len(runs) or "no_repeat_ngram" not in options
            assert each.log_prob == pytest.approx(sum(each.token_log_probs or ()), abs=1e-4)
        same += one.tokens == two.tokens
    assert same >= 36  # CTranslate2 spreads the probability of what is forbidden over the rest, which we do not
    assert [one.text for one in ours.translate(sentences[:40])] != [one.text for one in expected]


@pytest.mark.parametrize("engine", ["ours", "theirs"])
def test_terms_are_insisted_on(engine: str, request: pytest.FixtureRequest, sentences: list[str]) -> None:
    """Every word that starts with "ki" shall be "sulo" or "SULO-7", which the model would hardly write."""
    translator: Translator = request.getfixturevalue(engine)
    some = [line for line in sentences[:60] if "ki" in line][:8]
    words = {word for line in some for word in line.split() if word.startswith("ki")}
    glossary = Glossary([Term(word, ("SULO-7", "sulo")) for word in words])
    plain, found = translator.translate(some), translator.translate(some, glossary=glossary)
    n_anyway = 0
    for line, before, after in zip(some, plain, found, strict=True):
        asked = {word for word in line.split() if word in words}
        assert {src for src, _, _ in after.terms} == asked
        for _, form, was_met in after.terms:
            assert form in ("SULO-7", "sulo")
            assert form in after.text.split()
            n_anyway += was_met
        assert asked or after.text == before.text
    assert n_anyway < sum(len(one.terms) for one in found), "or nothing was insisted on"


def test_a_prefix_stays_where_a_term_is_insisted_on(ours: Translator, theirs: Translator, sentences: list[str]) -> None:
    glossary = Glossary([Term(word, ("SULO-7",)) for word in sentences[0].split()[:1]])
    for translator in (ours, theirs):
        (found,) = translator.translate(sentences[:1], prefix="kiba taba", glossary=glossary)
        assert found.text.startswith("kiba taba")
        assert "SULO-7" in found.text


def test_addresses_numbers_and_tags_stay(ours: Translator, theirs: Translator) -> None:
    texts = ["kide <b>pode</b> 3.5", "balo x@y.org deba", "nalo {name}"]
    for translator in (ours, theirs):
        assert "3.5" not in translator.translate(texts[:1])[0].text
        first, second, third = (one.text for one in translator.translate(texts, unk_copy=True))
        assert all(word in first for word in ("<b>", "</b>", "3.5"))
        assert "x@y.org" in second
        assert "{name}" in third


def test_a_long_text_is_translated_in_pieces(ours: Translator, theirs: Translator, corpus: Corpus) -> None:
    """Three sentences that together are longer than any of the training text, which a model would garble."""
    lines = corpus.src.read_text(encoding="utf-8").splitlines()[:30]
    long = "! ".join(lines) + "!"
    assert len(ours.subwords.encode(long)) > ours.config.batches.max_len_tokens
    for translator in (ours, theirs):
        alone = [one.text for one in translator.translate([f"{line}!" for line in lines])]
        assert translator(long) == " ".join(alone)
    aligned = ours.translate([long], alignments=True, token_log_probs=True)[0]
    assert aligned.log_prob == pytest.approx(sum(aligned.token_log_probs or ()), abs=1e-3)
    assert max(src for src, _ in aligned.alignment or ()) < len(long.split())
    assert [tgt for _, tgt in aligned.alignment or ()] == list(range(len(aligned.text.split())))


def test_loss_and_the_numbers_of_tokens(ours: Translator, theirs: Translator, corpus: Corpus) -> None:
    src, tgt = (path.read_text(encoding="utf-8").splitlines() for path in (corpus.valid_src, corpus.valid_tgt))
    assert theirs.loss(src, tgt) == pytest.approx(ours.loss(src, tgt), abs=1e-5)
    for odd_src, odd_tgt in (("", tgt[0]), (src[0], ""), ("", "")):
        assert theirs.loss([*src, odd_src], [*tgt, odd_tgt]) == pytest.approx(
            ours.loss([*src, odd_src], [*tgt, odd_tgt]), abs=1e-5
        )
    for one, two in zip(*(each.translate(src, token_log_probs=True) for each in (ours, theirs)), strict=True):
        assert two.token_log_probs == pytest.approx(one.token_log_probs, abs=1e-4)


def test_neither_batch_nor_order_nor_threads_matter(folder: Path, theirs: Translator, sentences: list[str]) -> None:
    together = theirs.translate(sentences)
    assert_same([theirs.translate([text])[0] for text in sentences], together)
    assert_same(theirs.translate(sentences[::-1], batch_tokens=30)[::-1], together)
    assert_same(load(folder, engine="ct2", precision="float32", threads=2).translate(sentences), together)


def test_int8_is_the_choice_and_nearly_as_good(folder: Path, ours: Translator, corpus: Corpus) -> None:
    chosen = load(folder, device="cpu")
    assert (folder / "ct2" / "int8-short" / "model.bin").is_file()
    src, tgt = (path.read_text(encoding="utf-8").splitlines()[:100] for path in (corpus.src, corpus.tgt))
    assert chosen.loss(src, tgt) == pytest.approx(ours.loss(src, tgt), rel=0.02)
    assert chosen.loss(src, tgt) != ours.loss(src, tgt)


def test_what_it_cannot_do_our_own_engine_does(theirs: Translator, ours: Translator, sentences: list[str]) -> None:
    found, expected = (one.translate(sentences[:5], alignments=True) for one in (theirs, ours))
    assert [one.alignment for one in found] == [one.alignment for one in expected]
    assert theirs.attention(sentences[0]).cross == pytest.approx(ours.attention(sentences[0]).cross, abs=1e-5)


def test_files_are_made_once_and_anew_when_the_weights_change(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    model = folder / "ct2" / "float32" / "model.bin"
    load(folder, engine="ct2", precision="float32")
    made = model.stat().st_mtime_ns, model.read_bytes()
    load(folder, engine="ct2", precision="float32")
    assert model.stat().st_mtime_ns == made[0]

    os.utime(folder / "model.safetensors")  # as a copy of the folder has: other times, the same bytes
    load(folder, engine="ct2", precision="float32")
    assert model.stat().st_mtime_ns == made[0]

    weights = {name: -tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"version": str(FORMAT_VERSION)})
    load(folder, engine="ct2", precision="float32")
    assert model.read_bytes() != made[1]
    assert not list(folder.glob("ct2/.*"))


def test_a_folder_that_cannot_hold_them_is_no_obstacle(run: Path, tmp_path: Path, sentences: list[str]) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    shutil.rmtree(folder / "ct2", ignore_errors=True)  # which other tests may have left in the shared run
    (folder / "ct2").write_text("in the way of a folder")
    assert_same(
        load(folder, engine="ct2", precision="float32").translate(sentences[:5]),
        load(folder, engine="torch").translate(sentences[:5]),
    )


def test_without_torch(folder: Path, corpus: Corpus, tmp_path: Path) -> None:
    """The commands in a process that cannot import torch."""
    without = "import sys; sys.modules['torch'] = None; from dragoman.cli.main import main; main()"
    source = tmp_path / "input"
    source.write_text("".join(f"{line}\n" for line in corpus.src.read_text(encoding="utf-8").splitlines()[:5]))

    def dragoman(*args: str, code: int = 0) -> str:
        done = subprocess.run([sys.executable, "-c", without, *args], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    out = dragoman("translate", "--model", str(folder), str(source))
    assert out.splitlines() == [
        one.text for one in load(folder, device="cpu").translate(source.read_text().splitlines())
    ]
    scores = dragoman(
        "evaluate", "--model", str(folder), "--src", str(corpus.valid_src), "--ref", str(corpus.valid_tgt)
    )
    assert "BLEU" in scores
    assert "perplexity" in scores
    refused = dragoman("translate", "--model", str(folder), str(source), "--sample", code=1)
    assert "need torch" in refused
    assert "dragoman[train]" in refused


@pytest.mark.parametrize("told", [None, "GENERIC"])
def test_ctranslate2_uses_the_widest_vectors_unless_told_otherwise(run: Path, told: str | None) -> None:
    """By its own account, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "CT2_FORCE_CPU_ISA"}
    if told is not None:
        environment["CT2_FORCE_CPU_ISA"] = told
    elif not has_avx512():
        pytest.skip("this processor has no AVX-512")
    code = f"import dragoman; dragoman.load({str(run)!r}, engine='ct2')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "CT2_VERBOSE": "1"}, capture_output=True, text=True
    )
    assert f"Selected ISA: {told or 'AVX512'}" in done.stderr


def test_files_made_for_another_processor_are_made_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights that overflow on this one, a folder that came from elsewhere would translate badly."""
    copy = shutil.copytree(folder, tmp_path / "run", ignore=shutil.ignore_patterns("ct2", "checkpoints"))
    sizes = {}
    for bits in (32, 16):
        monkeypatch.setattr("dragoman.engines.ct2_files.sum_bits", lambda bits=bits: bits)
        load(copy, engine="ct2", precision="int8")
        sizes[bits] = (copy / "ct2" / "int8-short" / "model.bin").read_bytes()
    assert sizes[32] != sizes[16]


def _with_usual(folder: Path, copy: Path, usual: set[int]) -> Translator:
    """A copy of the run in which only these subwords, and those that every model needs, are usual."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("ct2", "checkpoints"), dirs_exist_ok=True)
    path = copy / "shortlist.safetensors"
    size = load_config(copy).model.vocab_size
    replace(Shortlist.load(path, size), usual=np.array(sorted({0, 1, 2, 3} | usual))).save(path)
    return load(copy, engine="ct2", precision="int8", threads=1)


def test_int8_writes_what_is_usual_and_whatever_is_forced(
    folder: Path, ours: Translator, sentences: list[str], tmp_path: Path
) -> None:
    whole = load(folder, engine="ct2", precision="int8", threads=1, shortlist=False)
    expected = whole.translate(sentences)
    needed = {i for one in expected for i in ours.subwords.encode(one.text)}
    missing = min(needed, key=lambda i: sum(i in ours.subwords.encode(one.text) for one in expected))
    short = _with_usual(folder, tmp_path / "run", needed - {missing})
    found = short.translate(sentences)
    (piece,) = ours.subwords.pieces([missing])
    assert any(piece in one.tokens for one in expected)
    assert not any(piece in one.tokens for one in found)
    assert_same([short.translate([text])[0] for text in sentences], found)

    forced = ours.subwords.decode([missing])
    assert short.translate(sentences[:3], prefix=forced)[0].text.startswith(forced)
    src, tgt = sentences[:20], [one.text for one in expected[:20]]
    assert short.loss(src, tgt) == whole.loss(src, tgt), "a text to be scored may have any subword"


def test_another_shortlist_is_used_at_once(folder: Path, sentences: list[str], tmp_path: Path) -> None:
    whole = load(folder, engine="ct2", precision="int8", threads=1, shortlist=False)
    texts = [one.text for one in whole.translate(sentences[:10])]
    usual = {i for text in texts for i in whole.subwords.encode(text)}
    few = _with_usual(folder, tmp_path / "run", set(sorted(usual)[:3]))
    assert [one.text for one in few.translate(sentences[:10])] != texts
    enough = _with_usual(folder, tmp_path / "run", usual)
    assert sum(one.text == text for one, text in zip(enough.translate(sentences[:10]), texts, strict=True)) > 7
    (tmp_path / "run" / "shortlist.safetensors").unlink()
    without = load(tmp_path / "run", engine="ct2", precision="int8", threads=1)
    assert [one.text for one in without.translate(sentences[:10])] == texts


def test_choices_that_there_are_not(folder: Path) -> None:
    with pytest.raises(ConfigError, match='engine "tpu" is not a choice'):
        load(folder, engine="tpu")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="threads=0"):
        load(folder, threads=0)


@pytest.mark.parametrize(("engine", "precision"), [("torch", "float32"), ("torch", "bfloat16"), ("ct2", "float32")])
def test_tokens_come_one_by_one_and_make_up_the_greedy_translation(
    folder: Path, sentences: list[str], engine: Any, precision: Any
) -> None:
    translator = load(folder, engine=engine, precision=precision, threads=1)
    texts = [*sentences[:20], *sentences[-3:]]
    expected = translator.translate(texts, beam=1)
    for text, one in zip(texts, expected, strict=True):
        bits = list(translator.tokens(text))
        assert "".join(bits) == one.text
        if len(one.tokens) > 3:
            assert len([bit for bit in bits if bit]) > 2
    begun = "".join(translator.tokens(texts[0], prefix="Das", no_repeat_ngram=2))
    assert begun == translator.translate([texts[0]], beam=1, prefix="Das", no_repeat_ngram=2)[0].text
