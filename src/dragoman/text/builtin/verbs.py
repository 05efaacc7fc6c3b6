"""The verbs of the built-in corpus: forms on both sides, what each governs, and who can do it to what."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.text.builtin.nouns import Case, Noun, Place, nouns, places


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verb:
    """One verb and its frame: the case or preposition of its object, and the nouns it goes with."""

    en: str  # base form
    en_past: str
    en_particle: str  # "up" in "picks the guest up"
    en_preposition: str  # "for" in "waits for the bus"
    is_stative: bool  # never progressive
    de: str  # infinitive without prefix
    prefix: str  # "an" in anrufen
    de_third: str  # er-form, without prefix
    participle: str
    auxiliary: str  # haben or sein
    is_reflexive: bool
    de_preposition: str
    case: Case  # of the object, or of the noun after the preposition
    subjects: list[Noun]
    objects: list[Noun]
    places: list[Place]
    goes: bool  # the place is a direction

    @property
    def infinitive(self) -> str:
        return self.prefix + self.de

    @property
    def past_looks_present(self) -> bool:
        """True for "read": "I read" would otherwise have two translations."""
        return self.en == self.en_past


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A modal verb: the English words before the infinitive, and the German infinitive it stands for."""

    de: str
    en_present: tuple[str, ...]
    en_past: tuple[str, ...] | None  # None: not used in the past


# "be", "have" and "want" are inflected, everything else in these tuples is fixed.
MODALS = [
    Modal("können", ("can",), ("could",)),
    Modal("müssen", ("have", "to"), ("have", "to")),
    Modal("wollen", ("want", "to"), ("want", "to")),
    Modal("dürfen", ("be", "allowed", "to"), ("be", "allowed", "to")),
    Modal("sollten", ("should",), None),
    Modal("möchten", ("would", "like", "to"), None),
]

# Columns, separated by "|": English, German, subjects, objects, places.
# English is base/past, "+" before a particle, "*" for a stative verb, and the preposition of its object.
# German is prefix-infinitive, er-form if irregular, participle; "ist" for sein, "sich", preposition, case.
_PEOPLE_PLACES = "city village house hotel castle"
_WALKS = (
    "garden kitchen city village school church museum hotel hospital restaurant office library forest park "
    "theatre cinema shop castle factory market station airport beach lake river university"
)
_DRIVES = _WALKS.removeprefix("garden kitchen ")

_OBJECT_TABLE = """
    read/read      | lesen liest gelesen         | person | text
    write/wrote    | schreiben geschrieben       | person | letter poem report story message article novel book
    translate      | übersetzen übersetzt        | person | text
    buy/bought     | kaufen gekauft              | person | thing dish device clothes vehicle food meal drink
    sell/sold      | verkaufen verkauft          | person | thing dish device clothes vehicle house hotel animal meal
    see/saw*       | sehen sieht gesehen         | person | person animal place transport
    find/found     | finden gefunden             | person | thing device clothes animal vehicle letter
    look for       | suchen gesucht              | person | thing person clothes animal
    lose/lost      | verlieren verloren          | person | key bag camera umbrella ring suitcase hat ball map letter
    forget/forgot  | vergessen vergisst vergessen | person | key bag camera umbrella suitcase hat map exam meeting
    eat/ate        | essen isst gegessen         | person | food meal
    drink/drank    | trinken getrunken           | person | drink
    order          | bestellen bestellt          | person | drink soup cake rice meat sausage
    cook           | kochen gekocht              | person | soup potato rice meat egg
    open           | öffnen geöffnet             | person | opening letter bottle box suitcase gift bag
    close/closed   | schließen geschlossen       | person | opening bottle box suitcase bag shop
    repair         | reparieren repariert        | person | device vehicle clock umbrella chair bed
    visit          | besuchen besucht            | person | person museum castle church city village island
    love*          | lieben geliebt              | person | person animal
    know/knew*     | kennen gekannt              | person | person text city island
    meet/met       | treffen trifft getroffen    | person | person
    ask            | fragen gefragt              | person | person
    understand/understood* | verstehen verstanden | person | person text film
    hear/heard*    | hören gehört                | person | person animal transport concert story
    draw/drew      | zeichnen gezeichnet         | person | animal house castle ship map bridge
    wash           | waschen wäscht gewaschen    | person | clothes dish vehicle potato apple
    wear/wore      | tragen trägt getragen       | person | clothes
    carry          | tragen trägt getragen       | person | bag box suitcase table chair
    need*          | brauchen gebraucht          | person | thing device clothes vehicle drink meal
    build/built    | bauen gebaut                | person | house bridge castle ship boat hotel
    photograph     | fotografieren fotografiert  | person | person animal castle bridge church
    clean          | putzen geputzt              | person | opening kitchen shoe room mirror
    steal/stole    | stehlen stiehlt gestohlen   | person | bag camera ring bicycle car picture suitcase
    feed/fed       | füttern gefüttert           | person | animal
    have/had*      | haben hat gehabt            | person | thing device clothes vehicle animal
    call           | an-rufen angerufen          | person | person
    invite         | ein-laden lädt eingeladen   | person | person
    pick/picked+up | ab-holen abgeholt           | person | person suitcase
    turn/turned+on | ein-schalten eingeschaltet  | person | device
    turn/turned+off | aus-schalten ausgeschaltet | person | device
    tidy/tidied+up | auf-räumen aufgeräumt       | person | room kitchen cellar office garden
    bring/brought+along | mit-bringen mitgebracht | person | gift ball camera bottle cake map umbrella friend
    throw/threw+away | weg-werfen wirft weggeworfen | person | dish shoe hat newspaper bottle box letter
    put/put+on     | an-ziehen angezogen         | person | coat shirt dress jacket shoe skirt sweater
    try/tried+on   | an-probieren anprobiert     | person | coat shirt dress jacket hat shoe skirt sweater
    prepare        | vor-bereiten vorbereitet    | person | party trip wedding meeting concert
    unpack         | aus-packen ausgepackt       | person | suitcase bag gift box
    help           | helfen hilft geholfen dat   | person | person
    thank          | danken gedankt dat          | person | person
    follow         | folgen gefolgt ist dat      | person dog | person animal
    trust*         | vertrauen vertraut dat      | person | person
    answer         | antworten geantwortet dat   | person | person
    listen to      | zu-hören zugehört dat       | person | person
    belong to*     | gehören gehört dat          | thing device clothes vehicle house castle | person
    wait for       | warten gewartet auf acc     | person | person transport letter message
    think/thought of | denken gedacht an acc     | person | person event
    talk about     | sprechen spricht gesprochen über acc | person | person text event
    laugh about    | lachen gelacht über acc     | person | story film message monkey report
    dream of       | träumen geträumt von dat    | person | trip wedding island lake castle car horse
    play with      | spielen gespielt mit dat    | child boy pupil dog cat | ball dog cat child friend
    take/took part_in | teil-nehmen nimmt teilgenommen an dat | person | trip wedding meeting exam concert
    remember*      | erinnern erinnert sich an acc | person | person event story
    look forward_to | freuen gefreut sich auf acc | person | party trip wedding concert film
    take/took care_of | kümmern gekümmert sich um acc | person | animal child guest customer garden
    complain about | beschweren beschwert sich über acc | person | noise heat soup hotel neighbour waiter
    """

