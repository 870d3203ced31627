"""Data sets of answers, replies and other texts that a language model generated."""

from collections.abc import Mapping

from knowhalu.datasets.card import ANSWER_PAIRS, CLAIM_ROWS, PAIR_LABELS, DatasetCard, Layout

_HALUEVAL, _DIALOGUES, _SPANS = "knowhalu.datasets.mapping", "knowhalu.datasets.special", "knowhalu.datasets.spans"
_JUDGED = "no: faithful; yes: hallucinated"
CARDS: Mapping[str, DatasetCard] = {
    "halueval-qa": DatasetCard(
        about="HaluEval's answers to HotpotQA questions, one right and one generated wrong for each",
        task="qa",
        labels=PAIR_LABELS,
        layouts=(ANSWER_PAIRS, Layout(("question", "answer", "hallucination"), f"{_HALUEVAL}:LABELLED_ANSWERS")),
        licence="MIT",
        files=("qa_data*", "halueval_qa*"),
        pairs=True,
        derived="HaluEval",
    ),
    "halueval-dialogue": DatasetCard(
        about="HaluEval's replies in OpenDialKG dialogues, one right and one generated wrong for each",
        task="dialogue",
        labels=PAIR_LABELS,
        layouts=(
            Layout(
                ("knowledge", "dialogue_history", "right_response", "hallucinated_response"),
                f"{_DIALOGUES}:HALUEVAL_DIALOGUE_PAIRS",
            ),
            Layout(("knowledge", "dialogue_history", "response", "hallucination"), f"{_DIALOGUES}:LABELLED_DIALOGUES"),
        ),
        licence="MIT",
        files=("dialogue_data*", "halueval_dial*"),
        pairs=True,
        derived="HaluEval",
    ),
    "halueval-general": DatasetCard(
        about="ChatGPT's answers to user queries, judged by people; no sources, so an index is needed",
        task="qa",
        labels=_JUDGED,
        layouts=(Layout(("user_query", "chatgpt_response", "hallucination"), f"{_SPANS}:halueval_general"),),
        licence="MIT",
        files=("general_data*", "halueval_general*"),
        derived="HaluEval",
    ),
    "knowhalu-qa": DatasetCard(
        about="the KnowHalu paper's sample of HaluEval's answers, with its validation split",
        task="qa",
        labels=PAIR_LABELS,
        layouts=(ANSWER_PAIRS,),
        licence="MIT (HaluEval)",
        files=("knowhalu_qa*",),
        pairs=True,
        derived="HaluEval",
    ),
    "ragtruth": DatasetCard(
        about="responses of six models to QA, summary and data-to-text prompts, wrong characters marked by people",
        task="rag",
        labels="no marked characters: faithful; any: hallucinated",
        layouts=(
            Layout(
                ("source_id", "response", "labels", "model"),
                f"{_SPANS}:ragtruth",
                rows="knowhalu.datasets.summaries:ragtruth_rows",
                beside=("source_info.jsonl", "source_info.jsonl.gz"),
            ),
            Layout(("query", "context", "output", "hallucination_labels"), f"{_SPANS}:ragtruth_processed"),
        ),  # fmt: skip
        licence="MIT",
        files=("response", "ragtruth*"),
    ),
    "felm": DatasetCard(
        about="ChatGPT's answers in five domains, marked segment by segment; no sources, so an index is needed",
        task="qa",
        labels="all segments right: faithful; any wrong: hallucinated",
        layouts=(Layout(("prompt", "response", "segmented_response", "labels"), f"{_SPANS}:felm"),),
        licence="CC BY-NC-SA 4.0",
        files=("felm*", "wk", "science", "math", "reasoning", "writing_rec"),
    ),
    "faithdial": DatasetCard(
        about="Wizard of Wikipedia replies, and the same ones edited by people to be faithful",
        task="dialogue",
        labels="the edited reply: faithful; the original one, if tagged Hallucination: hallucinated; others left out",
        layouts=(
            Layout(("utterances",), f"{_DIALOGUES}:faithdial"),
            Layout(("response", "original_response", "BEGIN", "knowledge"), f"{_DIALOGUES}:faithdial_turn"),
        ),
        licence="MIT",
        files=("faithdial*",),
        pairs=True,
    ),
    "begin": DatasetCard(
        about="replies of four dialogue models against the knowledge that they were given",
        task="dialogue",
        labels="fully attributable: faithful; not fully attributable, or generic: hallucinated",
        layouts=(Layout(("knowledge", "message", "response", "begin_label"), f"{_DIALOGUES}:BEGIN"), CLAIM_ROWS),
        licence="CC BY 4.0 / CDLA",
        files=("begin*",),
    ),
    "truthfulqa": DatasetCard(
        about="questions that people often answer wrongly, with true and false answers; no sources, so an index is needed",
        task="qa",
        labels="correct answers: faithful; incorrect answers: hallucinated",
        layouts=(
            Layout(("Question", "Correct Answers", "Incorrect Answers"), "knowhalu.datasets.special:truthfulqa_table"),
            Layout(("question", "correct_answers", "incorrect_answers"), "knowhalu.datasets.special:truthfulqa"),
            Layout(("question", "mc2_targets"), "knowhalu.datasets.special:truthfulqa_choices"),
        ),
        licence="Apache-2.0",
        files=("truthfulqa*",),
    ),
    "fave": DatasetCard(
        about="Elicit's 200 queries with abstracts; it has no responses, so put one and its label into each row",
        task="rag",
        labels="as you give them: faithful or hallucinated",
        layouts=(Layout(("query", "papers"), "knowhalu.datasets.special:fave"),),
        licence="MIT",
        files=("paper_dataset*", "fave*"),
    ),
}
