"""Building the lexical part: for every term the rows that have it, and how often."""

import shutil
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

from knowhalu.retrieval.part import Part, PartManifest, PartWriter
from knowhalu.retrieval.passages import Rows
from knowhalu.retrieval.runs import RUN, PostingRuns, write_lists
from knowhalu.retrieval.terms import fingerprint, key, terms

MOST = 255
"""The largest count of a term in one passage that is told apart: more would not move its score by a hundredth."""
BLOCK = 4096
"""Passages whose postings are handed over together."""


def build_lexical(passages: Rows, folder: Path, content: str, *, run: int = RUN) -> PartManifest:
    """Write the lexical part of an index into `folder`; title and text of a passage are read as one.

    Memory holds one run of postings and the lengths of the passages, whatever the size of the index. The same passages
    give the same bytes, whatever `run` is.
    """
    with PartWriter(folder, "lexical") as out:
        runs = PostingRuns(out.work / "runs", run)
        lengths = np.zeros(len(passages), dtype=np.int32)
        for start in range(0, len(passages), BLOCK):
            keys, rows, counts = array("Q"), array("i"), array("B")
            for row in range(start, min(start + BLOCK, len(passages))):
                found = terms(str(passages.get(row)))
                lengths[row] = len(found)
                for term, count in Counter(found).items():
                    keys.append(key(term))
                    rows.append(row)
                    counts.append(min(count, MOST))
            runs.add(np.array(keys, dtype=np.uint64), rows, counts)
        write_lists(out, runs)
        out.add("lengths", lengths, "<i4")
        shutil.rmtree(runs.folder)
        return out.finish(content, len(passages), {"terms": fingerprint(), "tokens": int(lengths.sum(dtype=np.int64))})


def is_current(part: Part) -> bool:
    """Tell whether a part's words were cut as they are now."""
    return part.head.settings.get("terms") == fingerprint()
