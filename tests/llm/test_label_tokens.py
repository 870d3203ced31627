"""Labels measured by their tokens at vLLM: one request for a label, against a stand-in with vLLM's semantics."""

import json
import math
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import ConfigDict, TypeAdapter, create_model

from knowhalu.errors import ReplyError
from knowhalu.llm.label_tokens import LabelSearch, LabelTokenTree, read_lines, write_lines
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.server_backend import ServerBackend
from tests.support.fake_server import FakeServer, running
from tests.support.llm_contract import CHOICE, FREE, LABELS, asker, changed
from tests.support.server_faults import status
from tests.support.tiny_model import TinyModel, tokenize

RECORDED = json.loads(Path(__file__).with_name("vllm_request_fields.json").read_text())
"""The fields of vLLM's own request classes that this project may send, with their types, by version and path."""
SURE = TinyModel(lambda prompt: "Judgment: INCORRECT", 0.9)


def ask(fake, *requests, **options):
    return asker(ServerBackend(LLMOptions(url=fake.url, **options)))(list(requests))


def generations(fake):
    return [r.body for r in fake.requests if r.path.startswith("/v1/") and r.method == "POST"]


def canonical(model, prompt, begun, leads):
    """Return the share of each label by the probabilities of the tokens in which the tokenizer writes it."""
    mass = {label: 0.0 for label in LABELS}
    ways = {(lead, label): tokenize(lead + label) for lead in leads for label in LABELS}
    for (_, label), tokens in ways.items():
        text, p = "", 1.0
        for i, token in enumerate(tokens):
            if {other for (_, other), others in ways.items() if others[:i] == tokens[:i]} == {label}:
                break
            p *= model.after(prompt, begun + text)[token]
            text += token
        mass[label] += p
    return {label: p / sum(mass.values()) for label, p in mass.items()}


@pytest.mark.parametrize("template", [True, False], ids=["chat", "completion"])
def test_label_probabilities_are_those_of_the_labels_tokens(template):
    with running(FakeServer(SURE, template=template)) as fake:
        (reply,) = ask(fake, CHOICE)
        before = f"<user>{CHOICE.prompt}</><assistant>" if template else CHOICE.prompt
        assert reply.choices == pytest.approx(canonical(SURE, before, CHOICE.prefill, ("", " ")), abs=1e-3)
        assert fake.requests[-1].path == ("/v1/chat/completions" if template else "/v1/completions")


def test_a_label_on_a_line_of_its_own_takes_one_request():
    model = TinyModel(lambda prompt: "Judgment:\nINCORRECT", 0.9)
    with running(FakeServer(model)) as fake:
        request = changed(CHOICE, prefill="Judgment:\n")
        replies = ask(fake, *[changed(request, prompt=f"{n} {CHOICE.prompt}") for n in range(3)])
        assert all(r.text == "INCORRECT" for r in replies)
        assert len(generations(fake)) == 3
        assert 1 <= [r.path for r in fake.requests].count("/tokenize") <= 3
        assert replies[0].choices == pytest.approx(
            canonical(model, f"<user>0 {CHOICE.prompt}</><assistant>", "Judgment:\n", ("",)), abs=1e-3
        )


def test_a_drawn_label_takes_one_greedy_request():
    with running(FakeServer(SURE)) as fake:
        drawn = ask(fake, *[changed(CHOICE, temperature=1.0, seed=seed) for seed in range(30)])
        assert {body["temperature"] for body in generations(fake)} == {0.0}
        assert drawn[0].choices == drawn[1].choices and len({r.text for r in drawn}) > 1


@pytest.mark.parametrize("version", sorted(RECORDED))
@pytest.mark.parametrize("template", [True, False], ids=["chat", "completion"])
def test_every_field_is_one_of_vllm_and_has_its_type(version, template):
    types = {"Any": Any, "Literal": Literal, "list": list, "dict": dict}
    with running(FakeServer(SURE, template=template)) as fake:
        ask(fake, FREE, CHOICE, changed(CHOICE, choices=("yes", "no")), changed(FREE, temperature=1.0, stop=("x",)))
        for sent in (r for r in fake.requests if r.method == "POST"):
            fields = RECORDED[version][sent.path]
            assert set(sent.body) <= set(fields)
            known = {n: (_type(t, types), None) for n, t in fields.items()}
            create_model("Sent", __config__=ConfigDict(strict=True, extra="forbid"), **known)(**sent.body)


def _type(annotation, names):
    """Return the type that vLLM declares for a field; any for one of vLLM's own types."""
    try:
        return TypeAdapter(eval(annotation, {**names, "__builtins__": {}}, dict(int=int, str=str, float=float, bool=bool)))._type
    except NameError:
        return Any


