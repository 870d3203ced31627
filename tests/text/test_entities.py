"""Entities by rules on worked sentences with every span expected, and the adapters to models of a user."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import MissingExtra, ModelError, SettingsError
from knowhalu.text.detectors import GLINER_TYPES, load_detector
from knowhalu.text.entities import drop_overlaps, find_entities
from knowhalu.types import Entity

TABLE = """
Ada Lovelace wrote the notes in 1843 for Charles Babbage.
    Ada Lovelace / person; 1843 / date; Charles Babbage / name
The bridge opened on 19 March 1932 and cost $13.5 million.
    19 March 1932 / date; $13.5 million / money
About 200 people in Lower Brindle had to leave their homes after the River Asker burst its banks on Sunday.
    200 people / quantity; Lower Brindle / place; River Asker / place; Sunday / date
Prices rose by 3.4 per cent in the third quarter, the Bank of England said.
    3.4 per cent / percent; third / ordinal; Bank of England / organisation
Dr. J. R. Hale of Oxford University told the BBC that 14 patients had recovered.
    Dr. J. R. Hale / person; Oxford University / organisation; BBC / organisation; 14 patients / quantity
However, the French president arrived at 7:30 p.m. on Monday.
    French / nationality; 7:30 p.m. / time; Monday / date
Paul and Mary Jones bought twenty-five sheep for 300 euros.
    Paul / name; Mary Jones / name; twenty-five / number; 300 euros / money
The U.S. Senate passed the bill by 51 votes to 49.
    U.S. Senate / organisation; 51 votes / quantity; 49 / number
Temperatures fell to -5 °C, and 12 cm of snow fell in two hours.
    -5 °C / quantity; 12 cm / quantity; two hours / quantity
Scientists at the Max Planck Institute found three new species.
    Max Planck Institute / organisation; three new species / quantity
In the 1990s the company moved from New York City to Los Angeles.
    1990s / date; New York City / place; Los Angeles / place
Macron's visit to South Korea lasted five days.
    Macron / name; South Korea / place; five days / quantity
It was the second time that he had won the Tour de France.
    second / ordinal; Tour de France / name
Marks & Spencer Group reported a profit of £1.2bn.
    Marks & Spencer Group / organisation; £1.2bn / money
Thousands of workers walked out on Friday morning.
    Thousands of workers / quantity; Friday morning / date
He was born in the 19th century.
    19th century / date
She scored 1,500 points between 2001 and 2005.
    1,500 points / quantity; 2001 / date; 2005 / date
The Ministry of Education closed 1200 schools.
    Ministry of Education / organisation; 1200 schools / quantity
A 45-year-old man was arrested in St Ives.
    45-year-old / quantity; St Ives / place
Lena Fisk, 31, finished in 2:31:07.
    Lena Fisk / person; 31 / number; 2:31:07 / time
Is there anything in Germany? I think so.
    Germany / place
Yesterday I saw one of the dogs.
    Yesterday / date
"We won," said Tom. Police arrested him.
    Tom / name
Half a million people live in the City of Lyon.
    Half a million people / quantity; City of Lyon / place
Leonardo da Vinci painted it.
    Leonardo da Vinci / name
The Treaty of Versailles was signed on June 28, 1919.
    Treaty of Versailles / name; June 28, 1919 / date
Snow fell.
    none
Vincent van Gogh's paintings hang in the Rijksmuseum in Amsterdam.
    Vincent van Gogh / name; Rijksmuseum / name; Amsterdam / place
NASA launched Voyager 1 in 1977.
    NASA / organisation; Voyager / name; 1 / number; 1977 / date
About a dozen eggs and 40% of the milk were lost.
    a dozen eggs / quantity; 40% / percent
The King of Norway met President Ahmadi and General Ortiz.
    Norway / place; President Ahmadi / person; General Ortiz / person
