"""Language models by role: each request goes to the model of its role, and a role's branch sets only what differs."""

import json

import pytest

from knowhalu.api import Reviser
from knowhalu.build import BackendPool, fingerprint, llm_identity
from knowhalu.cli.catalog import render_settings
from knowhalu.requests import CRITIC, WRITER
from knowhalu.settings import Settings, read_settings
from knowhalu.summarize import summarize
from tests.support.chatting import open_heading
from tests.support.fake_server import FakeServer, running
from tests.support.tiny_model import TinyModel

SOURCE = {"title": "Ling (2009): Creatine and recall", "text": "Creatine improved the recall of forty adults."}
TEXT = "Ling (2009) found that creatine improved the recall of ninety adults."
CRITIQUE = " Ninety is wrong.\n### Supported: No\n### Revised claim: NONE"
FIXED = "Ling (2009) found that creatine improved the recall of adults."


def server(name, wants, sure=0.9999):
    """A server that says one thing, and judges claims by their number."""
    made = FakeServer(TinyModel(wants, sure), names=[name])
    made.context = 40_000
    return made


def judge(prompt):
    _, opening = open_heading(prompt)
    said = "No" if "ninety" in prompt.rpartition("### Claim:")[2] else "Yes"
    return f"{opening}\n{said}" if opening else said


@pytest.fixture
def servers():
    with (
        running(server("judge", judge)) as first,
        running(server("writer", lambda prompt: f" {FIXED}")) as writer,
        running(server("critic", lambda prompt: CRITIQUE)) as critic,
    ):
        yield {"judge": first, "writer": writer, "critic": critic}


def settings(servers, **more):
    return read_settings(None, [
        "reasoner=llm", "llm.cache=false", "llm.style=chat", f"llm.url={servers['judge'].url}",
        f"writer_llm.url={servers['writer'].url}", f"critic_llm.url={servers['critic'].url}",
        "method=factored-academic", "factored.claims=sentences", "factored.reasons=false", "revise.how=factored",
    ])  # fmt: skip


def test_judge_critic_and_writer_may_be_three_models(servers):
    with Reviser(settings(servers)) as reviser:
        found = reviser.revise(summary=TEXT, documents=[SOURCE]).unwrap()
        identity = reviser.llm_identity
    assert (found.before.hallucinated, found.after.hallucinated) == (True, False)
    assert (found.critiques[0].critique, found.revised) == ("Ninety is wrong.", FIXED)
    asked = {name: [r for r in s.requests if "completions" in r.path] for name, s in servers.items()}
    assert (len(asked["critic"]), len(asked["writer"])) == (1, 1) and len(asked["judge"]) >= 2
    assert all(name in identity for name in ("judge", "writer: ", "critic: "))


def test_summaries_are_written_by_the_writer(servers, tmp_path):
    row = {"id": "q", "question": "Does creatine improve recall?", "documents": [SOURCE], "meta": {"set": "s"}}
    (tmp_path / "in.jsonl").write_text(json.dumps(row))
    counts = summarize(settings(servers), tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    (written,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (counts.written, written["summary"], written["meta"]["cited"]) == (1, FIXED, ["document-1"])
    assert "writer" in written["meta"]["written_by"] and written["meta"]["set"] == "s"
    assert not servers["judge"].requests


def test_a_role_has_the_options_of_the_llm_that_its_branch_leaves_out():
    made = read_settings(None, ["llm.model=m", "llm.seed=3", "critic_llm.seed=4"])
    assert (made.llm_of(CRITIC).model, made.llm_of(CRITIC).seed, made.llm_of(WRITER)) == ("m", 4, made.llm)
    assert list(made.by_role()) == [CRITIC]
    assert Settings().by_role() == {}


def test_models_of_roles_are_part_of_a_revision_and_of_no_check():
    plain, other = (read_settings(None, ["reasoner=llm", *pairs]) for pairs in ([], ["critic_llm.model=m"]))
    near = read_settings(None, ["reasoner=llm", "critic_llm.timeout=3"])
    assert fingerprint(plain) == fingerprint(other)
    assert fingerprint(plain, revises=True) != fingerprint(other, revises=True)
    assert json.loads(fingerprint(near, revises=True)["settings"])["critic_llm"].get("timeout") is None
    assert llm_identity(read_settings(None, ["critic_llm.model=m"])) == ""


def test_the_pool_keeps_the_models_of_roles_apart():
    pool, made = BackendPool(), []
    for kind, options in (("llm", 1), ("critic", 2), ("llm", 1), ("critic", 2)):
        pool.get(kind, options, lambda kind=kind: made.append(kind))
    assert made == ["llm", "critic"]


def test_only_what_a_role_sets_is_printed_and_reads_back(tmp_path):
    made = read_settings(None, ["llm.model=m", "critic_llm.seed=4"])
    (tmp_path / "s.toml").write_text(render_settings(made))
    assert read_settings(tmp_path / "s.toml").llm_of(CRITIC) == made.llm_of(CRITIC)
