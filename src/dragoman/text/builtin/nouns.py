"""The nouns of the built-in corpus: English, German gender and forms, and what kind of thing each names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Gender = Literal["m", "f", "n"]
Case = Literal["nom", "acc", "dat", "gen"]

_GENDERS: dict[str, Gender] = {"der": "m", "die": "f", "das": "n"}


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """One noun. `genitive` ends in -n for a weak noun, whose accusative and dative it then is as well."""

    en: str
    en_plural: str
    de: str
    de_plural: str
    genitive: str
    gender: Gender
    kind: str

    @property
    def is_person(self) -> bool:
        return self.kind in ("men", "women", "children")

    @property
    def is_mass(self) -> bool:
        """True for what is not counted: no plural, no "a"."""
        return self.de_plural == "-"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A noun one can be at and go to, with the prepositions that idiom asks for on either side."""

    noun: Noun
    en_at: str
    de_at: str
    de_to: str


# Columns: English (and its plural where irregular), article, singular, genitive singular, plural.
# "=" repeats the singular, "-" says that there is no plural.
_TABLES = {
    "men": """
        teacher        der Lehrer Lehrers Lehrer
        doctor         der Arzt Arztes Ärzte
        student        der Student Studenten Studenten
        pupil          der Schüler Schülers Schüler
        neighbour      der Nachbar Nachbarn Nachbarn
        friend         der Freund Freundes Freunde
        man/men        der Mann Mannes Männer
        boy            der Junge Jungen Jungen
        father         der Vater Vaters Väter
        brother        der Bruder Bruders Brüder
        son            der Sohn Sohnes Söhne
        uncle          der Onkel Onkels Onkel
        grandfather    der Großvater Großvaters Großväter
        cook           der Koch Kochs Köche
        baker          der Bäcker Bäckers Bäcker
        farmer         der Bauer Bauern Bauern
        judge          der Richter Richters Richter
        policeman/policemen der Polizist Polizisten Polizisten
        colleague      der Kollege Kollegen Kollegen
        boss           der Chef Chefs Chefs
        guest          der Gast Gastes Gäste
        painter        der Maler Malers Maler
        musician       der Musiker Musikers Musiker
        king           der König Königs Könige
        lawyer         der Anwalt Anwalts Anwälte
        engineer       der Ingenieur Ingenieurs Ingenieure
        gardener       der Gärtner Gärtners Gärtner
        customer       der Kunde Kunden Kunden
        waiter         der Kellner Kellners Kellner
        """,
    "women": """
        woman/women    die Frau = Frauen
        mother         die Mutter = Mütter
        sister         die Schwester = Schwestern
        daughter       die Tochter = Töchter
        aunt           die Tante = Tanten
        grandmother    die Großmutter = Großmütter
        nurse          die Krankenschwester = Krankenschwestern
        queen          die Königin = Königinnen
        actress        die Schauspielerin = Schauspielerinnen
        saleswoman/saleswomen die Verkäuferin = Verkäuferinnen
        """,
    "children": """
        child/children das Kind Kindes Kinder
        girl           das Mädchen Mädchens Mädchen
        """,
    "animal": """
        dog            der Hund Hundes Hunde
        cat            die Katze = Katzen
        horse          das Pferd Pferdes Pferde
        bird           der Vogel Vogels Vögel
        cow            die Kuh = Kühe
        pig            das Schwein Schweins Schweine
        mouse/mice     die Maus = Mäuse
        bear           der Bär Bären Bären
        elephant       der Elefant Elefanten Elefanten
        monkey         der Affe Affen Affen
        duck           die Ente = Enten
        """,
    "text": """
        book           das Buch Buches Bücher
        newspaper      die Zeitung = Zeitungen
        letter         der Brief Briefes Briefe
        magazine       die Zeitschrift = Zeitschriften
        novel          der Roman Romans Romane
        poem           das Gedicht Gedichts Gedichte
        report         der Bericht Berichts Berichte
        story          die Geschichte = Geschichten
        message        die Nachricht = Nachrichten
        article        der Artikel Artikels Artikel
        """,
    "food": """
        apple          der Apfel Apfels Äpfel
        egg            das Ei Eis Eier
        cake           der Kuchen Kuchens Kuchen
        potato/potatoes die Kartoffel = Kartoffeln
        tomato/tomatoes die Tomate = Tomaten
        sausage        die Wurst = Würste
        pear           die Birne = Birnen
        soup           die Suppe = Suppen
        banana         die Banane = Bananen
        """,
    "meal": """
        bread          das Brot Brotes -
        cheese         der Käse Käses -
        meat           das Fleisch Fleisches -
        rice           der Reis Reises -
        fruit          das Obst Obstes -
        """,
    "drink": """
        coffee         der Kaffee Kaffees -
        tea            der Tee Tees -
        milk           die Milch = -
        water          das Wasser Wassers -
        beer           das Bier Biers -
        wine           der Wein Weins -
        juice          der Saft Saftes -
        """,
    "thing": """
        key            der Schlüssel Schlüssels Schlüssel
        bag            die Tasche = Taschen
        bottle         die Flasche = Flaschen
        box            die Kiste = Kisten
        table          der Tisch Tisches Tische
        chair          der Stuhl Stuhls Stühle
        clock          die Uhr = Uhren
        picture        das Bild Bildes Bilder
        gift           das Geschenk Geschenks Geschenke
        camera         die Kamera = Kameras
        umbrella       der Regenschirm Regenschirms Regenschirme
        knife/knives   das Messer Messers Messer
        ring           der Ring Rings Ringe
        suitcase       der Koffer Koffers Koffer
        bed            das Bett Bettes Betten
        ball           der Ball Balls Bälle
        map            die Karte = Karten
        """,
    "dish": """
        glass          das Glas Glases Gläser
        plate          der Teller Tellers Teller
        cup            die Tasse = Tassen
        mirror         der Spiegel Spiegels Spiegel
        """,
    "device": """
        lamp           die Lampe = Lampen
        computer       der Computer Computers Computer
        machine        die Maschine = Maschinen
        radio          das Radio Radios Radios
        """,
    "clothes": """
        coat           der Mantel Mantels Mäntel
        shirt          das Hemd Hemdes Hemden
        dress          das Kleid Kleides Kleider
        jacket         die Jacke = Jacken
        hat            der Hut Hutes Hüte
        shoe           der Schuh Schuhs Schuhe
        skirt          der Rock Rocks Röcke
        sweater        der Pullover Pullovers Pullover
        """,
    "vehicle": """
        car            das Auto Autos Autos
        bicycle        das Fahrrad Fahrrads Fahrräder
        boat           das Boot Bootes Boote
        """,
    "transport": """
        train          der Zug Zuges Züge
        bus            der Bus Busses Busse
        ship           das Schiff Schiffes Schiffe
        """,
    "opening": """
        door           die Tür = Türen
        window         das Fenster Fensters Fenster
        """,
    "event": """
        concert        das Konzert Konzerts Konzerte
        party          die Feier = Feiern
        trip           die Reise = Reisen
        wedding        die Hochzeit = Hochzeiten
        meeting        die Sitzung = Sitzungen
        exam           die Prüfung = Prüfungen
        film           der Film Films Filme
        """,
    "trouble": """
        rain           der Regen Regens -
        snow           der Schnee Schnees -
        storm          der Sturm Sturms -
        noise          der Lärm Lärms -
        heat           die Hitze = -
        fog            der Nebel Nebels -
        """,
    "money": """
        euro           der Euro Euros Euro
        """,
}

