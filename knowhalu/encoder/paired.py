"""Two verifiers as one backend: a large one, and a small one for the many short pairs of single sentences.

On the development sets the small verifier loses nothing there, and a check of short sources takes a quarter less time.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knowhalu.encoder.models import light_folder, verifier_folder
from knowhalu.encoder.options import EncoderOptions
from knowhalu.encoder.score_cache import PairScorer, ScoreCache
from knowhalu.requests import Entail, TagSpans


def open_encoder(options: EncoderOptions) -> PairScorer:
    """Open the verifier of the options, each with its cache: two of them where single sentences have one of their own."""
    from knowhalu.encoder.external import open_verifier

    def opened(folder: Path) -> PairScorer:
        backend = open_verifier(folder, precision=options.precision, threads=options.threads, tokens=options.tokens)
        return ScoreCache(backend, options.remember) if options.remember else backend

    main, light = opened(verifier_folder(options)), light_folder(options)
    return main if light is None else PairedVerifiers(main, opened(light))


class PairedVerifiers:
    """Answer light `Entail` requests with one backend, and all other requests with another."""

    def __init__(self, main: PairScorer, light: PairScorer) -> None:
        self.main, self.light = main, light

    def answer_many(self, requests: Sequence[Entail | TagSpans]) -> list[list[Any]]:
        """Answer all requests, in order."""
        is_light = [isinstance(r, Entail) and r.light for r in requests]
        replies = {}
        for backend, kind in ((self.light, True), (self.main, False)):
            chosen = [r for r, light in zip(requests, is_light, strict=True) if light is kind]
            replies[kind] = iter(backend.answer_many(chosen) if chosen else ())
        return [next(replies[light]) for light in is_light]
