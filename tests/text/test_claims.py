"""What a text claims: courtesies, questions and refusals claim nothing, lead-ins are left out, a pronoun brings its context."""

import pytest

from knowhalu.text.claims import NoClaim, find_claims


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Good morning! What can I do for you?", NoClaim.COURTESY),
        ("Thank you so much for waiting.", NoClaim.COURTESY),
        ("You are most welcome!", NoClaim.COURTESY),
        ("That's a good question.", NoClaim.COURTESY),
        ("Feel free to ask about anything else.", NoClaim.COURTESY),
        ("I hope this helps!", NoClaim.COURTESY),
        ("Hope that helps.", NoClaim.COURTESY),
        ("Sure!", NoClaim.COURTESY),
        ("Hello Ruth, and thanks for your patience!", NoClaim.COURTESY),
        ("Oh dear, sorry for that! Have a lovely evening, and take care!", NoClaim.COURTESY),
        ("You're welcome, Ruth!", NoClaim.COURTESY),
        ("If anything else comes up, just give us a call.", NoClaim.COURTESY),
        ("Hope that makes it clearer, and have a great week!", NoClaim.COURTESY),
        ("If the alarm comes up, call the office.", None),
        ("Would you like to know more about the bridge?", NoClaim.QUESTION),
        ("Here is a short summary:", NoClaim.ANNOUNCEMENT),
        ("Sources:", NoClaim.ANNOUNCEMENT),
        ("I cannot tell from what I was given.", NoClaim.REFUSAL),
        ("I'm afraid that I have no reliable information about that.", NoClaim.REFUSAL),
        ("The article does not say who drew the bridge.", NoClaim.REFUSAL),
        ("That cannot be determined.", NoClaim.REFUSAL),
        ("Not enough information.", NoClaim.REFUSAL),
        ("Unfortunately, it is not stated.", NoClaim.REFUSAL),
        ("...", NoClaim.EMPTY),
    ],
)
def test_some_parts_claim_nothing(text, reason):
    assert {c.no_claim for c in find_claims(text)} == {reason}


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("Based on the provided context, the ferry runs daily.", "the ferry runs daily."),
        ("According to the article, it is clear that rents fell.", "rents fell."),
        ("The document states that the fee is 5 EUR.", "the fee is 5 EUR."),
        ("Certainly! In summary, the dam leaks.", "the dam leaks."),
        ("Welcome Home is a film by Ida Moss.", "Welcome Home is a film by Ida Moss."),
        ("Sorry is a song of 1999.", "Sorry is a song of 1999."),
        ("Good Morning Tarn opened in 1984.", "Good Morning Tarn opened in 1984."),
        ("Hello Dolly Lane.", "Hello Dolly Lane."),
        ("Thanks for asking, the mill opens at nine.", "Thanks for asking, the mill opens at nine."),
        ("Have a valid ticket.", "Have a valid ticket."),
        ("No.", "No."),
        ("She was not given a medal in 1932.", "She was not given a medal in 1932."),
        ("It was not given a prize.", "It was not given a prize."),
        ("The species was not known to science.", "The species was not known to science."),
        ("The bridge was not mentioned in the treaty.", "The bridge was not mentioned in the treaty."),
        ("No information was passed to the enemy.", "No information was passed to the enemy."),
        ("Nothing in the cave was older than the cup.", "Nothing in the cave was older than the cup."),
        ("The law is silent on divorce.", "The law is silent on divorce."),
        ("Yes, it did.", "Yes, it did."),
    ],
)
def test_a_claim_is_read_without_its_lead_in(text, claim):
    assert [c.text for c in find_claims(text) if c.no_claim is None] == [claim]


def test_a_polite_answer_holds_one_claim_in_its_place():
    text = "Great question! The plant employs **1,240** people [1]. Let me know if you need more."
    (claim,) = [c for c in find_claims(text) if c.no_claim is None]
    assert claim.text == "The plant employs 1,240 people."
    assert text[claim.start : claim.end] == "The plant employs **1,240** people [1]."