@pytest.mark.parametrize("kind", ["no tokenizer", "fields ignored", "processed log-probabilities"])
def test_an_older_server_gets_structured_outputs(kind):
    fake = FakeServer(SURE, named=kind != "fields ignored")
    with running(fake):
        if kind == "no tokenizer":
            fake.strike("add_special_tokens", status(404), forever=True)
        if kind == "processed log-probabilities":
            fake._logprobs = _after_the_constraint(fake._logprobs)
        first, second = (ask(fake, CHOICE)[0], ask(fake, CHOICE)[0])
        assert first.text == second.text == "INCORRECT"
        assert "structured_outputs" in next(b for b in generations(fake) if "logprob_token_ids" not in b)


def _after_the_constraint(logprobs):
    def masked(body, steps, chat):
        if body.get("allowed_token_ids"):
            steps = [(token, {token: 1.0}) for token, _ in steps]
        return logprobs(body, steps, chat)

    return masked


def test_a_server_without_named_tokens_is_asked_once():
    with running(FakeServer(SURE, named=False)) as fake:
        ask(fake, *[changed(CHOICE, prompt=f"{n} {CHOICE.prompt}") for n in range(20)], concurrency=1)
        assert [r.path for r in fake.requests].count("/tokenize") == 1


def test_what_the_model_would_write_instead_of_a_label_is_shown():
    model = TinyModel(lambda prompt: "Judgment: Perhaps", 0.9999)
    with running(FakeServer(model)) as fake:
        (error,) = ask(fake, changed(CHOICE, prompt="Is it so?\n"))
        assert isinstance(error, ReplyError)
        assert "the model would write something else where a label belongs (' ')" in error.reason


def tree(*ways):
    return LabelTokenTree({label: [tuple(tokens) for tokens in sequences] for label, sequences in ways})


def told(search, tokens, **after):
    """Generate greedily among the allowed tokens of a model that knows probabilities by prefix, such as `_1_2`."""
    generated, logprobs, at = [], [], ""
    for _ in range(tokens.length):
        now = after.get(at or "_", {})
        generated.append(max(tokens.allowed, key=lambda t: now.get(t, 0.0)))
        logprobs.append({t: math.log(now.get(t) or 1e-9) for t in tokens.named})
        at += f"_{generated[-1]}"
    search.read(generated, logprobs)


def test_a_chain_of_shared_tokens_is_read_at_once():
    search = LabelSearch(tree(("A", [(1, 2, 3)]), ("B", [(1, 2, 4, 5)]), ("C", [(1, 6)])))
    request = search.next()
    assert (set(request.named), request.allowed, request.length) == ({1, 2, 3, 4, 6}, (1, 2), 3)
    told(search, request, _={1: 0.8}, _1={2: 0.5, 6: 0.25}, _1_2={3: 0.25, 4: 0.75})
    assert search.next() is None
    assert search.mass == pytest.approx(0.8 * 0.75)
    assert search.probabilities() == pytest.approx({"A": 1 / 6, "B": 1 / 2, "C": 1 / 3})


def test_labels_with_several_beginnings_take_a_request_for_each_that_has_mass():
    search = LabelSearch(tree(("A", [(1, 3), (2, 3)]), ("B", [(1, 4), (2, 4)])))
    after = {"_": {1: 0.5, 2: 0.25}, "_1": {3: 0.5, 4: 0.5}, "_2": {3: 0.1, 4: 0.3}}
    told(search, search.next(), **after)
    second = search.next()
    assert (second.allowed, second.length) == ((2,), 2)
    told(search, second, **after)
    assert search.next() is None
    assert search.probabilities() == pytest.approx({"A": (0.25 + 0.025) / 0.6, "B": (0.25 + 0.075) / 0.6})
    sure = LabelSearch(tree(("A", [(1, 3), (2, 3)]), ("B", [(1, 4), (2, 4)])))
    told(sure, sure.next(), **{**after, "_": {1: 0.99, 2: 0.00001}})
    assert sure.next() is None


def test_a_label_that_begins_another_gets_the_remaining_mass():
    search = LabelSearch(tree(("1", [(1,)]), ("10", [(1, 0)])))
    told(search, search.next(), _={1: 0.9}, _1={0: 0.2})
    assert search.probabilities() == pytest.approx({"1": 0.8, "10": 0.2})


def test_lines_of_labels_are_read_from_the_tokens_of_one_text():
    assert write_lines(["", " "], ["A", "B"]) == "a\nA\nB\n A\n B"
    assert read_lines([7, 9, 1, 9, 2, 9, 3, 4, 9, 5], ["", " "], ["A", "B"]) == {"A": [(1,), (3, 4)], "B": [(2,), (5,)]}
    assert read_lines([7, 9, 1, 9, 2], ["\n"], ["A", "B"]) == {"A": [(9, 1)], "B": [(9, 2)]}
    assert read_lines([7, 9, 1, 2], ["\n"], ["A", "B"]) is None
    assert write_lines(["\n\n"], ["A"]) is None
