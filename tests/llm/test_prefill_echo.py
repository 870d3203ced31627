"""Replies that repeat their given beginning: what was generated is recognised, and keeps its log-probabilities."""

import json
from pathlib import Path

import pytest

from knowhalu.llm.label_probabilities import TokenLogprobs
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.llm.server_reply import ServerReply, strip_echo
from knowhalu.requests import Generate
from tests.support.fake_server import FakeServer, running
from tests.support.llm_contract import asker

RECORDED = json.loads((Path(__file__).parent / "llama_cpp_prefill.json").read_text(encoding="utf-8"))
LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")
LABEL_PROMPT = (
    "### Knowledge: Fritz Lang was born in Vienna.\n### Answer: He was born in Berlin.\n"
    "Say whether the answer is CORRECT, INCORRECT or INCONCLUSIVE.\n### Judgment:"
)


def replay(request):
    """Answer a request by the recorded replies of a llama.cpp server (SmolLM2-135M-Instruct) to the same messages."""
    left = {json.dumps(r["request"]["messages"]): r for r in RECORDED}

    async def answer(exchange):
        recorded = left.pop(json.dumps(exchange.body["messages"]))  # nothing is asked twice
        assert exchange.body.get("grammar") == recorded["request"].get("grammar")
        await exchange.send(200, recorded["reply"])

    with running(FakeServer(kind="llamacpp")) as fake:
        fake.strike("model", answer, forever=True)
        (reply,) = asker(ServerBackend(LLMOptions(url=fake.url)))([request])
    return reply


def test_labels_after_a_begun_reply_have_the_probabilities_that_llama_cpp_gave():
    begun = " The knowledge says Vienna.\n### Label:\n"
    reply = replay(Generate(LABEL_PROMPT, "You check answers.", begun, choices=LABELS))
    assert reply.text == "CORRECT"
    assert reply.choices == pytest.approx({"CORRECT": 0.5361, "INCORRECT": 0.4620, "INCONCLUSIVE": 0.0018}, abs=1e-4)


def test_a_continuation_by_llama_cpp_has_the_log_probabilities_of_all_its_tokens():
    begun = "### Answer: Fritz Lang was born in"
    reply = replay(Generate("Say where Fritz Lang was born.", "You answer.", begun, max_tokens=8))
    assert reply.text == " Los Angeles, California, United States."
    assert len(reply.logprobs) == 8 and sum(reply.logprobs) == pytest.approx(-4.4507, abs=1e-3)


def stripped(text, prefill, *tokens):
    reply = strip_echo(ServerReply(text, "stop", tuple(TokenLogprobs(t, -0.1, ((t, -0.1),)) for t in tokens), 0, 0, 0), prefill)
    return reply.text, [t.token for t in reply.positions]


@pytest.mark.parametrize(
    ("text", "prefill", "tokens", "rest", "kept"),
    [
        ("So it is CORRECT", "So it is", (" COR", "RECT"), " CORRECT", (" COR", "RECT")),  # llama.cpp
        ("So it is CORRECT", "So it is", ("So", " it is", " CORRECT"), " CORRECT", (" CORRECT",)),  # the model repeats it
        ("So it is CORRECT", "So it is", ("So it", " is CORRECT"), " CORRECT", ()),  # one token has the end and what follows
        ("So it is CORRECT", "So it is", (), " CORRECT", ()),
        ("So it is CORRECT", " So it is ", (" CORRECT",), " CORRECT", (" CORRECT",)),
        ("So it is a", "So it is", (" a", "\n###"), " a", (" a", "\n###")),  # cut at a stop string
        ("So it is é and", "So it is", (" ", "", " and"), " é and", (" ", "", " and")),  # half a character is no text
        ("So it is", "So it is", ("",), "", ("",)),  # the end token alone
        ("So so so so so", "So so", (" so", " so", " so"), " so so so", (" so", " so", " so")),
        (" (a, b, c)", " (", ("a", ", b", ", c)"), "a, b, c)", ("a", ", b", ", c)")),  # short, but the tokens tell
        (" (a) is", " (", (" (", "a", ") is"), " (a) is", (" (", "a", ") is")),
        ("CORRECT", "So it is", ("CORRECT",), "CORRECT", ("CORRECT",)),
        ("CORRECT", "\n", ("CORRECT",), "CORRECT", ("CORRECT",)),
        ("Other tokens: CORRECT", "Other tokens:", ("x", "y"), " CORRECT", ()),
    ],
)
def test_a_repeated_beginning_is_removed_with_its_tokens(text, prefill, tokens, rest, kept):
    assert stripped(text, prefill, *tokens) == (rest, list(kept))
