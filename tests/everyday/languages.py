"""Texts in other languages, which the verifier cannot read, and English ones with foreign names."""

from random import Random

from tests.everyday.cases import Expected, Pair, variety
from tests.everyday.pools import PEOPLE, PLACES

foreign = variety("other languages")

_FOREIGN = {
    "German": ("Die Brücke von {p} wurde {y} gebaut und ist {n} Meter lang.", "Die Brücke von {p} stammt aus dem Jahr {y}."),
    "French": ("Le pont de {p} a été construit en {y} et mesure {n} mètres.", "Le pont de {p} date de l'année {y}."),
    "Spanish": ("El puente de {p} fue construido en {y} y mide {n} metros.", "El puente de {p} es del año {y}."),
    "Italian": ("Il ponte di {p} è stato costruito nel {y} ed è lungo {n} metri.", "Il ponte di {p} risale all'anno {y}."),
    "Portuguese": ("A ponte de {p} foi construída em {y} e tem {n} metros.", "A ponte de {p} é do ano de {y}."),
    "Dutch": ("De brug van {p} werd in {y} gebouwd en is {n} meter lang.", "De brug van {p} komt uit het jaar {y}."),
    "Polish": ("Most w {p} zbudowano w {y} roku i ma {n} metrów długości.", "Most w {p} pochodzi z roku {y}."),
    "Swedish": ("Bron i {p} byggdes {y} och är {n} meter lång.", "Bron i {p} är från år {y}."),
    "Turkish": ("{p} köprüsü {y} yılında yapıldı ve {n} metre uzunluğundadır.", "{p} köprüsü {y} yılından kalmadır."),
    "Russian": ("Мост в городе {p} построен в {y} году, его длина {n} метров.", "Мост был построен в {y} году."),
    "Chinese": ("{p}大桥建于{y}年，全长{n}米。", "这座大桥建于{y}年。"),  # noqa: RUF001
    "Japanese": ("{p}の橋は{y}年に建てられ、長さは{n}メートルです。", "その橋は{y}年に建てられました。"),
    "Korean": ("{p} 다리는 {y}년에 지어졌고 길이는 {n}미터이다.", "그 다리는 {y}년에 지어졌다."),
    "Arabic": ("بني جسر المدينة عام {y} ويبلغ طوله {n} مترا.", "يعود الجسر إلى عام {y}."),
    "Greek": ("Η γέφυρα χτίστηκε το {y} και έχει μήκος {n} μέτρα.", "Η γέφυρα είναι του έτους {y}."),
    "Hindi": ("यह पुल {y} में बना था और {n} मीटर लंबा है।", "यह पुल {y} में बना था।"),
    "Hebrew": ("הגשר נבנה בשנת {y} ואורכו {n} מטרים.", "הגשר הוא משנת {y}."),
}
LANGUAGES = tuple(_FOREIGN)


def _foreign(rng: Random, language: str) -> Pair:
    document, said = _FOREIGN[language]
    place, year, length = rng.choice(PLACES), rng.randint(1850, 2005), rng.randint(40, 900)
    right, wrong = (said.format(p=place, y=y) for y in (year, year + 14))
    return Pair((document.format(p=place, y=year, n=length),), None, right, wrong, expected=(Expected.FOREIGN, Expected.FOREIGN))


@foreign
def latin_script(rng: Random) -> Pair:
    return _foreign(rng, rng.choice(LANGUAGES[:9]))


@foreign
def another_script(rng: Random) -> Pair:
    return _foreign(rng, rng.choice(LANGUAGES[9:]))


_LOANS = (
    ("The Café des Deux Moulins in {p} serves crème brûlée since {y}.", "{p}"),
    ("{a} studied at the Hochschule für Musik in {p} until {y}.", "{p}"),
    ('The painting "La Dama del Lago" by {a} has hung in {p} since {y}.', "{p}"),
    ("Señor {a} opened the Plaza de la Luna in {p} in {y}.", "{p}"),
    ("The Gasthof zum Goldenen Hirsch in {p} was restored in {y}.", "{p}"),
    ('{a} wrote "Über die Berge" in {y} in {p}.', "{p}"),
)


@foreign
def english_with_foreign_names(rng: Random) -> Pair:
    """Read English that holds names of other languages."""
    sentence, _ = rng.choice(_LOANS)
    a, place, year = rng.choice(PEOPLE), rng.choice(PLACES), rng.randint(1880, 2000)
    right, wrong = (sentence.format(a=a, p=place, y=y) for y in (year, year + 17))
    return Pair((f"{right} It is well known.",), None, right, wrong)