# Columns: English preposition of rest, the noun as above, German prepositions of rest and of direction.
_PLACES = """
    in city            die Stadt = Städte                 in in
    in village         das Dorf Dorfes Dörfer             in in
    in house           das Haus Hauses Häuser             in in
    in garden          der Garten Gartens Gärten          in in
    in kitchen         die Küche = Küchen                 in in
    in school          die Schule = Schulen               in in
    in church          die Kirche = Kirchen               in in
    in museum          das Museum Museums Museen          in in
    in hotel           das Hotel Hotels Hotels            in in
    in hospital        das Krankenhaus Krankenhauses Krankenhäuser in in
    in restaurant      das Restaurant Restaurants Restaurants in in
    in office          das Büro Büros Büros               in in
    in library         die Bibliothek = Bibliotheken      in in
    in forest          der Wald Waldes Wälder             in in
    in park            der Park Parks Parks               in in
    in theatre         das Theater Theaters Theater       in in
    in cinema          das Kino Kinos Kinos               in in
    in room            das Zimmer Zimmers Zimmer          in in
    in shop            das Geschäft Geschäfts Geschäfte   in in
    in cellar          der Keller Kellers Keller          in in
    in castle          das Schloss Schlosses Schlösser    in in
    in factory         die Fabrik = Fabriken              in in
    in street          die Straße = Straßen               auf auf
    on bridge          die Brücke = Brücken               auf zu
    on island          die Insel = Inseln                 auf auf
    at market          der Markt Marktes Märkte           auf auf
    at station         der Bahnhof Bahnhofs Bahnhöfe      an zu
    at airport         der Flughafen Flughafens Flughäfen an zu
    at beach           der Strand Strandes Strände        an zu
    at lake            der See Sees Seen                  an zu
    at river           der Fluss Flusses Flüsse           an zu
    at university      die Universität = Universitäten    an zu
    """


def _plural(en: str) -> str:
    """The regular English plural."""
    if en.endswith(("s", "x", "ch", "sh")):
        return en + "es"
    if en.endswith("y") and en[-2] not in "aeou":
        return en[:-1] + "ies"
    return en + "s"


def _noun(kind: str, english: str, article: str, de: str, genitive: str, de_plural: str) -> Noun:
    en, _, irregular = english.partition("/")
    return Noun(
        en=en,
        en_plural=irregular or _plural(en),
        de=de,
        de_plural=de_plural,
        genitive=de if genitive == "=" else genitive,
        gender=_GENDERS[article],
        kind=kind,
    )


def _places() -> list[Place]:
    places = []
    for line in _PLACES.strip().splitlines():
        en_at, *columns, de_at, de_to = line.split()
        places.append(Place(_noun("place", *columns), en_at, de_at, de_to))
    return places


PLACES = _places()
NOUNS: list[Noun] = [
    _noun(kind, *line.split()) for kind, table in _TABLES.items() for line in table.strip().splitlines()
] + [place.noun for place in PLACES]

_BY_NAME = {noun.en: noun for noun in NOUNS}
_BY_PLACE = {place.noun.en: place for place in PLACES}


def nouns(names: str) -> list[Noun]:
    """The nouns listed by `names`, in which "person" and every kind stand for all their members, common ones first."""
    ranked: list[tuple[float, Noun]] = []
    for name in names.replace("person", "men women children").split():
        if name in _BY_NAME:
            ranked.append((0.5, _BY_NAME[name]))
        else:
            members = [noun for noun in NOUNS if noun.kind == name]
            assert members, f"no noun and no kind is called {name}"
            ranked += [(rank / len(members), noun) for rank, noun in enumerate(members)]
    return [noun for _, noun in sorted(ranked, key=lambda one: one[0])]


def places(names: str) -> list[Place]:
    """The places called `names`; all of them for "place"."""
    return PLACES if names == "place" else [_BY_PLACE[name] for name in names.split()]
