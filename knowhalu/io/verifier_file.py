"""External verifiers: what `verifier.toml` says about a folder, presets for published models, and what can be told without one.

This module reads small files only; weights are read by `knowhalu.encoder.external`.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, ValidationError, model_validator

from knowhalu.errors import ModelError
from knowhalu.types import Record

VERIFIER_FILE = "verifier.toml"
PRESETS_FILE = Path(__file__).with_name("verifier_presets.toml")
DOCS = "See docs/guide/verifiers.md"
VerifierKind = Literal["sequence-classification", "first-token", "answer-token", "token-classification", "llm-judge"]
OutputClass = Literal["supported", "contradicted", "neutral", "unsupported"]
Template = str | tuple[str, str]
"""One text, or the two texts of a pair, with {premise}, {claim} and {question}."""
CLASS_BY_LABEL: Mapping[str, OutputClass] = {
    **dict.fromkeys(
        "entailment entailed entails supported supports support consistent aligned faithful factual".split(), "supported"
    ),
    **dict.fromkeys("contradiction contradicted contradicts contradictory refuted refutes refute".split(), "contradicted"),
    **dict.fromkeys("neutral not_enough_info not_enough_information nei".split(), "neutral"),
    **dict.fromkeys(
        "unsupported not_supported not_entailment not_entailed non_entailment inconsistent not_consistent unfaithful "
        "hallucinated hallucination".split(),
        "unsupported",
    ),
}  # fmt: skip
"""The class of an output by the name that a model's config.json gives it."""


class VerifierCard(Record):
    """How a verifier is read; the fields of `verifier.toml`."""

    preset: str = Field("", description="published model whose fields are taken over where this file has none")
    about: str = ""
    kind: VerifierKind = Field("sequence-classification", description="what the model outputs")
    layout: Literal["transformers", "hhem", "alignscore"] = Field("transformers", description="names of the weights")
    model: Path | None = Field(None, description="folder of the model's files, relative to this file; unset: that of this file")
    fitted: Path | None = Field(None, description="folder of judgment.json and other fitted files; unset: that of this file")
    template: Template = Field(("{premise}", "{claim}"), description="text, or pair of texts, that the model reads")
    question_template: Template | None = Field(None, description="as template, for an answer to a question")
    labels: tuple[OutputClass, ...] = Field((), description="classes of the outputs, in order; unset: those of config.json")
    answers: tuple[str, ...] = Field((), description="tokens or words whose probabilities are read, in the order of labels")
    max_length: int | None = Field(None, ge=32, description="tokens that the model reads at most; unset: those of its positions")
    window: int = Field(120, ge=20, description="words of a window of a longer source")
    threshold: float = Field(0.5, gt=0, lt=1, description="P(supported) from which a claim is supported, without judgment.json")
    system: str = Field("", description="system prompt of a judge")
    style: Literal["auto", "chat", "completion"] = Field("auto", description="API that a judge's server is called by")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        labels = self.labels
        if labels and "supported" not in labels:
            raise ValueError('labels: one must be "supported"')
        if len(labels) == 2 and "contradicted" in labels:
            raise ValueError('labels: two outputs do not distinguish contradicted from neutral; write "unsupported"')
        if self.kind in ("answer-token", "llm-judge") and (len(self.answers) != len(labels) or len(labels) < 2):
            raise ValueError(f"kind {self.kind!r} needs answers, and a label for each of them")
        if self.kind in ("first-token", "token-classification") and len(labels) < 2:
            raise ValueError(f"kind {self.kind!r} needs labels")
        pair = not isinstance(self.template, str) and not isinstance(self.question_template, str)
        if self.kind == "token-classification" and not (pair and all(t[1] == "{claim}" for t in self.templates)):
            raise ValueError('a token classifier needs a template of two texts, of which the second is "{claim}"')
        if self.kind == "llm-judge" and not all(isinstance(t, str) for t in self.templates):
            raise ValueError("the template of a judge is one text")
        for template in self.templates:
            text = template if isinstance(template, str) else "".join(template)
            if text.count("{premise}") != 1 or text.count("{claim}") != 1:
                raise ValueError("template: it must have {premise} and {claim}, once each")
        return self

    @property
    def templates(self) -> list[Template]:
        """Return the template, and that with a question."""
        return [self.template, self.with_question]

    @property
    def with_question(self) -> Template:
        """Return the template of an answer; without one of its own, the question is put before the claim."""
        if self.question_template is not None:
            return self.question_template
        if isinstance(self.template, str):
            return self.template.replace("{claim}", "{question} {claim}")
        first, second = self.template
        if self.kind == "token-classification":  # the second text is tagged: the claim alone
            return first.replace("{premise}", "{premise}\n{question}"), second
        return first.replace("{claim}", "{question} {claim}"), second.replace("{claim}", "{question} {claim}")

    @property
    def reading(self) -> str:
        """Return as JSON what decides the probabilities, without places of files."""
        return self.model_dump_json(exclude={"preset", "about", "model", "fitted", "threshold"})

    def toml(self) -> str:
        """Return the card as the content of a `verifier.toml`, with all fields of its preset."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"preset"})
        return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())


class ExternalVerifier(NamedTuple):
    """An external verifier: its card, the folder of its model's files, and that of the files fitted to it."""

    card: VerifierCard
    model: Path
    fitted: Path


