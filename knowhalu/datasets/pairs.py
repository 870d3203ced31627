"""Pairs of a right and a hallucinated response, as HaluEval has them, and HaluEval's rows with one response and a judgment."""

from knowhalu.datasets.mapping import Judged, Paired

ANSWERS = Paired("right_answer", "hallucinated_answer", ("knowledge",), documents=False, asked="question")
SUMMARIES = Paired("right_summary", "hallucinated_summary", ("document",), documents=True)
JUDGED_ANSWERS = Judged("answer", ("knowledge",), "hallucination", ("no",), ("yes",), asked="question", documents=False)
JUDGED_SUMMARIES = Judged("summary", ("document",), "hallucination", ("no",), ("yes",), documents=True)
