"""The adjectives of the built-in corpus, with the kinds of noun each one suits."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.text.builtin.nouns import NOUNS, Noun


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """One adjective. `stem` is what German endings are added to: teuer, but "ein teures Auto"."""

    en: str
    de: str
    stem: str
    en_comparative: str
    de_comparative: str
    kinds: tuple[str, ...]


_OBJECTS = "thing dish device clothes vehicle transport opening"
_PEOPLE = "men women children"

# Columns: English, German (and the stem where it differs), comparatives ("-": not compared), kinds or nouns.
_TABLE = f"""
    old          alt           older            älter           {_PEOPLE} {_OBJECTS} animal text place
    young        jung          younger          jünger          {_PEOPLE} animal
    tall         groß          taller           größer          {_PEOPLE}
    friendly     freundlich    friendlier       freundlicher    {_PEOPLE}
    clever       klug          cleverer         klüger          {_PEOPLE} animal
    strong       stark         stronger         stärker         {_PEOPLE} coffee tea storm
    rich         reich         richer           reicher         {_PEOPLE}
    poor         arm           poorer           ärmer           {_PEOPLE}
    happy        glücklich     happier          glücklicher     {_PEOPLE}
    sad          traurig       sadder           trauriger       {_PEOPLE} story poem film
    polite       höflich       politer          höflicher       {_PEOPLE}
    lazy         faul          lazier           fauler          {_PEOPLE} animal
    diligent     fleißig       more_diligent    fleißiger       {_PEOPLE}
    sick         krank         -                -               {_PEOPLE} animal
    nice         nett          nicer            netter          {_PEOPLE}
    tired        müde          -                -               {_PEOPLE} animal
    famous       berühmt       more_famous      berühmter       {_PEOPLE} text castle museum picture
    nervous      nervös        more_nervous     nervöser        {_PEOPLE} horse
    big          groß          bigger           größer          {_OBJECTS} animal place
    small        klein         smaller          kleiner         {_OBJECTS} animal place children
    new          neu           -                -               {_OBJECTS} text place
    beautiful    schön         more_beautiful   schöner         {_OBJECTS} text place women animal event
    expensive    teuer/teur    more_expensive   teurer          thing dish device clothes vehicle wine hotel
    cheap        billig        cheaper          billiger        thing dish device clothes vehicle hotel
    heavy        schwer        heavier          schwerer        thing device
    clean        sauber        cleaner          sauberer        dish clothes vehicle opening place
    dirty        schmutzig     dirtier          schmutziger     dish clothes vehicle opening kitchen street
    broken       kaputt        -                -               dish device vehicle clock chair umbrella
    red          rot           -                -               thing clothes vehicle apple door wine
    blue         blau          -                -               thing clothes vehicle door
    green        grün          -                -               thing clothes vehicle apple door tea
    white        weiß          -                -               clothes horse cat house wine
    black        schwarz       -                -               clothes horse dog cat cow bag suitcase tea
    brown        braun         -                -               clothes horse dog cow bear bag
    interesting  interessant   more_interesting interessanter   text event museum city
    boring       langweilig    more_boring      langweiliger    text event village
    long         lang          longer           länger          text event street river dress coat
    short        kurz          shorter          kürzer          text event skirt
    important    wichtig       more_important   wichtiger       text meeting exam key
    strange      seltsam       stranger         seltsamer       text event noise
    good         gut           better           besser          text event food meal drink restaurant
    fresh        frisch        fresher          frischer        food meal milk juice
    sweet        süß           sweeter          süßer           cake pear banana apple tea juice wine fruit
    cold         kalt          colder           kälter          drink soup cellar room
    warm         warm          warmer           wärmer          soup milk bread clothes room
    hot          heiß          hotter           heißer          coffee tea soup
    quiet        ruhig         quieter          ruhiger         place children
    modern       modern        more_modern      moderner        device vehicle place
    dark         dunkel/dunkl  darker           dunkler         forest cellar room street church wine
    hungry       hungrig       hungrier         hungriger       animal children
    dangerous    gefährlich    more_dangerous   gefährlicher    bear elephant dog knife machine storm street
    fast         schnell       faster           schneller       vehicle transport horse
    """


def _adjective(line: str) -> Adjective:
    en, german, en_comparative, de_comparative, *kinds = line.split()
    de, _, stem = german.partition("/")
    return Adjective(
        en=en,
        de=de,
        stem=stem or de.removesuffix("e"),
        en_comparative=en_comparative.replace("_", " "),
        de_comparative=de_comparative,
        kinds=tuple(kinds),
    )


ADJECTIVES = [_adjective(line) for line in _TABLE.strip().splitlines()]

_SUITED = {noun.en: [adj for adj in ADJECTIVES if noun.kind in adj.kinds or noun.en in adj.kinds] for noun in NOUNS}
_DESCRIBED = {adj.en: [noun for noun in NOUNS if adj in _SUITED[noun.en]] for adj in ADJECTIVES}


def suited(noun: Noun) -> list[Adjective]:
    """The adjectives that make sense with `noun`."""
    return _SUITED[noun.en]


def described(adjective: Adjective) -> list[Noun]:
    """The nouns that `adjective` makes sense with."""
    return _DESCRIBED[adjective.en]
