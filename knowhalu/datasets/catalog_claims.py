"""Data sets of claims and of inference."""

from collections.abc import Mapping

from knowhalu.datasets.card import CLAIM_ROWS, SUPPORT_LABELS, THREE_WAY_LABELS, DatasetCard, Layout

_PLACE = "knowhalu.datasets.special"
_EVIDENCE = Layout(("claim", "evidence", "label"), f"{_PLACE}:fever")
_NLI = (
    Layout(("premise", "hypothesis", "label"), f"{_PLACE}:NLI"),
    Layout(("sentence1", "sentence2", "gold_label"), f"{_PLACE}:NLI_GOLD"),
)
_OF_NLI = tuple(layout._replace(common=True) for layout in _NLI)
CARDS: Mapping[str, DatasetCard] = {
    "fever": DatasetCard(
        about="claims about Wikipedia; the original file names its evidence by page, so an index is needed",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(_EVIDENCE, Layout(("query", "context", "label"), f"{_PLACE}:FEVER_NLI"), CLAIM_ROWS),
        licence="CC BY-SA 3.0",
        files=("fever", "fever_dev*", "paper_dev*", "paper_test*", "shared_task_dev*"),
    ),
    "vitaminc": DatasetCard(
        about="claims against sentences of Wikipedia before and after a revision",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(
            Layout(("claim", "evidence", "label", "case_id"), f"{_PLACE}:fever"),
            _EVIDENCE._replace(common=True),
            CLAIM_ROWS,
        ),
        licence="CC BY-SA 3.0",
        files=("vitaminc*",),
    ),
    "fever-symmetric": DatasetCard(
        about="FEVER claims and evidence crossed so that the claim alone tells nothing",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(
            Layout(("claim", "evidence", "gold_label"), f"{_PLACE}:SYMMETRIC"),
            Layout(("claim", "evidence_sentence", "label"), f"{_PLACE}:SYMMETRIC_TEST"),
            CLAIM_ROWS,
        ),
        licence="CC BY-SA 3.0",
        files=("fever_symmetric*", "fever-symmetric*"),
    ),
    "fm2": DatasetCard(
        about="adversarial claims of players (Fool Me Twice) with gold evidence from Wikipedia",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(Layout(("text", "label", "gold_evidence"), f"{_PLACE}:fm2"), CLAIM_ROWS),
        licence="Apache-2.0 / CC BY-SA",
        files=("fm2*",),
    ),
    "feverous": DatasetCard(
        about="long claims of several facts with gold evidence (the sentences of FEVEROUS)",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(Layout(("claim", "gold", "evidence"), f"{_PLACE}:FEVEROUS"), CLAIM_ROWS),
        licence="MIT / CC BY-SA",
        files=("feverous*",),
    ),
    "climate-fever": DatasetCard(
        about="claims about the climate, each against sentences of Wikipedia",
        task="claim",
        labels=f"{THREE_WAY_LABELS}; disputed: hallucinated",
        layouts=(Layout(("claim", "claim_label", "evidences"), f"{_PLACE}:climate_fever"), CLAIM_ROWS),
        files=("climate*fever*",),
    ),
    "healthver": DatasetCard(
        about="claims about COVID-19 against sentences of abstracts",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(Layout(("evidence", "claim", "label", "question"), f"{_PLACE}:HEALTHVER"), CLAIM_ROWS),
        files=("healthver*",),
    ),
    "covidfact": DatasetCard(
        about="claims about COVID-19 and the same with one word substituted, against retrieved sentences",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(Layout(("claim", "label", "evidence", "gold_source"), f"{_PLACE}:fever"), CLAIM_ROWS),
        files=("covidfact*",),
    ),
    "scifact": DatasetCard(
        about="scientific claims against abstracts, one row for each cited abstract",
        task="claim",
        labels="SUPPORT: faithful; CONTRADICT, and cited without evidence: hallucinated",
        layouts=(
            Layout(
                ("claim", "evidence", "cited_doc_ids"),
                f"{_PLACE}:scifact",
                rows="knowhalu.datasets.summaries:scifact_rows",
                beside=("corpus.jsonl", "corpus.jsonl.gz"),
            ),
            CLAIM_ROWS,
        ),  # fmt: skip
        licence="CC BY 4.0 / ODC-By",
        files=("scifact*", "claims_dev*", "claims_train*"),
    ),
    "wice": DatasetCard(
        about="sentences of Wikipedia against the pages that they cite",
        task="claim",
        labels="supported: faithful; partially_supported and not_supported: hallucinated",
        layouts=(
            Layout(("claim", "evidence", "claim_tokens", "non_supported_spans", "label"), f"{_PLACE}:wice_tokens"),
            Layout(("claim", "evidence", "supporting_sentences", "label"), f"{_PLACE}:WICE"),
            CLAIM_ROWS,
        ),
        licence="CC BY-SA / ODC-BY",
        files=("wice*",),
    ),
    "cad-snli": DatasetCard(
        about="SNLI with counterfactual revisions by people",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(*_OF_NLI, CLAIM_ROWS),
        licence="Apache-2.0",
        files=("nli_cad*", "cad_snli*"),
    ),
    "control": DatasetCard(
        about="inference over long passages of reasoning tests (ConTRoL)",
        task="claim",
        labels=THREE_WAY_LABELS,
        layouts=(*_OF_NLI, CLAIM_ROWS),
        files=("nli_control*", "control*"),
    ),
    "nli": DatasetCard(
        about="any inference set with premise, hypothesis and label",
        task="claim",
        labels=f"{THREE_WAY_LABELS}; numbers as on the hub (0 entailment, 1 neutral, 2 contradiction); -, -1: left out",
        layouts=_NLI,
        files=("nli*", "snli*", "mnli*", "multinli*", "anli*"),
    ),
    "claims": DatasetCard(
        about="claim rows of your own: id, source, claim, label, and optionally label3, split",
        task="claim",
        labels=SUPPORT_LABELS,
        layouts=(CLAIM_ROWS,),
    ),
}