The recipe needs 250 g of flour and 3 eggs.
    250 g / quantity; 3 eggs / quantity
Between 10 and 20 percent of the 1,000 voters agreed.
    10 / number; 20 percent / percent; 1,000 voters / quantity
Manchester United beat Real Madrid 3-1.
    Manchester United / organisation; Real Madrid / name; 3-1 / number
Meeting at noon on 3/4/2021 or 5 o'clock.
    noon / time; 3/4/2021 / date; 5 o'clock / time
Mrs. Brown paid €45 for two tickets in Ghent.
    Mrs. Brown / person; €45 / money; two tickets / quantity; Ghent / name
The ship left Lisbon at 6 a.m. and reached the Azores on 3 May.
    Lisbon / place; 6 a.m. / time; Azores / name; 3 May / date
Her first novel, written in 1888, sold 40,000 copies.
    first / ordinal; 1888 / date; 40,000 copies / quantity
Inflation was between 2% and 3% in spring 2021.
    2% / percent; 3% / percent; spring 2021 / date
Apple said it would hire 1,200 engineers in Munich by 2025.
    Apple / name; 1,200 engineers / quantity; Munich / place; 2025 / date
The River Thames flooded Kingston for the third time.
    River Thames / place; Kingston / name; third / ordinal
Only 7 of the 30 islands are inhabited.
    7 / number; 30 islands / quantity
NATO members met in Brussels on Tuesday evening.
    NATO / organisation; Brussels / place; Tuesday evening / date
The fund manages more than two trillion dollars.
    two trillion dollars / money
Born in Zagreb, Ivan Petrov moved to Canada at the age of 12.
    Zagreb / place; Ivan Petrov / name; Canada / place; 12 / number
Around 60 BC the Romans built a road of 400 km.
    60 BC / date; Romans / name; 400 km / quantity
The temple is 30 metres high and 2,300 years old.
    30 metres high / quantity; 2,300 years old / quantity
Queen Margrethe opened the Louisiana Museum of Modern Art.
    Queen Margrethe / person; Louisiana Museum of Modern Art / organisation
The train from Rome to Naples takes 70 minutes.
    Rome / place; Naples / place; 70 minutes / quantity
About three quarters of voters chose the Green Party.
    three quarters / quantity; Green Party / organisation
The Chinese company bought Volvo Cars from Ford for $1.8bn in 2010.
    Chinese / nationality; Volvo Cars / name; Ford / name; $1.8bn / money; 2010 / date
Ms Ito (31) beat Kim Novak 6-4 in the final.
    Ms Ito / person; 31 / number; Kim Novak / name; 6-4 / number
The flight, BA 117, landed at John F. Kennedy Airport.
    BA / organisation; 117 / number; John F. Kennedy Airport / place
Dogs need water.
    none
He sold his house to the Smiths.
    Smiths / name
There were 12,5 million visitors.
    12,5 million visitors / quantity
Emperor Charles V died in 1558.
    Emperor Charles V / person; 1558 / date
In May 2014, the University of Cape Town hired 15 lecturers.
    May 2014 / date; University of Cape Town / organisation; 15 lecturers / quantity
Water boils at 100 °C.
    100 °C / quantity
