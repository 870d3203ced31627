"""Forms of this project, for rows of a user's own."""

from collections.abc import Mapping

from knowhalu.datasets.card import ANSWER_PAIRS, PAIR_LABELS, SUMMARY_PAIRS, DatasetCard, Layout

_WRITTEN = "knowhalu.datasets.summaries"
CARDS: Mapping[str, DatasetCard] = {
    "written-claims": DatasetCard(
        about="invented documents with claims; the wrong characters and the error type of each are known",
        task="claim",
        labels="supported: faithful; contradicted and not_in_source: hallucinated",
        layouts=(Layout(("document", "claims"), f"{_WRITTEN}:written_claims"),),
        licence="this project's",
        files=("written_claims*",),
    ),
    "written-answers": DatasetCard(
        about="invented knowledge and questions with right, fabricated and off-target answers and refusals",
        task="qa",
        labels="correct and refusal: faithful; fabricated and off_target: hallucinated",
        layouts=(Layout(("knowledge", "question", "answers"), f"{_WRITTEN}:written_answers"),),
        licence="this project's",
        files=("written_answers*",),
    ),
    "qa-pairs": DatasetCard(
        about="questions with a right and a hallucinated answer each, and knowledge if there is some",
        task="qa",
        labels=PAIR_LABELS,
        layouts=(ANSWER_PAIRS,),
        pairs=True,
    ),
    "summary-pairs": DatasetCard(
        about="documents with a right and a hallucinated summary each",
        task="summary",
        labels=PAIR_LABELS,
        layouts=(SUMMARY_PAIRS,),
        pairs=True,
    ),
    "samples": DatasetCard(
        about="rows as knowhalu detect takes them, each with its label",
        task="any",
        labels="faithful (also correct, right, supported, no, 0, false) or hallucinated",
        layouts=tuple(
            Layout((name, "label"), f"{_WRITTEN}:own_sample", common=True) for name in ("response", "answer", "summary", "claim")
        ),
    ),
}
