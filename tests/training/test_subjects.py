"""Claims of which the subject decides: sentences after another, and facts of another subject."""

import random

from knowhalu.training.examples import NEUTRAL, SUPPORTED, UNSUPPORTED
from knowhalu.training.subjects import exchanged_subject_example, followed_sentence_example

MILL = {
    "title": "Arden Mill",
    "text": "Arden Mill is a water mill in Kelburg. It was built in 1911. Its wheel is nine metres high.",
}
FERRY = {"title": "Tarn Ferry (ship)", "text": "Tarn Ferry is a ship of 1984. It crosses the Sundmere twice a day."}


def examples(make, count=300):
    return [make(MILL, FERRY, random.Random(seed)) for seed in range(count)]


def test_a_pronoun_stands_after_its_sentence_or_after_one_of_another_text():
    made = [e for e in examples(followed_sentence_example) if e.question]
    foreign = [e for e in made if e.question.startswith("Tarn Ferry")]
    assert foreign and all(e.target == UNSUPPORTED and e.question in e.premise for e in foreign)
    own = [e for e in made if e not in foreign]
    assert {e.question for e in own} <= {"Arden Mill is a water mill in Kelburg.", "It was built in 1911."}
    assert {e.target for e in own} >= {SUPPORTED, NEUTRAL}


def test_the_sentence_of_a_neutral_claim_is_not_in_the_premise():
    for e in examples(followed_sentence_example):
        if e.target == NEUTRAL and e.question:
            assert e.claim not in e.premise


def test_an_exchanged_subject_is_wrong_and_marked():
    made = examples(exchanged_subject_example)
    wrong = [e for e in made if e.claim.startswith("Tarn Ferry")]
    assert wrong and all(e.target == UNSUPPORTED and e.wrong == ((0, len("Tarn Ferry")),) for e in wrong)
    assert all(FERRY["text"] in e.premise and MILL["text"] in e.premise for e in wrong)
