"""The slots of a real llama.cpp server: their number, the prompts that they hold, and what is computed only once."""

import asyncio

import pytest

from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from knowhalu.requests import Generate
from tests.support.real_llm import serving

pytestmark = pytest.mark.real
STAGES = {
    "harbour": "The harbour has a wall of stone and a crane, and the ships lie at anchor there in winter. " * 3,
    "orchard": "Apples and pears grow in the old orchard behind the mill, where nobody has pruned them. " * 3,
}
FIXED_TOKENS = 50
"""Less than the fixed part of either stage has."""


def ask_of(stage, number):
    """Return a request of a stage; what follows the fixed part differs from its first word on."""
    return Generate(f"{STAGES[stage]}{number} ships or trees?", fixed=len(STAGES[stage]), max_tokens=2)


async def answered(url, style, *rounds):
    """Send the requests of each round at once, and one round after the other; return the replies and the number of slots."""
    backend = ServerBackend(LLMOptions(url=url, style=style))
    replies = [reply for requests in rounds for reply in await asyncio.gather(*map(backend.answer, requests))]
    (count,) = backend._client.slots.values()
    await backend.close()
    return replies, count


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_each_stage_stays_in_a_slot_of_its_own(style):
    """The server keeps no prompts beside its slots here, so that what it has cached was in the slot that was named."""
    with serving(slots=2, context=512, cache_ram_mib=0) as running:
        rounds = [[ask_of(stage, n)] for n in (1, 2, 3) for stage in STAGES]
        replies, count = asyncio.run(answered(running.url, style, *rounds))
        held = {
            (slot, stage): running.ask("/v1/completions", prompt=text, id_slot=slot, max_tokens=1, cache_prompt=True)["usage"]
            for slot, stage, text in ((0, "harbour", STAGES["harbour"]), (1, "orchard", STAGES["orchard"]))
        } if style == "completion" else {}  # fmt: skip
    assert count == 2
    assert [reply.cached_tokens > FIXED_TOKENS for reply in replies] == [False] * 2 + [True] * 4
    assert all(usage["prompt_tokens_details"]["cached_tokens"] > FIXED_TOKENS for usage in held.values())


def test_a_server_with_fewer_slots_than_stages_answers_those_of_one_stage_first():
    with serving(slots=1, context=512, cache_ram_mib=0) as running:
        requests = [ask_of(stage, n) for n in range(4) for stage in STAGES]
        replies, count = asyncio.run(answered(running.url, "completion", requests))
    assert count == 1
    computed = sum(reply.cached_tokens < FIXED_TOKENS for reply in replies)
    assert 2 <= computed <= 3


def test_a_prompt_that_left_its_slot_comes_back_from_the_memory_of_the_server():
    """llama.cpp keeps the prompts that leave its slots (`--cache-ram`)."""
    with serving(slots=1, context=512) as running:
        rounds = [[ask_of(stage, n)] for n in (1, 2) for stage in STAGES]
        replies, _ = asyncio.run(answered(running.url, "completion", *rounds))
    assert [reply.cached_tokens > FIXED_TOKENS for reply in replies] == [False, False, True, True]
