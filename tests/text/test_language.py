"""The language of a text: other languages and scripts are told from English; names, numbers and short texts are not judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.text.language import is_foreign


@pytest.mark.parametrize(
    "text",
    [
        "Der Leuchtturm wurde 1871 von einer Ingenieurin aus Schottland gebaut.",
        "La tour a été construite par une ingénieure il y a plus de cent ans.",
        "El puente se cerró la semana pasada porque necesitaba muchas reparaciones.",
        "De brug werd vorige week gesloten omdat er veel gerepareerd moest worden.",
        "Мост закрыли.",
        "灯台は1871年に建てられた。",
        "بُنيت المنارة عام 1871.",
    ],
)
def test_other_languages_and_scripts_are_recognised(text):
    assert is_foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "The lighthouse was built in 1871 by an engineer from Scotland.",
        "Fees rose 12 % in March.",
        "The Dutch word for bridge is brug, and the German one is Brücke.",
        "The song Non, je ne regrette rien was sung by Édith Piaf in 1960.",
        "Gedächtniskirche, Berlin",
        "Schloss Neuschwanstein",
        "1871",
        "...",
        "",
        "client.open(port=8080)",
        "Item: Books; Fee: 2 EUR",
    ],
)
def test_english_names_numbers_and_short_texts_are_not_foreign(text):
    assert not is_foreign(text)


@given(st.text(max_size=200))
def test_any_text_is_read(text):
    assert is_foreign(text) in (True, False)
