"""The built-in corpus: German and English by hand-written tables, the split by its definition."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.text.builtin import BuiltinCorpus, builtin_corpus
from dragoman.text.builtin import german_words as forms
from dragoman.text.builtin.adjectives import ADJECTIVES, Adjective
from dragoman.text.builtin.english import english, third_person
from dragoman.text.builtin.german import german, noun_phrase
from dragoman.text.builtin.heldout import Combination, combinations, is_reserved, words
from dragoman.text.builtin.nouns import NOUNS, Case, Noun, nouns, places
from dragoman.text.builtin.numbers import english_cardinal, english_ordinal, german_cardinal, german_ordinal
from dragoman.text.builtin.phrases import CONJUNCTIONS, MONTHS, Phrase, clock, date
from dragoman.text.builtin.sentences import sentence
from dragoman.text.builtin.syntax import (
    Clause,
    Complex,
    Name,
    NounPhrase,
    Pair,
    Person,
    Predicate,
    Prepositional,
    Pronoun,
    Purpose,
    Question,
    Relative,
    Sentence,
    Statement,
)
from dragoman.text.builtin.verbs import (
    ALONE_VERBS,
    BE,
    CLAUSE_VERBS,
    COST,
    EXIST,
    GIVING_VERBS,
    GOING_VERBS,
    INFINITIVE_VERBS,
    MODALS,
    OBJECT_VERBS,
    STAYING_VERBS,
    Modal,
    Verb,
    ing_form,
)

CASES: tuple[Case, ...] = ("nom", "acc", "dat", "gen")
VERBS = [*OBJECT_VERBS, *GIVING_VERBS, *GOING_VERBS, *STAYING_VERBS, *ALONE_VERBS, *INFINITIVE_VERBS]


def noun(en: str) -> Noun:
    return nouns(en)[0]


def adjective(en: str) -> Adjective:
    return next(each for each in ADJECTIVES if each.en == en)


def verb(infinitive: str) -> Verb:
    return next(each for each in VERBS if each.infinitive == infinitive)


def modal(de: str) -> Modal:
    return next(each for each in MODALS if each.de == de)


def np(en: str, determiner: str = "the", adj: str | None = None, **more: Any) -> NounPhrase:
    described = None if adj is None else adjective(adj)
    return NounPhrase(noun=noun(en), determiner=determiner, adjective=described, **more)


def at(en: str) -> Prepositional:
    place = places(en)[0]
    return Prepositional(en=place.en_at, de=place.de_at, case="dat", phrase=np(en))


def to(en: str) -> Prepositional:
    place = places(en)[0]
    case: Case = "dat" if place.de_to == "zu" else "acc"
    return Prepositional(en="to", de=place.de_to, case=case, phrase=np(en))


def clause(subject: Any, infinitive: str, obj: Any = None, **more: Any) -> Clause:
    found = [each for each in VERBS if each.infinitive == infinitive]
    return Clause(subject=subject, verb=found[-1 if obj is None else 0], object=obj, **more)


YESTERDAY = Phrase("yesterday", "gestern")
GOLDEN = [
    ("He knows what the king ordered.", "Er weiß, was der König bestellt hat."),
    ("What will Peter read on the thirteenth of October?", "Was wird Peter am dreizehnten Oktober lesen?"),
    ("The strong painter was ninety-six years old.", "Der starke Maler war sechsundneunzig Jahre alt."),
]
TOMORROW = Phrase("tomorrow", "morgen")


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        (np("teacher", "the", "old"), "der alte Lehrer|den alten Lehrer|dem alten Lehrer|des alten Lehrers"),
        (np("teacher", "a", "old"), "ein alter Lehrer|einen alten Lehrer|einem alten Lehrer|eines alten Lehrers"),
        (np("woman", "the", "young"), "die junge Frau|die junge Frau|der jungen Frau|der jungen Frau"),
        (np("woman", "no", "young"), "keine junge Frau|keine junge Frau|keiner jungen Frau|keiner jungen Frau"),
        (np("car", "this", "expensive"), "dieses teure Auto|dieses teure Auto|diesem teuren Auto|dieses teuren Autos"),
        (np("car", "her", "new"), "ihr neues Auto|ihr neues Auto|ihrem neuen Auto|ihres neuen Autos"),
        (np("student"), "der Student|den Studenten|dem Studenten|des Studenten"),
        (np("neighbour", "my"), "mein Nachbar|meinen Nachbarn|meinem Nachbarn|meines Nachbarn"),
        (np("boy", "every"), "jeder Junge|jeden Jungen|jedem Jungen|jedes Jungen"),
        (np("milk", "", "cold"), "kalte Milch|kalte Milch|kalter Milch|kalter Milch"),
        (np("wine", "", "red"), "roter Wein|roten Wein|rotem Wein|roten Weins"),
        (np("bread", "", "fresh"), "frisches Brot|frisches Brot|frischem Brot|frischen Brotes"),
        (np("house", plural=True), "die Häuser|die Häuser|den Häusern|der Häuser"),
        (
            np("house", "", "old", plural=True, count=3),
            "drei alte Häuser|drei alte Häuser|drei alten Häusern|drei alter Häuser",
        ),
        (
            np("friend", "our", "rich", plural=True),
            "unsere reichen Freunde|unsere reichen Freunde|unseren reichen Freunden|unserer reichen Freunde",
        ),
        (np("car", plural=True), "die Autos|die Autos|den Autos|der Autos"),
        (np("window", "", "dirty", plural=True), "schmutzige Fenster|schmutzige Fenster|schmutzigen Fenstern|"
         "schmutziger Fenster"),
        (np("girl", "which"), "welches Mädchen|welches Mädchen|welchem Mädchen|welches Mädchens"),
        (
            np("cellar", "the", "dark"),
            "der dunkle Keller|den dunklen Keller|dem dunklen Keller|des dunklen Kellers",
        ),
        (
            np("car", adj="old", owner=np("doctor")),
            "das alte Auto des Arztes|das alte Auto des Arztes|dem alten Auto des Arztes|des alten Autos des Arztes",
        ),
        (
            np("hat", adj="old", owner=Name("Anna")),
            "Annas alter Hut|Annas alten Hut|Annas altem Hut|Annas alten Hutes",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_noun_phrases_decline(phrase: NounPhrase, expected: str) -> None:
    assert "|".join(noun_phrase(phrase, case) for case in CASES) == expected


def test_personal_pronouns_have_three_cases() -> None:
    table = {en: [forms.pronoun(en, case) for case in ("nom", "acc", "dat")] for en in ("I", "he", "she", "they")}
    assert table == {
        "I": ["ich", "mich", "mir"],
        "he": ["er", "ihn", "ihm"],
        "she": ["sie", "sie", "ihr"],
        "they": ["sie", "sie", "ihnen"],
    }


@pytest.mark.parametrize(
    ("infinitive", "expected"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen kaufen"),
        ("lesen", "lese liest liest lesen lesen"),
        ("geben", "gebe gibst gibt geben geben"),
        ("essen", "esse isst isst essen essen"),
        ("fahren", "fahre fährst fährt fahren fahren"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten arbeiten"),
        ("finden", "finde findest findet finden finden"),
        ("öffnen", "öffne öffnest öffnet öffnen öffnen"),
        ("zeichnen", "zeichne zeichnest zeichnet zeichnen zeichnen"),
        ("schließen", "schließe schließt schließt schließen schließen"),
        ("putzen", "putze putzt putzt putzen putzen"),
        ("füttern", "füttere fütterst füttert füttern füttern"),
        ("waschen", "wasche wäschst wäscht waschen waschen"),
        ("haben", "habe hast hat haben haben"),
        ("einladen", "lade lädst lädt laden laden"),
        ("teilnehmen", "nehme nimmst nimmt nehmen nehmen"),
        ("wegwerfen", "werfe wirfst wirft werfen werfen"),
    ],
)
def test_verbs_conjugate(infinitive: str, expected: str) -> None:
    persons: tuple[Person, ...] = ("1s", "2s", "3s", "1p", "3p")
    assert " ".join(forms.present(verb(infinitive), person) for person in persons) == expected


def test_separable_verbs_put_zu_inside() -> None:
    assert [forms.zu_infinitive(verb(name)) for name in ("lesen", "anrufen", "verkaufen", "fernsehen")] == [
        "zu lesen",
        "anzurufen",
        "zu verkaufen",
        "fernzusehen",
    ]


def test_numbers_in_words() -> None:
    assert [german_cardinal(n) for n in (1, 12, 16, 17, 21, 30, 66, 99)] == (
        ["eins", "zwölf", "sechzehn", "siebzehn", "einundzwanzig", "dreißig", "sechsundsechzig", "neunundneunzig"]
    )
    assert [english_cardinal(n) for n in (12, 21, 40, 99)] == ["twelve", "twenty-one", "forty", "ninety-nine"]
    assert [german_ordinal(n) for n in (1, 2, 3, 7, 8, 19, 20, 31)] == (
        ["erste", "zweite", "dritte", "siebte", "achte", "neunzehnte", "zwanzigste", "einunddreißigste"]
    )
    assert [english_ordinal(n) for n in (1, 2, 5, 9, 12, 20, 23)] == (
        ["first", "second", "fifth", "ninth", "twelfth", "twentieth", "twenty-third"]
    )


def test_dates_and_clock_times() -> None:
    assert date(3, MONTHS[4]) == Phrase("on the third of May", "am dritten Mai")
    assert clock(1, 0) == Phrase("at one o'clock", "um ein Uhr")
    assert clock(7, 2) == Phrase("at half past seven", "um halb acht")
    assert clock(12, 3) == Phrase("at quarter to one", "um Viertel vor eins")


def test_english_forms() -> None:
    assert [third_person(base) for base in ("read", "go", "watch", "carry", "play", "have")] == (
        ["reads", "goes", "watches", "carries", "plays", "has"]
    )
    assert [ing_form(base) for base in ("read", "write", "run", "travel", "carry")] == (
        ["reading", "writing", "running", "travelling", "carrying"]
    )
    assert {n.en: n.en_plural for n in nouns("child city box knife")} == {
        "child": "children",
        "city": "cities",
        "box": "boxes",
        "knife": "knives",
    }


DOCTOR, NEIGHBOUR, BOOK = np("doctor"), np("neighbour"), np("book")
CALLS = clause(DOCTOR, "anrufen", NEIGHBOUR)
CALLED = clause(DOCTOR, "anrufen", NEIGHBOUR, tense="past")
ME, SHE, HE, IT = Pronoun("I"), Pronoun("she"), Pronoun("he"), Pronoun("it")

TRANSLATIONS: list[tuple[Sentence, str, str]] = [
    (Statement(CALLS), "The doctor calls the neighbour.", "Der Arzt ruft den Nachbarn an."),
    (Statement(CALLED), "The doctor called the neighbour.", "Der Arzt hat den Nachbarn angerufen."),
    (
        Statement(clause(DOCTOR, "anrufen", NEIGHBOUR, tense="past", time=YESTERDAY), "time"),
        "Yesterday the doctor called the neighbour.",
        "Gestern hat der Arzt den Nachbarn angerufen.",
    ),
    (
        Statement(clause(DOCTOR, "anrufen", HE, tense="future", time=TOMORROW)),
        "The doctor will call him tomorrow.",
        "Der Arzt wird ihn morgen anrufen.",
    ),
    (
        Statement(clause(SHE, "abholen", HE, is_progressive=True)),
        "She is picking him up.",
        "Sie holt ihn ab.",
    ),
    (
        Complex(main=clause(ME, "lachen"), subordinate=CALLS, conjunction=CONJUNCTIONS["weil"]),
        "I laugh because the doctor calls the neighbour.",
        "Ich lache, weil der Arzt den Nachbarn anruft.",
    ),
    (
        Complex(
            main=clause(ME, "lachen", tense="past"),
            subordinate=CALLED,
            conjunction=CONJUNCTIONS["als"],
            subordinate_first=True,
        ),
        "When the doctor called the neighbour, I laughed.",
        "Als der Arzt den Nachbarn angerufen hat, habe ich gelacht.",
    ),
    (
        Complex(
            main=Clause(subject=SHE, verb=CLAUSE_VERBS["wissen"], is_negated=True),
            subordinate=clause(HE, "lesen", BOOK, modal=modal("wollen")),
            conjunction=CONJUNCTIONS["ob"],
        ),
        "She does not know whether he wants to read the book.",
        "Sie weiß nicht, ob er das Buch lesen will.",
    ),
    (
        Complex(
            main=Clause(subject=ME, verb=CLAUSE_VERBS["wissen"], tense="past"),
            subordinate=clause(HE, "wohnen", place=at("city")),
            asked="place",
        ),
        "I knew where he lives.",
        "Ich wusste, wo er wohnt.",
    ),
    (
        Purpose(main=clause(SHE, "versuchen"), infinitive=clause(SHE, "anrufen", NEIGHBOUR), in_order=False),
        "She tries to call the neighbour.",
        "Sie versucht, den Nachbarn anzurufen.",
    ),
    (
        Purpose(
            main=clause(HE, "fahren", tense="past", place=to("station")),
            infinitive=clause(HE, "abholen", np("aunt", "his")),
            in_order=True,
        ),
        "He drove to the station in order to pick up his aunt.",
        "Er ist zum Bahnhof gefahren, um seine Tante abzuholen.",
    ),
    (
        Statement(clause(np("boy", plural=True), "gehen", tense="past", place=to("city"))),
        "The boys went to the city.",
        "Die Jungen sind in die Stadt gegangen.",
    ),
    (
        Statement(clause(ME, "arbeiten", is_progressive=True, is_negated=True, place=at("garden"))),
        "I am not working in the garden.",
        "Ich arbeite nicht im Garten.",
    ),
    (
        Statement(clause(HE, "kaufen", np("car", "a", "red"), tense="past", is_negated=True)),
        "He did not buy a red car.",
        "Er hat kein rotes Auto gekauft.",
    ),
    (
        Statement(clause(HE, "trinken", np("milk", ""), is_negated=True)),
        "He does not drink milk.",
        "Er trinkt keine Milch.",
    ),
    (
        Statement(clause(HE, "lesen", BOOK, modal=modal("können"), is_negated=True)),
        "He cannot read the book.",
        "Er kann das Buch nicht lesen.",
    ),
    (
        Statement(clause(SHE, "lesen", BOOK, modal=modal("müssen"), tense="past", is_negated=True)),
        "She did not have to read the book.",
        "Sie musste das Buch nicht lesen.",
    ),
    (
        Statement(clause(np("teacher"), "geben", BOOK, recipient=np("pupil", "a"), tense="past", time=YESTERDAY)),
        "The teacher gave a pupil the book yesterday.",
        "Der Lehrer hat gestern einem Schüler das Buch gegeben.",
    ),
    (
        Statement(clause(np("teacher"), "erklären", BOOK, recipient=SHE)),
        "The teacher explains the book to her.",
        "Der Lehrer erklärt ihr das Buch.",
    ),
    (
        Statement(clause(SHE, "helfen", np("student", "this"))),
        "She helps this student.",
        "Sie hilft diesem Studenten.",
    ),
    (
        Statement(clause(np("king"), "ausruhen", tense="past", time=YESTERDAY), "time"),
        "Yesterday the king rested.",
        "Gestern hat sich der König ausgeruht.",
    ),
    (
        Statement(clause(ME, "freuen", np("party"))),
        "I look forward to the party.",
        "Ich freue mich auf die Feier.",
    ),
    (
        Statement(
            clause(
                Pair(Name("Anna"), np("father", "her")),
                "bleiben",
                place=at("house"),
                tense="past",
                cause=Prepositional(en="because of", de="wegen", case="gen", phrase=np("rain")),
            ),
            "cause",
        ),
        "Because of the rain Anna and her father stayed in the house.",
        "Wegen des Regens sind Anna und ihr Vater im Haus geblieben.",
    ),
    (
        Statement(
            clause(
                ME,
                "warten",
                place=at("station"),
                company=Prepositional(en="with", de="mit", case="dat", phrase=np("friend", "my", plural=True)),
            )
        ),
        "I wait with my friends at the station.",
        "Ich warte mit meinen Freunden am Bahnhof.",
    ),
    (
        Statement(clause(np("girl"), "trinken", np("tea", ""), likes=True)),
        "The girl likes to drink tea.",
        "Das Mädchen trinkt gern Tee.",
    ),
    (Question(CALLED), "Did the doctor call the neighbour?", "Hat der Arzt den Nachbarn angerufen?"),
    (Question(clause(HE, "lesen", BOOK), "subject"), "Who reads the book?", "Wer liest das Buch?"),
    (Question(clause(DOCTOR, "lesen", BOOK), "object"), "What does the doctor read?", "Was liest der Arzt?"),
    (Question(clause(DOCTOR, "helfen", np("woman")), "object"), "Who does the doctor help?", "Wem hilft der Arzt?"),
    (Question(CALLS, "object"), "Who does the doctor call?", "Wen ruft der Arzt an?"),
    (
        Question(clause(SHE, "gehen", is_progressive=True, place=to("cinema")), "place"),
        "Where is she going?",
        "Wohin geht sie?",
    ),
    (
        Question(clause(SHE, "helfen", np("child", "how many", plural=True), tense="past"), "object"),
        "How many children did she help?",
        "Wie vielen Kindern hat sie geholfen?",
    ),
    (
        Question(clause(SHE, "lesen", np("book", "how many", plural=True), tense="past"), "object"),
        "How many books did she read?",
        "Wie viele Bücher hat sie gelesen?",
    ),
    (
        Statement(
            clause(
                np("man", relative=Relative(clause(np("man"), "wohnen", place=at("village")), "subject")),
                "verkaufen",
                np("egg", "", plural=True, count=21),
            )
        ),
        "The man who lives in the village sells twenty-one eggs.",
        "Der Mann, der im Dorf wohnt, verkauft einundzwanzig Eier.",
    ),
    (
        Statement(
            clause(ME, "kennen", np("child", plural=True, relative=Relative(clause(SHE, "helfen"), "object")))
        ),
        "I know the children who she helps.",
        "Ich kenne die Kinder, denen sie hilft.",
    ),
    (
        Statement(
            Clause(
                subject=np("house", "our"),
                verb=BE,
                predicate=Predicate(adjective=adjective("old"), standard=np("church")),
            )
        ),
        "Our house is older than the church.",
        "Unser Haus ist älter als die Kirche.",
    ),
    (
        Statement(Clause(subject=ME, verb=BE, tense="past", predicate=Predicate(adjective=adjective("old"), years=34))),
        "I was thirty-four years old.",
        "Ich war vierunddreißig Jahre alt.",
    ),
    (
        Statement(Clause(subject=np("lamp"), verb=COST, object=np("euro", "", plural=True, count=42))),
        "The lamp costs forty-two euros.",
        "Die Lampe kostet zweiundvierzig Euro.",
    ),
    (
        Statement(
            Clause(subject=IT, verb=EXIST, object=np("hotel", "", plural=True), place=at("island"), is_negated=True)
        ),
        "There are no hotels on the island.",
        "Es gibt keine Hotels auf der Insel.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("abstract", "en", "de"), TRANSLATIONS, ids=[row[1] for row in TRANSLATIONS])
def test_each_construction_by_hand(abstract: Sentence, en: str, de: str) -> None:
    assert (english(abstract), german(abstract)) == (en, de)


@pytest.fixture(scope="module")
def corpus() -> BuiltinCorpus:
    return builtin_corpus()


@pytest.fixture(scope="module")
def drawn() -> list[Sentence]:
    rng = Random(5)
    return [sentence(rng) for _ in range(20_000)]


def test_default_sizes_and_no_english_sentence_twice(corpus: BuiltinCorpus) -> None:
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (80_000, 500, 1_000)
    every = [src for src, _ in corpus.train + corpus.valid + corpus.test]
    assert len(set(every)) == len(every)


def test_same_seed_same_corpus() -> None:
    small = builtin_corpus(n_train=2_000, n_valid=20, n_test=30, seed=3)
    assert builtin_corpus(n_train=2_000, n_valid=20, n_test=30, seed=3) == small
    assert builtin_corpus(n_train=2_000, n_valid=20, n_test=30, seed=4) != small


def test_seed_means_the_same_everywhere() -> None:
    """Stored so that another Python or platform that drew differently would be noticed."""
    assert builtin_corpus(n_train=3, n_valid=0, n_test=0, seed=0).train == GOLDEN


def test_english_decides_the_german(drawn: list[Sentence]) -> None:
    """Also where two different abstract sentences happen to be the same in English."""
    first: dict[str, str] = {}
    for each in drawn:
        assert first.setdefault(english(each), german(each)) == german(each)


def test_heldout_sentences_have_combinations_that_training_lacks() -> None:
    """The draws are replayed, so that the combinations of each stored sentence are known."""
    corpus = builtin_corpus(n_train=10_000, n_valid=150, n_test=300, seed=7)
    train, heldout = {src for src, _ in corpus.train}, {src for src, _ in corpus.valid + corpus.test}
    rng = Random(7)
    trained: set[Combination] = set()
    tested: dict[str, list[Combination]] = {}
    left = set(train)
    while len(tested) < len(heldout):
        each = sentence(rng)
        src = english(each)
        if src in train:
            trained.update(combinations(each))
            left.discard(src)
        elif src in heldout:
            tested[src] = combinations(each)
    assert not left
    assert not any(is_reserved(one, 7) for one in trained)
    assert all(any(one not in trained for one in found) for found in tested.values())


def test_heldout_words_are_all_in_training(corpus: BuiltinCorpus) -> None:
    known = {word for pair in corpus.train for word in words(pair)}
    assert all(known.issuperset(words(pair)) for pair in corpus.valid + corpus.test)


def test_every_lemma_is_trained_often(corpus: BuiltinCorpus) -> None:
    counts = Counter(word.removeprefix("en ") for pair in corpus.train for word in words(pair))
    lemmas = {n.en: [n.en, n.en_plural, f"{n.en}'s"] for n in NOUNS}
    lemmas |= {a.en: [a.en, a.en_comparative] for a in ADJECTIVES}
    lemmas |= {v.en: [v.en, v.en_past, third_person(v.en), ing_form(v.en)] for v in VERBS}
    rare = {lemma: n for lemma, shapes in lemmas.items() if (n := sum(counts[shape] for shape in shapes)) < 50}
    assert rare == {}


def test_several_hundred_lemmas() -> None:
    german_lemmas = {n.de for n in NOUNS} | {v.infinitive for v in VERBS} | {a.de for a in ADJECTIVES}
    assert len(german_lemmas) > 300


def test_sentences_are_tidy(corpus: BuiltinCorpus) -> None:
    for pair in corpus.train[:5_000] + corpus.test:
        for text in pair:
            assert text[0].isupper()
            assert text.count(".") + text.count("?") == 1
            assert text[-1] in ".?"
            assert not any(bad in text for bad in ("  ", " ,", " .", ",.", ",,", ",?"))
        assert len(pair[0].split()) <= 9


def test_too_few_training_sentences_are_refused() -> None:
    with pytest.raises(ConfigError, match="gave 0 of the 5 sentences"):
        builtin_corpus(n_train=1, n_valid=2, n_test=3)
