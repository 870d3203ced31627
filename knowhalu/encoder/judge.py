"""A language model as verifier: each pair is a question with a few possible answers, whose probabilities are read.

It answers `Entail` requests through any LLM backend (`llm.backend`), so a dedicated judge, such as MiniCheck-7B or Granite
Guardian, needs no code of its own. It tags no spans. This module imports no torch.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from knowhalu.encoder.score_cache import RecentlyUsed, pair_key
from knowhalu.io.verifier_file import VerifierCard
from knowhalu.prompts.shielding import shield_tokens
from knowhalu.requests import Completion, Entail, EntailmentPair, Generate, Probabilities, TagSpans
from knowhalu.text.sentences import segments, windows, word_count

CLAIM_SHARE = 5 / 8
"""Share of a window's words up to which a claim is judged whole, as with other verifiers."""
_FIELD = re.compile(r"\{(premise|claim|question)\}")


class Judge:
    """Renders the requests of a judge and combines its replies; `BlockingJudge` and `AsyncJudge` pass them to a backend."""

    def __init__(self, card: VerifierCard, llm: Any, remember: int = 100_000) -> None:
        self.card, self.llm, self.remember = card, llm, remember
        self._recent: RecentlyUsed[Probabilities] = RecentlyUsed()

    def _known(self, pairs: Iterable[EntailmentPair]) -> dict[EntailmentPair, Probabilities]:
        keys = {pair: pair_key(pair) for pair in pairs}
        found = self._recent.look_up(keys.values())
        return {pair: found[key] for pair, key in keys.items() if key in found}

    def _store(self, scores: Mapping[EntailmentPair, Probabilities]) -> None:
        self._recent.store({pair_key(pair): score for pair, score in scores.items()}, self.remember)

    def requests(self, pair: EntailmentPair) -> list[list[Generate]]:
        """Return the requests for a pair: for each piece of its claim, one for each window of its source."""
        window, claim_words = self.card.window, int(CLAIM_SHARE * self.card.window)
        whole = word_count(pair.premise) <= window
        views = [pair.premise] if whole else [w.text for w in windows(pair.premise, window, window // 3)]
        short = word_count(pair.claim) <= claim_words
        pieces = [pair.claim] if short else [s.text for s in segments(pair.claim, max(10, claim_words // 2))]
        return [[self._request(view, piece, pair.question) for view in views] for piece in pieces]

    def _request(self, premise: str, claim: str, question: str | None) -> Generate:
        template = str(self.card.with_question if question else self.card.template)
        values = {"premise": premise, "claim": claim, "question": question or ""}
        prompt = _FIELD.sub(lambda m: shield_tokens(values[m[1]]), template)
        fixed = min(match.start() for match in _FIELD.finditer(template))
        longest = max(map(len, self.card.answers))
        return Generate(prompt, self.card.system, fixed=fixed, choices=self.card.answers, max_tokens=longest + 4)

    def combine(self, pieces: Sequence[Sequence[Completion]]) -> Probabilities:
        """Combine the replies for a pair: the best window of the source counts, and the worst piece of the claim."""
        best = [max(map(self._read, views), key=lambda p: p.supported) for views in pieces]
        return min(best, key=lambda p: p.supported)

    def _read(self, reply: Completion) -> Probabilities:
        """Return the probabilities of one reply; where the backend measures none, the answer has probability 1."""
        chosen = reply.choices or {reply.text: 1.0}
        share = {kind: 0.0 for kind in self.card.labels}
        for answer, kind in zip(self.card.answers, self.card.labels, strict=True):
            share[kind] += chosen.get(answer, 0.0)
        supported, contradicted = share["supported"], share.get("contradicted", 0.0)
        return Probabilities(supported, contradicted, max(0.0, 1.0 - supported - contradicted))


def _without_spans(request: Entail | TagSpans, scores: Mapping[EntailmentPair, Probabilities]) -> list[Any]:
    return [() if isinstance(request, TagSpans) else scores[pair] for pair in request.pairs]


class BlockingJudge(Judge):
    """A judge over an LLM backend that blocks, such as a model in this process."""

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[Any]:
        """Answer all requests; an exception in place of a reply fails its request only."""
        wanted = list(dict.fromkeys(p for r in requests if isinstance(r, Entail) for p in r.pairs))
        scores = self._known(wanted)
        planned = {pair: self.requests(pair) for pair in wanted if pair not in scores}
        prompts = list(dict.fromkeys(g for pieces in planned.values() for views in pieces for g in views))
        replies = dict(zip(prompts, self.llm.answer_many(prompts) if prompts else [], strict=True))
        errors: dict[EntailmentPair, Exception] = {}
        for pair, pieces in planned.items():
            found = [[replies[g] for g in views] for views in pieces]
            bad = next((r for views in found for r in views if isinstance(r, Exception)), None)
            if bad is None:
                scores[pair] = self.combine(found)
                self._store({pair: scores[pair]})
            else:
                errors[pair] = bad
        return [_error_of(r, errors) or _without_spans(r, scores) for r in requests]


def _error_of(request: Entail | TagSpans, errors: Mapping[EntailmentPair, Exception]) -> Exception | None:
    return next((errors[p] for p in request.pairs if isinstance(request, Entail) and p in errors), None)


class AsyncJudge(Judge):
    """A judge over an LLM backend that awaits, such as a server."""

    async def answer(self, request: Entail | TagSpans) -> list[Any]:
        """Answer one request; the backend bounds how many prompts are sent at a time. Raises the backend's errors."""
        if isinstance(request, TagSpans):
            return _without_spans(request, {})
        scores = self._known(request.pairs)
        missing = [pair for pair in dict.fromkeys(request.pairs) if pair not in scores]
        computed = dict(zip(missing, await asyncio.gather(*map(self._score, missing)), strict=True))
        self._store(computed)
        return _without_spans(request, scores | computed)

    async def _score(self, pair: EntailmentPair) -> Probabilities:
        pieces = [await asyncio.gather(*map(self.llm.answer, views)) for views in self.requests(pair)]
        return self.combine(pieces)

    async def close(self) -> None:
        """Close the connections of the LLM backend."""
        if hasattr(self.llm, "close"):
            await self.llm.close()


def make_judge(card: VerifierCard, llm: Any, remember: int) -> BlockingJudge | AsyncJudge:
    """Make the judge for an LLM backend, which has `answer_many` or `answer`."""
    return (BlockingJudge if hasattr(llm, "answer_many") else AsyncJudge)(card, llm, remember)