"""
WORKED = {
    sentence: [] if spans == "    none" else spans.strip().split("; ")
    for sentence, spans in zip(TABLE.strip().splitlines()[::2], TABLE.strip("\n").splitlines()[1::2], strict=True)
}
"""Sentences, and under each its entities with their types, in order."""


@pytest.mark.parametrize("sentence", WORKED)
def test_the_entities_of_a_sentence(sentence):
    assert [f"{e.text} / {e.type}" for e in find_entities(sentence)] == WORKED[sentence]


def test_there_are_enough_worked_sentences_and_all_types_occur():
    types = {pair.rpartition(" / ")[2] for pairs in WORKED.values() for pair in pairs}
    assert len(WORKED) >= 40
    assert types == {"person", "place", "organisation", "nationality", "name", "date", "time", "money", "percent", "quantity",
                     "ordinal", "number"}  # fmt: skip


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(" ".join(WORKED).split()), max_size=25).map(" ".join)))
def test_spans_are_exact_in_order_and_apart(text):
    found = find_entities(text)
    assert all(text[e.start : e.end] == e.text and e.text.strip() == e.text != "" for e in found)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))


@pytest.mark.parametrize("text", ["1," * 1000, "1,," * 700, "$" + "1," * 1000])
def test_a_long_list_of_numbers_is_no_figure(text):
    assert max(len(e.text) for e in find_entities(text)) <= 30


def test_no_number_begins_within_another():
    assert [e.text for e in find_entities("1,250 (12 %), 1889, and in Leeds,3 people")] == [
        "1,250",
        "12 %",
        "1889",
        "Leeds",
        "3 people",
    ]


def test_of_overlapping_entities_the_first_given_stays():
    whole, part = Entity(start=0, end=5, text="ab cd", type="name"), Entity(start=3, end=5, text="cd", type="name")
    assert drop_overlaps([whole, part]) == (whole,)
    assert drop_overlaps([part, whole]) == (part,)


@pytest.mark.parametrize("name", ["rule", "spacy", "spacy:", "flair:x", ""])
def test_an_unknown_detector_is_a_settings_error(name):
    with pytest.raises(SettingsError, match=r'"rules", "spacy:FOLDER" or "gliner:FOLDER"'):
        load_detector(name)


@pytest.mark.parametrize("kind", ["spacy", "gliner"])
def test_a_missing_folder_or_package_is_named_with_the_remedy(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ModelError, match="no such folder"):
        load_detector(f"{kind}:{tmp_path / 'missing'}")
    with pytest.raises(MissingExtra, match=rf"knowhalu\[{kind}\]"):
        load_detector(f"{kind}:{tmp_path}")


def stand_in(monkeypatch, name, **members):
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


TEXT = "Ada met Bo in Rome."


def test_a_spacy_pipeline_is_loaded_from_its_folder(tmp_path, monkeypatch):
    loaded = []
    spans = [(14, 18, "GPE"), (0, 3, "PERSON"), (0, 6, "PERSON"), (10, 99, "DATE")]
    doc = SimpleNamespace(ents=[SimpleNamespace(start_char=a, end_char=b, label_=k) for a, b, k in spans])
    stand_in(monkeypatch, "spacy", load=lambda folder: loaded.append(folder) or (lambda text: doc))
    found = load_detector(f"spacy:{tmp_path}")(TEXT)
    assert loaded == [tmp_path]
    assert [(e.text, e.type) for e in found] == [("Ada", "person"), ("Rome", "gpe")]


def test_a_gliner_model_is_loaded_without_a_download_and_asked_for_our_types(tmp_path, monkeypatch):
    asked = []

    class GLiNER:
        @classmethod
        def from_pretrained(cls, folder, local_files_only):
            asked.append((folder, local_files_only))
            return cls()

        def predict_entities(self, text, types):
            asked.append(tuple(types))
            return [{"start": 8, "end": 10, "label": "person", "text": "Bo"}]

    stand_in(monkeypatch, "gliner", GLiNER=GLiNER)
    found = load_detector(f"gliner:{tmp_path}")(TEXT)
    assert [(e.text, e.type) for e in found] == [("Bo", "person")]
    assert asked == [(str(tmp_path), True), GLINER_TYPES]


@pytest.mark.parametrize("kind", ["spacy", "gliner"])
def test_a_folder_that_holds_something_else_is_a_model_error(kind, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no config")

    stand_in(monkeypatch, kind, load=refuse, GLiNER=SimpleNamespace(from_pretrained=refuse))
    with pytest.raises(ModelError, match="no config"):
        load_detector(f"{kind}:{tmp_path}")
