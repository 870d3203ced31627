import re

from hypothesis import example, given
from hypothesis import strategies as st

from knowhalu.declarative import declarative
from knowhalu.text import content_words

NAMES = st.sampled_from("Ann Lee,Kestrel,Mount Orrin,the Beacon,St. Ives,iPhone,1987,J. R. Holm,red wine,O'Neil".split(","))
WORDS = st.sampled_from(
    "who what which when where how many much long old did does is was were has can born win wrote founded the a of in by to "
    'film director city year and or both not that X\'s Kestrel 1990 "Iron Fields" , ? \' " ( called named for because yes'.split(
        " "
    )
)
TEMPLATES = st.sampled_from(
    """
    Who wrote {}?|What is the capital of {}?|In which city was {} born?|When did {} end?|Where is {}?|What did {} win in 1990?
    Which band recorded {}?|{} was directed by which American director?|How many people live in {}?|Why did {} fail?
    Who was {} named after?|What is {} known for?|Whose idea was {}?|How did {} die?|Which is older, {} or Rome?
    """.strip().replace("\n", "|").split("|")
).map(str.strip)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=14).map(" ".join))


@given(TEXTS, TEXTS)
@example("who", "A")
@example("what is", "x")
@example("Is or", "or")
@example("in which", "in")
@example("which ,", ",")
@example("how long is of 5", "\U0001f642 \xb4 being")
@example("which __ may most.", "this")
def test_no_text_raises(question, answer):
    told = declarative(question, answer)
    assert told is None or (told.strip() == told and told)


@given(TEXTS, TEXTS)
def test_a_statement_ends_once_and_has_single_spaces(question, answer):
    told = declarative(question, answer)
    assert told is None or (re.search(r"\.[\"”]?$", told) and not re.search(r"\.\.$|\s\s|\s[.,]$", told))  # noqa: RUF001


@given(TEXTS, TEXTS)
def test_stating_a_statement_changes_nothing(question, answer):
    told = declarative(question, answer)
    assert told is None or declarative(question, told) == told


@given(TEMPLATES, NAMES, NAMES)
def test_every_content_word_of_a_short_answer_is_kept(template, name, answer):
    told = declarative(template.format(name), answer)
    assert told is None or set(content_words(answer)) <= set(content_words(told))


@given(TEMPLATES, NAMES, NAMES)
def test_names_and_numbers_are_never_changed(template, name, answer):
    told = declarative(template.format(name), answer)
    known = f"{template} {name} {answer}".lower()
    assert told is None or all(w.lower().strip(".,") in known for w in told.split() if w[0].isdigit() or w[1:2].isupper())
    assert told is None or name.lower() in told.lower() or "older" in template
