"""Two verifiers as one backend: light pairs go to one, all others to the other, and replies keep their order."""

from knowhalu.encoder.paired import PairedVerifiers
from knowhalu.requests import Entail, EntailmentPair, TagSpans


class Recording:
    """A backend that answers with its name, and records the requests of each call."""

    def __init__(self, name):
        self.name, self.calls = name, []

    def answer_many(self, requests):
        self.calls.append(list(requests))
        return [[f"{self.name}: {p.claim}" for p in r.pairs] for r in requests]


def test_light_pairs_are_answered_by_the_small_verifier_and_all_others_by_the_large_one():
    main, light = Recording("main"), Recording("light")
    a, b, c = (EntailmentPair("premise", name) for name in "abc")
    requests = [Entail((a,), light=True), Entail((b,)), TagSpans((c,)), Entail((b, c), light=True)]
    assert PairedVerifiers(main, light).answer_many(requests) == [
        ["light: a"], ["main: b"], ["main: c"], ["light: b", "light: c"]
    ]  # fmt: skip
    assert main.calls == [[requests[1], requests[2]]] and light.calls == [[requests[0], requests[3]]]


def test_a_verifier_without_requests_is_not_called():
    main, light = Recording("main"), Recording("light")
    assert PairedVerifiers(main, light).answer_many([Entail((EntailmentPair("p", "c"),))]) == [["main: c"]]
    assert light.calls == [] and PairedVerifiers(main, light).answer_many([]) == []
