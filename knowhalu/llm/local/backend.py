"""A transformers model in this process that computes every prefix of its prompts once.

The fixed part of a prompt is computed once for all checks, and the conversation of a check once for all its steps. Requests
that share a fixed part are processed in one batch.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from knowhalu.errors import StageError
from knowhalu.llm.local.attention import UnsupportedAttention
from knowhalu.llm.local.decode import Answer, DecodingJob, PartialReply, SharedPrefixDecoder, decode_single
from knowhalu.llm.local.forward import PrefixPrefiller, SharedPrefixModel, SinglePromptModel, count_common_prefix
from knowhalu.llm.local.loading import check_model_folder, end_tokens, load_model, load_tokenizer, max_context_tokens
from knowhalu.llm.local.prefix_tree import PrefixTree
from knowhalu.llm.local.prompt_encoding import PromptEncoder
from knowhalu.requests import Generate
from knowhalu.settings import LLMOptions


def _load_folder(options: LLMOptions) -> tuple[Any, Any]:
    folder = check_model_folder(options.model)
    tokenizer = load_tokenizer(folder)
    return load_model(folder, options.precision), tokenizer


class TransformersBackend:
    """Answer `Generate` requests with a model from a local folder.

    With `reuse` False, or where the attention of the model does not allow it (`why_alone`), every prompt is computed from its
    first token, one at a time. `loaded`, a model with its tokenizer, replaces the folder. Raises ModelError where the folder
    is missing or damaged, MissingExtra where transformers is not installed.
    """

    def __init__(self, options: LLMOptions, *, reuse: bool = True, loaded: tuple[Any, Any] | None = None) -> None:
        self.model, self.tokenizer = loaded or _load_folder(options)
        self.framing = PromptEncoder(self.tokenizer, options.style, max_context_tokens(self.model.config))
        self.ends = end_tokens(self.model, self.tokenizer)
        self.prefixes = PrefixTree(options.prefix_mb * 2**20)
        self.alone = SinglePromptModel(self.model)
        self.together, self.why_alone = self._together() if reuse else (None, "reuse is off")
        self._lock = threading.Lock()

    @torch.inference_mode()
    def _together(self) -> tuple[SharedPrefixDecoder | None, str]:
        try:
            shared = SharedPrefixModel(self.model, self.alone)
        except UnsupportedAttention as error:
            return None, str(error)
        return SharedPrefixDecoder(PrefixPrefiller(shared, self.prefixes), keep_replies=not self.framing.is_chat), ""

    @property
    def computed(self) -> int:
        """The number of tokens processed by the model so far."""
        return self.alone.computed + (self.together.shared.computed if self.together else 0)

    @torch.inference_mode()
    def answer_many(self, requests: Sequence[Generate]) -> list[Answer]:
        """Answer every request, in order; a request that cannot be answered gets its own error."""
        answers: dict[int, Answer] = {}
        groups: dict[tuple[str, str], list[DecodingJob]] = {}
        with self._lock:
            for number, request in enumerate(requests):
                try:
                    framed = self.framing.frame(request)
                except StageError as error:
                    answers[number] = error
                    continue
                job = DecodingJob(number, request, framed, PartialReply(request, framed, self.framing, self.ends))
                if self._may_share(job):
                    groups.setdefault((request.system, request.prompt[: request.fixed]), []).append(job)
                else:
                    answers[number] = decode_single(self.alone, job)
            for jobs in groups.values():
                for batch in self._batches(jobs):
                    answers |= self.together.answer(batch) if self.together else {}
        return [answers[i] for i in range(len(requests))]

    def _may_share(self, job: DecodingJob) -> bool:
        """Return whether the prompt fits the sliding window; beyond it, the states of a prefix depend on what follows."""
        if self.together is None:
            return False
        window = self.together.shared.window
        return window is None or len(job.framed.context) + job.room <= window

    def _batches(self, jobs: Sequence[DecodingJob]) -> Iterator[list[DecodingJob]]:
        """Split a group so that the states after its common prefix fit into the memory limit of prefixes."""
        batch: list[DecodingJob] = []
        used, common = 0, count_common_prefix([j.framed.context for j in jobs])
        for job in jobs:
            rows = max(1, len(job.framed.choices))
            needed = rows * (len(job.framed.context) - common + job.room) * self.token_bytes
            if batch and used + needed > self.prefixes.limit:
                yield batch
                batch, used = [], 0
            batch.append(job)
            used += needed
        yield batch

    @property
    def token_bytes(self) -> int:
        """The bytes that the states of one token take."""
        if self.together is None:
            return 0
        layers, two, heads, _, size = self.together.shared.empty.shape
        return layers * two * heads * size * self.together.shared.empty.element_size()
