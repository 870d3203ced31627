"""LLM baselines from settings to verdict, with a model behind a local server and in this process."""

import pytest

from knowhalu.api import Checker
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.options import BaselineOptions
from knowhalu.registry import METHODS
from knowhalu.results import Failure, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Label, Sample
from tests.support.chatting import open_heading
from tests.support.fake_server import FakeServer, running
from tests.support.tiny_llm import CHAT
from tests.support.tiny_model import TinyModel

NAMES = [name for name, card in METHODS.items() if card.options == "baselines"]
SAMPLE = Sample(
    id="1", question="Where was Fritz Lang born?", response="He was born in Berlin.",
    knowledge="Fritz Lang was a film director. He was born in Vienna in 1890.",
)  # fmt: skip
SAID = {
    "Label": "\nINCORRECT",
    "Judgment": "Lang was born in Vienna, and not in Berlin.\n### Label:\nINCORRECT",
    "Response": "Fritz Lang was born in Vienna.",
    "Supported": "\nNo",
    "Query": "Fritz Lang born",
    "Facts": "\n1. Fritz Lang was born in Vienna.",
}


def thinks(prompt):
    """Say what a good model would say, by the heading of the reply."""
    last, opening = open_heading(prompt)
    if last == "Claims":
        judged = "check it claim by claim" in prompt
        said = "1. Fritz Lang was born in Berlin" + (": INCORRECT\n### Label:\nINCORRECT" if judged else ".")
        return f"{opening}\n{said}" if opening else said
    return f"{opening} {SAID[last]}" if opening and not SAID[last].startswith("\n") else f"{opening}{SAID[last]}"


def checked(name, tmp_path, **llm):
    few = BaselineOptions(votes=3, samples=3)
    options = LLMOptions(cache_folder=tmp_path / "replies", **llm)
    return Checker(Settings(method=name, reasoner="llm", baselines=few, llm=options)).check(SAMPLE)


@pytest.mark.parametrize("name", NAMES)
def test_a_served_model_finds_the_wrong_claim(name, tmp_path):
    fake = FakeServer(TinyModel(thinks))
    fake.context = 1_000_000
    with running(fake):
        verdict = checked(name, tmp_path, url=fake.url)
    assert isinstance(verdict, Verdict), verdict
    assert (verdict.method, verdict.label) == (name, Label.INCORRECT)
    assert verdict.probability > 0.5 and verdict.usage.calls > 0


@pytest.mark.parametrize("name", ["halueval", "factored-single", "selfcheck", "wikichat"])
def test_an_unusable_reply_is_constrained_or_a_failure_with_the_reply(name, model_folder, tmp_path):
    folder = model_folder(template=CHAT, max_position_embeddings=8192)
    outcome = checked(name, tmp_path, backend="transformers", model=str(folder), precision="fp32")
    if isinstance(outcome, Failure):
        assert outcome.stage in ("claims", "judge", "samples") and outcome.reply
    else:
        assert 0 <= outcome.probability <= 1