def test_a_pronoun_brings_the_sentence_before_as_context():
    first, second = find_claims("Tom Arden and Ruth Lane built the mill. They also drew the bridge.")
    assert (first.context, second.context) == ("", "Tom Arden and Ruth Lane built the mill.")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("Copper turns to dust when it is left outside.", False),
        ("The council sold its land.", False),
        ("The council closed it in 1990.", True),
        ("Copper is cheap because these mines are near.", True),
        ("Later, workers sold them again.", True),
        ("Later, workers sold apples.", False),
    ],
)
def test_a_pronoun_for_the_subject_of_its_own_sentence_needs_no_context(text, needs):
    before = "Rain fell for two days."
    assert find_claims(f"{before} {text}")[1].context == (before if needs else "")


@pytest.mark.parametrize(
    "half",
    ["The documents don't state the fare", "Unfortunately, the text does not mention the fare", "I do not know the fare"],
)
@pytest.mark.parametrize("goes_on", [", but ", "; however, "])
def test_half_a_refusal_claims_nothing_and_the_other_half_is_a_claim(half, goes_on):
    text = f"{half}{goes_on}the ferry runs daily."
    refusal, claim = find_claims(text)
    assert (refusal.text, refusal.no_claim, claim.text, claim.no_claim) == (half, NoClaim.REFUSAL, "the ferry runs daily.", None)
    assert text[refusal.start : refusal.end] == half and text[claim.start : claim.end] == claim.text


@pytest.mark.parametrize(
    "text", ["The law does not mention bees, but it protects wasps.", "Bees are small, but ants are smaller."]
)
def test_a_contrast_of_facts_is_no_half_refusal(text):
    assert all(c.no_claim is None for c in find_claims(text))


def test_a_list_item_brings_what_introduces_it():
    claims = find_claims("## Harbour ferry\nThe ferry runs:\n- on Mondays\n- on Fridays")
    assert [c.context for c in claims if c.no_claim is None] == ["Harbour ferry The ferry runs:"] * 2


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (
            "The clinic is led by Ada Lane, and the choir has 43 singers.",
            ["The clinic is led by Ada Lane", "the choir has 43 singers."],
        ),
        (
            "The Tarn winds through six towns, and the Ister skirts the hills.",
            ["The Tarn winds through six towns", "the Ister skirts the hills."],
        ),
        ("The Tarn winds through Ulm, Linz, and the fields of Ostermoor.", None),
        ("The Tarn, which winds through Ulm, and the Ister dry up.", None),
        ("The mill closed in 1911; the owner moved away.", ["The mill closed in 1911", "the owner moved away."]),
        ("She sold bread, milk and cheese, and went home.", None),
        ("Tom Arden said that the mill closed, and the town grew.", None),
        ("If the mill closes, and the town shrinks, the school closes.", None),
    ],
)
def test_clauses_with_subjects_of_their_own_are_claims_of_their_own(text, claims):
    assert [c.text for c in find_claims(text)] == (claims or [text])


def test_numbering_inside_a_sentence_is_left_out_of_its_claim():
    (claim,) = find_claims("They sell (1) salt, (2) honey, and (3) cheese.")
    assert claim.text == "They sell salt, honey, and cheese."
    assert (claim.start, claim.end, len(claim.offsets)) == (0, 46, len(claim.text))


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("Give `depth` in metres:\n```\nx = dig(depth=3)\n```", ["Give depth in metres.", "x = dig(depth=3)"]),
        ("Pass `depth` in metres:\n```\ndig(depth=3)\n```", ["You can pass depth in metres.", "dig(depth=3)"]),
        ("Call the function like this:\n```\ndig(depth=3)\n```", ["dig(depth=3)"]),
        ("To dig a well in sand, run:\n```\nelse:\n  i += 1\n}\n```", []),
        ("```\non:\n  # digs until water comes\n```", ["# digs until water comes"]),
    ],
)
def test_code_and_what_is_said_before_it_are_claims_where_they_name_something(text, claims):
    found = [c for c in find_claims(text) if c.no_claim is None]
    assert [c.text for c in found] == claims
    assert all(len(c.offsets) == len(c.text) for c in found)