_GIVING_TABLE = """
    give/gave      | geben gibt gegeben          | person | thing text clothes food meal
    show/showed    | zeigen gezeigt              | person | thing text clothes house garden room
    send/sent      | schicken geschickt          | person | letter message gift picture book
    bring/brought  | bringen gebracht            | person | thing drink food meal newspaper
    tell/told      | erzählen erzählt            | person | story
    lend/lent      | leihen geliehen             | person | book bag camera umbrella car bicycle suitcase
    explain to     | erklären erklärt            | person | text film map exam machine
    recommend to   | empfehlen empfiehlt empfohlen | person | book novel film hotel restaurant museum
    """

_GOING_TABLE = f"""
    go/went        | gehen gegangen ist          | person | | {_WALKS}
    drive/drove    | fahren fährt gefahren ist   | person | | {_DRIVES}
    run/ran        | laufen läuft gelaufen ist   | person dog horse | | {_WALKS}
    come/came      | kommen gekommen ist         | person | | {_WALKS}
    travel         | reisen gereist ist          | person | | city village island lake castle
    """

_STAYING_TABLE = f"""
    live           | wohnen gewohnt              | person | | {_PEOPLE_PLACES}
    work           | arbeiten gearbeitet         | person | | place
    sleep/slept    | schlafen schläft geschlafen | person animal | | house hotel garden room castle kitchen
    stay           | bleiben geblieben ist       | person | | place
    wait           | warten gewartet             | person | | place
    sit/sat        | sitzen gesessen             | person | | garden kitchen park restaurant church theatre
    sing/sang      | singen gesungen             | person bird | | church park theatre street kitchen garden
    dance          | tanzen getanzt              | person | | street theatre restaurant beach hotel
    play           | spielen gespielt            | child boy pupil dog cat | | garden park street forest beach
    shop           | ein-kaufen eingekauft       | person | | city village market
    arrive         | an-kommen angekommen ist    | person transport | | station airport
    """

_ALONE_TABLE = """
    get/got up     | auf-stehen aufgestanden ist | person
    fall/fell asleep | ein-schlafen schläft eingeschlafen ist | person animal
    wake/woke up   | auf-wachen aufgewacht ist   | person animal
    leave/left     | ab-fahren fährt abgefahren ist | person transport
    come/came back | zurück-kommen zurückgekommen ist | person
    watch television | fern-sehen sieht ferngesehen | person
    laugh          | lachen gelacht              | person
    cry            | weinen geweint              | child
    smoke          | rauchen geraucht            | men women
    rest           | aus-ruhen ausgeruht sich    | person
    hurry          | beeilen beeilt sich         | person
    """

