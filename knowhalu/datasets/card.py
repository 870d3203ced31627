"""The card of a data set: what it is, what its labels mean, and by which fields its files are known."""

from typing import NamedTuple


class Layout(NamedTuple):
    """One form of a data set's rows: the fields that each has, and who turns one into samples.

    `load` is "module:name" of a function from a row to samples. `rows` is that of a function from a file to rows, where a row
    is put together from several files; the others are named in `beside`. A `common` layout is that of many sets: it
    says nothing of which one a file is.
    """

    fields: tuple[str, ...]
    load: str
    rows: str = "knowhalu.datasets.formats:read_dataset_rows"
    beside: tuple[str, ...] = ()
    common: bool = False


class DatasetCard(NamedTuple):
    """One data set: what it is, its task, what its labels mean here, its licence, and the forms in which it comes.

    `files` are patterns of the names under which its files lie. `split` is the field that names a row's split. A set of pairs
    has a right and a hallucinated response of each row. `derived` says of which benchmark it is made, where a figure of
    that must never stand alone.
    """

    about: str
    task: str
    labels: str
    layouts: tuple[Layout, ...]
    licence: str = "not stated"
    files: tuple[str, ...] = ()
    split: str = "split"
    pairs: bool = False
    derived: str = ""

    @property
    def near(self) -> int:
        """Return within how many words the two responses of a pair count as equally long."""
        return 6 if self.task == "summary" else 2


CLAIM_ROWS = Layout(("source", "claim", "label"), "knowhalu.datasets.special:OWN_CLAIMS", common=True)
SUMMARY_ROWS = Layout(("source", "claim", "label"), "knowhalu.datasets.summaries:OWN_SUMMARIES", common=True)
"""The claim rows of this project: a source, a claim, and the label "supported" or "unsupported"."""
SUMMARY_PAIRS = Layout(
    ("document", "right_summary", "hallucinated_summary"), "knowhalu.datasets.mapping:HALUEVAL_SUMMARY_PAIRS", common=True
)
ANSWER_PAIRS = Layout(
    ("question", "right_answer", "hallucinated_answer"), "knowhalu.datasets.mapping:HALUEVAL_ANSWER_PAIRS", common=True
)
SUPPORT_LABELS = "supported: faithful; unsupported: hallucinated"
THREE_WAY_LABELS = "supported or entailed: faithful; refuted or contradicted, and neutral or not enough information: hallucinated"
PAIR_LABELS = "the right response: faithful; the hallucinated one: hallucinated"
