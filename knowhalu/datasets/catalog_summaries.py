"""Data sets of summaries."""

from collections.abc import Mapping

from knowhalu.datasets.card import PAIR_LABELS, SUMMARY_PAIRS, SUMMARY_ROWS, DatasetCard, Layout

_PLACE = "knowhalu.datasets.summaries"
CARDS: Mapping[str, DatasetCard] = {
    "halueval-summarization": DatasetCard(
        about="HaluEval's summaries of CNN/DailyMail, one right and one generated wrong for each",
        task="summary",
        labels=PAIR_LABELS,
        layouts=(
            SUMMARY_PAIRS,
            Layout(("document", "summary", "hallucination"), "knowhalu.datasets.mapping:LABELLED_SUMMARIES"),
        ),
        licence="MIT",
        files=("summarization_data*", "halueval_summ*"),
        pairs=True,
        derived="HaluEval",
    ),
    "knowhalu-summarization": DatasetCard(
        about="the KnowHalu paper's sample of HaluEval's summaries, with its validation split",
        task="summary",
        labels=PAIR_LABELS,
        layouts=(SUMMARY_PAIRS,),
        licence="MIT (HaluEval)",
        files=("knowhalu_summ*",),
        pairs=True,
        derived="HaluEval",
    ),
    "summeval": DatasetCard(
        about="summaries of CNN/DailyMail by 16 models, consistency rated by three experts",
        task="summary",
        labels="consistency 5 by all three experts: faithful; less: hallucinated",
        layouts=(
            Layout(("decoded", "expert_annotations"), f"{_PLACE}:summeval"),
            Layout(("text", "machine_summaries", "consistency"), f"{_PLACE}:summeval_table"),
            SUMMARY_ROWS,
        ),
        licence="MIT",
        files=("summeval*", "model_annotations*"),
    ),
    "qags": DatasetCard(
        about="sentences of CNN/DailyMail and XSum summaries, three votes each",
        task="summary",
        labels="most votes yes: faithful; otherwise hallucinated",
        layouts=(Layout(("article", "summary_sentences"), f"{_PLACE}:qags"), SUMMARY_ROWS),
        files=("qags*", "mturk_cnndm*", "mturk_xsum*"),
    ),
    "factcc": DatasetCard(
        about="sentences of CNN/DailyMail summaries, judged by people; pair them with their articles first",
        task="summary",
        labels="CORRECT: faithful; INCORRECT: hallucinated",
        layouts=(Layout(("text", "claim", "label"), f"{_PLACE}:FACTCC"), SUMMARY_ROWS),
        licence="BSD-3-Clause",
        files=("factcc*", "data-dev*", "data-test*"),
    ),
    "summedits": DatasetCard(
        about="summaries of ten domains with minimal edits, validated by people",
        task="summary",
        labels="1: faithful; 0: hallucinated",
        layouts=(Layout(("doc", "summary", "label", "edit_types"), f"{_PLACE}:SUMMEDITS"), SUMMARY_ROWS),
        licence="Apache-2.0",
        files=("summedits*",),
    ),
    "aggrefact": DatasetCard(
        about="nine sets of summary annotations in one table",
        task="summary",
        labels="1: faithful; 0: hallucinated",
        layouts=(Layout(("dataset", "origin", "doc", "summary", "label"), f"{_PLACE}:AGGREFACT"),),
        files=("aggre_fact*", "aggrefact*"),
        split="cut",
    ),
    "llm-aggrefact": DatasetCard(
        about="eleven grounding sets in one table, judged by people; read the mean over its parts",
        task="claim",
        labels="1: faithful; 0: hallucinated",
        layouts=(Layout(("dataset", "doc", "claim", "label"), f"{_PLACE}:LLM_AGGREFACT"),),
        licence="CC BY-ND 4.0",
        files=("llm_aggrefact*", "llm-aggrefact*"),
    ),
    "bump": DatasetCard(
        about="CNN/DailyMail reference summaries, and the same with one minimal error written by people",
        task="summary",
        labels=PAIR_LABELS,
        layouts=(SUMMARY_PAIRS,),
        licence="MIT",
        files=("bump*",),
        pairs=True,
    ),
    "fib": DatasetCard(
        about="right and wrong summaries of the same articles, of XSum and CNN/DailyMail",
        task="summary",
        labels=PAIR_LABELS,
        layouts=(SUMMARY_PAIRS,),
        licence="CC BY 4.0",
        files=("fib*",),
        pairs=True,
    ),
}