_CLAUSE_TABLE = """
    know/knew*     | wissen weiß gewusst         | person
    say/said       | sagen gesagt                | person
    believe*       | glauben geglaubt            | person
    hope           | hoffen gehofft              | person
    hear/heard*    | hören gehört                | person
    ask            | fragen gefragt              | person
    """

_INFINITIVE_TABLE = """
    try            | versuchen versucht          | person
    hope           | hoffen gehofft              | person
    forget/forgot  | vergessen vergisst vergessen | person
    begin/began    | beginnen begonnen           | person
    promise        | versprechen verspricht versprochen | person
    decide         | beschließen beschlossen     | person
    plan           | planen geplant              | person
    """

_DOUBLED = ("shop", "plan", "forget", "begin", "sit", "run", "put", "get", "travel")


def ing_form(en: str) -> str:
    """The English present participle: "writing", "running"."""
    if en in _DOUBLED:
        return en + en[-1] + "ing"
    return (en[:-1] if en.endswith("e") else en) + "ing"


def _past(en: str) -> str:
    """The regular English past."""
    if en in _DOUBLED:
        return en + en[-1] + "ed"
    if en.endswith("y") and en[-2] not in "aeou":
        return en[:-1] + "ied"
    return en + ("d" if en.endswith("e") else "ed")


def _regular_third(infinitive: str) -> str:
    """The regular er-form: macht, arbeitet, öffnet, füttert."""
    stem = german_stem(infinitive)
    return stem + ("et" if needs_e(stem) else "t")


def german_stem(infinitive: str) -> str:
    """What endings are added to: mach-, fütter-."""
    return infinitive[:-1] if infinitive.endswith(("ern", "eln")) else infinitive[:-2]


def needs_e(stem: str) -> bool:
    """True where an e eases the ending: arbeit-e-t, öffn-e-t."""
    return stem.endswith(("d", "t", "chn", "ffn", "gn"))


def _english(text: str, *, as_preposition: bool) -> tuple[str, str, str, str]:
    """Base form, past, particle and preposition of an entry such as "pick/picked+up" or "wait for"."""
    head, _, rest = text.partition(" ")
    head, _, particle = head.partition("+")
    base, _, past = head.partition("/")
    rest = rest.replace("_", " ")
    return (base, past or _past(base), particle, rest) if as_preposition else (base, past or _past(base), rest, "")


def _verb(line: str, *, goes: bool = False, takes_object: bool = False) -> Verb:
    english, german, subjects, *more = [column.strip() for column in line.split("|")]
    is_stative = english.endswith("*")
    en, en_past, particle, preposition = _english(english.removesuffix("*"), as_preposition=takes_object)
    first, *words = german.split()
    prefix, _, infinitive = first.rpartition("-")
    case: Case = "dat" if "dat" in words else "acc"
    prepositions = [word for word in words if word in ("auf", "an", "über", "von", "mit", "um")]
    forms = [word for word in words if word not in ("dat", "acc", "ist", "sich", *prepositions)]
    third, participle = forms if len(forms) == 2 else (_regular_third(infinitive), forms[0])
    return Verb(
        en=en,
        en_past=en_past,
        en_particle=particle,
        en_preposition=preposition,
        is_stative=is_stative,
        de=infinitive,
        prefix=prefix,
        de_third=third,
        participle=participle,
        auxiliary="sein" if "ist" in words else "haben",
        is_reflexive="sich" in words,
        de_preposition=prepositions[0] if prepositions else "",
        case=case,
        subjects=nouns(subjects),
        objects=nouns(more[0]) if more else [],
        places=places(more[1]) if len(more) > 1 else [],
        goes=goes,
    )


def _table(text: str, *, goes: bool = False, takes_object: bool = False) -> list[Verb]:
    return [_verb(line, goes=goes, takes_object=takes_object) for line in text.strip().splitlines()]


OBJECT_VERBS = _table(_OBJECT_TABLE, takes_object=True)  # with an object in any case, or a preposition
GIVING_VERBS = _table(_GIVING_TABLE, takes_object=True)  # with a recipient in the dative
GOING_VERBS = _table(_GOING_TABLE, goes=True)
STAYING_VERBS = _table(_STAYING_TABLE)
ALONE_VERBS = _table(_ALONE_TABLE)
CLAUSE_VERBS = {verb.de: verb for verb in _table(_CLAUSE_TABLE)}  # with a dass- or ob-clause
INFINITIVE_VERBS = _table(_INFINITIVE_TABLE)  # with a zu-infinitive
BE = _verb("be/was* | sein ist gewesen ist | person")
RAIN = _verb("rain | regnen geregnet | child")
SNOW = _verb("snow | schneien geschneit | child")
COST = _verb("cost/cost* | kosten gekostet | thing device clothes vehicle | euro", takes_object=True)
EXIST = _verb("be/was* | geben gibt gegeben | child | place transport animal", takes_object=True)
