"""The encoder on a statement and passages: a judgment with quotes, and its relation."""

import pytest

from knowhalu.encoder.backend import PACKAGED_VERIFIER
from knowhalu.methods.knowhalu.encoder import EntailmentJudge, inference_relation
from knowhalu.testing import ScriptedEncoder
from knowhalu.types import Document, Passage, Relation, Sample

TEXT = "The bridge opened in 1932. It is 503 metres long. The mayor cut the ribbon."
PASSAGE = Passage(id="d", document="d", text=TEXT, end=len(TEXT))


def judged(statement, scores):
    encoder = ScriptedEncoder(lambda pair: scores)
    conversation = EntailmentJudge(PACKAGED_VERIFIER).judge(
        Sample(response=statement, documents=(Document(id="d", text=TEXT),)), (PASSAGE,)
    )
    reply = None
    try:
        while True:
            reply = encoder.answer_many([conversation.send(reply)])[0]
    except StopIteration as end:
        return end.value


@pytest.mark.parametrize(
    ("statement", "scores", "expected"),
    [
        ("The bridge opened in 1932.", (0.96, 0.02, 0.02), Relation.ENTAILMENT),
        ("The bridge opened in 1941.", (0.02, 0.96, 0.02), Relation.CONTRADICTION),
        ("The bridge was painted green.", (0.03, 0.05, 0.92), Relation.NEUTRAL),
    ],
)
def test_a_statement_is_entailed_contradicted_or_neither(statement, scores, expected):
    judgment = judged(statement, scores)
    assert inference_relation(judgment) is expected
    assert (judgment.p_supported >= 0.5) == (expected is Relation.ENTAILMENT)


def test_the_judgment_keeps_its_supporting_sentences():
    (step,) = judged("The bridge opened in 1932.", (0.96, 0.02, 0.02)).steps
    assert any(TEXT[q.start : q.end] == q.text == "The bridge opened in 1932." for q in step.knowledge.quotes)
