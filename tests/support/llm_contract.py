"""What every language-model backend must do, whatever it is: shared tests, asked of a backend as the engine asks it.

A test module makes a fixture `llm`, a function from a list of requests to their replies in order (see `asker`), and imports
these tests.
"""

import asyncio

import pytest

from knowhalu.requests import Completion, Generate

LABELS = ("CORRECT", "INCORRECT", "INCONCLUSIVE")
FREE = Generate("Tell me something of the sea.\n", max_tokens=24)
CHOICE = Generate("Is the sea wet: <<CORRECT>>, <<INCORRECT>>, <<INCONCLUSIVE>>?\n", prefill="Judgment:", choices=LABELS)


def asker(backend):
    """Return a function that asks a backend, blocking or async, many requests at once."""
    if hasattr(backend, "answer_many"):
        return lambda requests: list(backend.answer_many(requests))

    async def ask(requests):
        try:
            return await asyncio.gather(*(backend.answer(r) for r in requests), return_exceptions=True)
        finally:
            if hasattr(backend, "close"):
                await backend.close()

    return lambda requests: asyncio.run(ask(requests))


def changed(request, **fields):
    return Generate(**{**request.__dict__, **fields})


def test_a_reply_is_text_with_its_reason_and_tokens(llm):
    (reply,) = llm([FREE])
    assert isinstance(reply, Completion), reply
    assert reply.text and reply.finish_reason in ("stop", "length")
    assert reply.prompt_tokens > 0 and reply.completion_tokens > 0
    assert 0 <= reply.cached_tokens <= reply.prompt_tokens
    assert all(p <= 0 for p in reply.logprobs)
    assert reply.choices == {} and not reply.reused


def test_a_reply_ends_at_max_tokens(llm):
    long, short = llm([FREE, changed(FREE, max_tokens=2)])
    assert (short.finish_reason, short.completion_tokens) == ("length", 2)
    assert long.text.startswith(short.text)


def test_a_stop_string_is_cut_off(llm):
    (whole,) = llm([FREE])
    stop = whole.text[3:5]
    (found,) = llm([changed(FREE, stop=("never said", stop))])
    assert found.text == whole.text[: whole.text.index(stop)]
    assert found.finish_reason == "stop"


def test_choices_have_probabilities_and_the_likeliest_is_the_text(llm):
    (reply,) = llm([CHOICE])
    assert set(reply.choices) == set(LABELS)
    assert sum(reply.choices.values()) == pytest.approx(1.0)
    assert reply.text == max(reply.choices, key=reply.choices.__getitem__)
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize("choices", [("yes", "no"), ("1", "10", "100"), ("a b", "a c"), ('say "x"', "say |y"), ("only",)])
def test_any_choices_will_do(llm, choices):
    prompt = f"Say {', '.join(f'<<{c}>>' for c in choices)}.\n"
    (reply,) = llm([changed(CHOICE, prompt=prompt, choices=choices)])
    assert reply.text in choices
    assert sum(reply.choices.values()) == pytest.approx(1.0)


def test_a_label_on_a_line_of_its_own_is_as_good(llm):
    (reply,) = llm([changed(CHOICE, prefill="Judgment:\n")])
    assert reply.text in LABELS
    assert sum(reply.choices.values()) == pytest.approx(1.0)


def test_drawn_choices_follow_their_probabilities(llm):
    replies = llm([changed(CHOICE, temperature=1.0, seed=seed) for seed in range(40)])
    probabilities = replies[0].choices
    for label in LABELS:
        share = sum(r.text == label for r in replies) / len(replies)
        assert share == pytest.approx(probabilities[label], abs=0.3)


def test_a_begun_reply_is_gone_on_with(llm):
    whole, start = llm([changed(FREE, max_tokens=8), changed(FREE, max_tokens=2)])
    (rest,) = llm([changed(FREE, prefill=start.text, max_tokens=6)])
    assert start.text + rest.text == whole.text


def test_the_same_seed_gives_the_same_reply(llm):
    warm = changed(FREE, temperature=1.0, seed=3)
    first, again, *others = llm([warm, warm, *(changed(warm, seed=s) for s in range(4, 12))])
    assert first.text == again.text
    assert any(o.text != first.text for o in others)


def test_replies_keep_the_order_of_the_requests(llm):
    prompts = [f"Count to {n}.\n" for n in range(12)]
    together = llm([Generate(p, max_tokens=12) for p in prompts])
    alone = [llm([Generate(p, max_tokens=12)])[0] for p in prompts]
    assert [t.text for t in together] == [a.text for a in alone]


def test_a_system_prompt_is_heard(llm):
    plain, instructed = llm([FREE, changed(FREE, system="Speak of the mountains.")])
    assert instructed.prompt_tokens > plain.prompt_tokens
