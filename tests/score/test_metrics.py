"""Scores are sacreBLEU's, with its signatures; loss and perplexity are their formulas."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import sacrebleu

from dragoman.errors import DataError
from dragoman.score.likelihood import mean_loss, perplexity
from dragoman.score.metrics import bleu, exact_match, score

HYPOTHESES = ["the cat sat on the mat .", "A man rides a bicycle.", "", "nothing in common here"]
REFERENCES = ["the cat sat on the mat .", "A man is riding a bike.", "He waits.", "quite other words"]
VERSION = sacrebleu.__version__


def test_scores_and_signatures_are_sacrebleus():
    found = score(HYPOTHESES, REFERENCES)
    assert found.bleu.score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert found.chrf.score == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert found.ter.score == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert found.bleu.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{VERSION}"
    assert found.chrf.signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{VERSION}"
    assert found.ter.signature == (f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{VERSION}")
    assert found.sentences == 4
    assert bleu(HYPOTHESES, REFERENCES) == found.bleu


def test_a_perfect_text_scores_perfectly():
    found = score(REFERENCES, REFERENCES)
    assert (found.bleu.score, found.chrf.score, found.ter.score) == pytest.approx((100, 100, 0))


def test_json_has_the_promised_keys():
    printed = json.loads(json.dumps(score(HYPOTHESES, REFERENCES).to_dict()))
    assert list(printed) == ["bleu", "chrf", "ter", "sentences"]
    for metric in ("bleu", "chrf", "ter"):
        assert list(printed[metric]) == ["score", "signature"]


def test_exact_match_is_a_percentage():
    assert exact_match(HYPOTHESES, REFERENCES) == 25.0
    assert exact_match(["a", "b", "c"], ["a", "B", "x"]) == pytest.approx(100 / 3)


@pytest.mark.parametrize("measure", [score, bleu, exact_match])
def test_lines_that_do_not_belong_together_are_refused(measure):
    with pytest.raises(DataError, match="2 hypotheses but 3 references") as error:
        measure(["a", "b"], ["a", "b", "c"])
    assert error.value.hint
    with pytest.raises(DataError, match="nothing to score"):
        measure([], [])


def test_scoring_needs_no_torch():
    code = "import sys, dragoman.score.metrics, dragoman.score.significance; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_mean_loss_is_over_tokens_not_sentences():
    assert mean_loss([(-1.0, -2.0, -3.0), (-6.0,)]) == 3.0
    assert mean_loss([(-1.0,), ()]) == 1.0


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary():
    assert perplexity(mean_loss([[-math.log(37)] * 4, [-math.log(37)]])) == pytest.approx(37)


def test_perplexity_overflows_to_infinity():
    assert perplexity(0.0) == 1.0
    assert perplexity(math.log(4.92)) == pytest.approx(4.92)
    assert perplexity(1e6) == math.inf
    assert perplexity(math.inf) == math.inf
    assert math.isnan(perplexity(math.nan))