@cache
def presets() -> Mapping[str, dict[str, Any]]:
    """Return the fields of every preset by its name."""
    return tomllib.loads(PRESETS_FILE.read_text(encoding="utf-8"))


def read_external(folder: Path) -> ExternalVerifier | None:
    """Describe a folder that holds an external verifier; None for one that `scripts/train_verifier.py` wrote.

    `verifier.toml` lies in the folder, or beside it with the folder's name as `model`. Without one, a folder is recognised
    where its `config.json` names a sequence classifier or HHEM. Raises ModelError where a file cannot be used.
    """
    for place in (folder, folder.parent):
        if (place / VERIFIER_FILE).is_file():
            found = _read_card(place / VERIFIER_FILE)
            if place == folder or found.model.resolve() == folder.resolve():
                return found
    if "head.weight" in tensor_names(folder / "model.safetensors"):
        return None
    config = _config(folder)
    if config.get("model_type") == "HHEMv2":
        return ExternalVerifier(_card({"preset": "hhem-2.1-open"}, folder / "config.json"), folder, folder)
    if any(str(name).endswith("ForSequenceClassification") for name in config.get("architectures") or ()):
        return ExternalVerifier(VerifierCard(), folder, folder)
    return None


def _read_card(path: Path) -> ExternalVerifier:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot read the file ({error}). {DOCS}") from error
    card, home = _card(data, path), path.parent
    return ExternalVerifier(card, home / (card.model or ""), home / (card.fitted or ""))


def _card(data: Mapping[str, Any], path: Path) -> VerifierCard:
    name = data.get("preset", "")
    if name and name not in presets():
        raise ModelError(f"{path}: unknown preset {name!r}. Known: {', '.join(presets())}")
    try:
        return VerifierCard.model_validate({**presets().get(name, {}), **data})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        problem = f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")
        raise ModelError(f"{path}: {problem}. {DOCS}") from error


def _config(folder: Path) -> dict[str, Any]:
    """Return a folder's config.json; empty where it cannot be read, which is reported where the model is loaded."""
    try:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def tensor_names(path: Path) -> frozenset[str]:
    """Return the names of the tensors in a safetensors file; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return frozenset(json.loads(file.read(min(size, 100_000_000))))
    except (OSError, ValueError, TypeError):
        return frozenset()


def distinguishes_contradictions(folder: Path) -> bool:
    """Tell whether the verifier of a folder has an output for contradictions; raises ModelError where its labels tell nothing."""
    external = read_external(folder)
    if external is None:
        return True
    if external.card.labels:
        return "contradicted" in external.card.labels
    names = _config(external.model).get("id2label") or {}
    return "contradicted" in output_classes([str(names[i]) for i in sorted(names, key=int)], external.model / "config.json")


def output_classes(names: Sequence[str], path: Path) -> tuple[OutputClass, ...]:
    """Return the classes of outputs by their names in config.json; raises ModelError where a name tells none."""
    found: list[OutputClass] = []
    for name in names:
        kind = CLASS_BY_LABEL.get(re.sub(r"[^a-z]+", "_", name.lower()).strip("_"))
        if kind is None:
            example = 'labels = ["supported", "neutral", "contradicted"]'
            raise ModelError(
                f"{path}: the label {name!r} does not tell whether it means supported. Write the classes of the outputs, in "
                f"their order, into {VERIFIER_FILE}: {example}. {DOCS}"
            )
        found.append(kind)
    if len(found) == 2:
        found = ["unsupported" if kind != "supported" else kind for kind in found]
    if "supported" not in found:
        raise ModelError(f"{path}: no label of {', '.join(names)} means supported. Write `labels` into {VERIFIER_FILE}. {DOCS}")
    return tuple(found)
