"""External verifiers as backends: any sequence classifier for NLI, MiniCheck, FactCG, HHEM, AlignScore and LettuceDetect.

They answer the requests that the packaged verifier answers, with its windows of long sources, batches, caches and errors.

A model with two outputs cannot distinguish a contradiction from missing evidence. So P(contradicted) is 0 there, and all that is
not supported is neutral: no verdict claims a contradiction that the model cannot see.
"""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from knowhalu.encoder.backend import EncoderBackend, RowOutput, WindowRow
from knowhalu.encoder.device import Precision, choose_device, in_one_thread, use_threads
from knowhalu.encoder.external_models import DEFAULT_LENGTH, load_external_model
from knowhalu.encoder.external_text import TemplateTokenizer
from knowhalu.encoder.score_cache import RecentlyUsed
from knowhalu.encoder.verifier import EncodedPair, read_span_threshold
from knowhalu.errors import ModelError
from knowhalu.io.verifier_file import DOCS, ExternalVerifier, output_classes, read_external
from knowhalu.requests import EntailmentPair, Probabilities

NOTHING_CLAIMED = Probabilities(0.0, 0.0, 1.0)


class ExternalBackend(EncoderBackend):
    """Answer `Entail` and `TagSpans` requests with an external verifier from a local folder.

    Raises ModelError where the folder is missing, damaged or of another kind.
    """

    @in_one_thread
    def __init__(
        self,
        folder: Path,
        external: ExternalVerifier,
        *,
        precision: Precision = "auto",
        threads: int | None = None,
        tokens: int = 4096,
    ) -> None:
        self.folder, self.tokens, self.card = folder, tokens, external.card
        use_threads(threads)
        dtype, self.device = choose_device(precision, "auto")
        loaded = load_external_model(external.model, self.card, dtype)
        self.model, config = loaded.model.to(self.device), loaded.model.config
        self.vocabulary: TemplateTokenizer = TemplateTokenizer(  # type: ignore[assignment]
            external.model, self.card, self._max_length(external.model, loaded.positions), config.pad_token_id
        )
        self.max_claim_tokens = self.vocabulary.max_claim
        self.classes = self.card.labels or output_classes(loaded.names, external.model / "config.json")
        self._answers = torch.tensor([self._answer_id(a) for a in self.card.answers], dtype=torch.long)
        outputs = len(self._answers) or config.num_labels
        if outputs != len(self.classes):
            raise ModelError(f"{external.model}: the model has {outputs} outputs, but `labels` has {len(self.classes)}. {DOCS}")
        if (config.vocab_size or 0) < self.vocabulary.tokenizer.get_vocab_size():
            raise ModelError(f"{external.model}: the tokenizer has more tokens than the model. Copy both from the same model")
        self._start = int(getattr(config, "decoder_start_token_id", None) or 0)
        self._typed = (getattr(config, "type_vocab_size", None) or 0) > 1
        self.span_threshold = read_span_threshold(folder)
        self._recent: RecentlyUsed[RowOutput] = RecentlyUsed()

    def _max_length(self, folder: Path, positions: int | None) -> int:
        wanted = self.card.max_length
        if wanted and positions and wanted > positions:
            raise ModelError(f"{folder}: max_length is {wanted}, but the model has {positions} positions. Give at most that")
        return wanted or positions or DEFAULT_LENGTH

    def _answer_id(self, answer: str) -> int:
        number = self.vocabulary.tokenizer.token_to_id(answer)
        if number is None:
            raise ModelError(f"{self.folder}: the tokenizer has no token {answer!r}; `answers` are names of tokens. {DOCS}")
        return number

    @property
    def tags_words(self) -> bool:
        """Tell whether the model gives a probability for each word of a claim."""
        return self.card.kind == "token-classification"

    def _window_rows(self, pairs: Sequence[EntailmentPair]) -> list[WindowRow]:
        return self.vocabulary.rows(pairs)

    @in_one_thread
    @torch.inference_mode()
    def _compute(self, rows: list[EncodedPair], length: int) -> list[RowOutput]:
        length = min(length, self.vocabulary.max_length)  # padding has no more positions than tokens
        ids, mask, types = (t.to(self.device) for t in self.vocabulary.batch(rows, length))
        inputs = {"input_ids": ids, "attention_mask": mask} | ({"token_type_ids": types} if self._typed else {})
        if self.card.kind == "answer-token":
            inputs["decoder_input_ids"] = torch.full((len(rows), 1), self._start, device=self.device)
        probabilities = self._class_probabilities(self.model(**inputs).logits)
        if not self.tags_words:
            return [RowOutput(class_probabilities(self.classes, p), ()) for p in probabilities.tolist()]
        unsupported = 1 - probabilities[:, :, [i for i, kind in enumerate(self.classes) if kind == "supported"]].sum(-1)
        claims = [
            array("f", values[row.claim_start : len(row.ids) - 1]) for row, values in zip(rows, unsupported.tolist(), strict=True)
        ]
        return [RowOutput(_worst_token(claim), claim) for claim in claims]

    def _class_probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities of the classes in their order: `(rows, classes)`, for token classifiers of each token."""
        logits = logits.float()
        if self.card.kind in ("first-token", "answer-token"):
            logits = logits[:, 0]
        if self.card.kind == "answer-token":
            logits = logits[:, self._answers.to(self.device)]
        return logits.sigmoid() if len(self.classes) == 1 else logits.softmax(-1)


def class_probabilities(classes: Sequence[str], probabilities: Sequence[float]) -> Probabilities:
    """Turn the probabilities of outputs into those of the three classes; the rest of both others is neutral."""
    pairs = list(zip(classes, probabilities, strict=True))
    supported = sum((p for kind, p in pairs if kind == "supported"), 0.0)
    contradicted = sum((p for kind, p in pairs if kind == "contradicted"), 0.0)
    return Probabilities(supported, contradicted, max(0.0, 1.0 - supported - contradicted))


def _worst_token(unsupported: Iterable[float]) -> Probabilities:
    """Return the probabilities of a claim by its tokens: it is supported as far as its least supported token is."""
    worst = max(unsupported, default=None)
    return NOTHING_CLAIMED if worst is None else Probabilities(1 - worst, 0.0, worst)


def open_verifier(
    folder: Path | None = None, *, precision: Precision = "auto", threads: int | None = None, tokens: int = 4096
) -> EncoderBackend:
    """Open the verifier of a folder, the packaged one without a folder; raises ModelError where it cannot be used in process."""
    external = None if folder is None else read_external(folder)
    if folder is None or external is None:
        return EncoderBackend(folder, precision=precision, threads=threads, tokens=tokens)
    if external.card.kind == "llm-judge":
        raise ModelError(f"{folder}: a judge at an LLM server has no weights that can be opened here. {DOCS}")
    return ExternalBackend(folder, external, precision=precision, threads=threads, tokens=tokens)
