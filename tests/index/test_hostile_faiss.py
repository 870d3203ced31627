"""Crafted FAISS files are refused, or searched within their bounds."""

import subprocess
import sys
from pathlib import Path

import pytest

from knowhalu.index.build import build_index
from tests.support.indexing import WordEmbedder, records, same_paths


@pytest.mark.parametrize("factory", ["IVF2,SQ8", "IVF2,PQ4x1", "HNSW4"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_faiss_files_are_refused_or_searched_within_bounds(tmp_path: Path, words: WordEmbedder, factory: str) -> None:
    """Huge counts anywhere in a FAISS file with a matching manifest neither crash nor allocate without bound."""
    build_index(records(), tmp_path / "index", words, factory=factory)
    (path,) = (tmp_path / "index").glob("search-*.faiss")
    done = subprocess.run([sys.executable, "-c", HOSTILE, path], env=same_paths(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused or read\n"), done.stderr[-2000:]


HOSTILE = """
import resource, struct, sys
from pathlib import Path
import numpy as np
from knowhalu.errors import IndexFormatError
from knowhalu.index.faiss_file import FaissFile
from knowhalu.index.manifest import SearchParameters

path, none, query = Path(sys.argv[1]), np.zeros(0, np.int64), np.ones((1, 32), np.float32)
FaissFile(path, 12, 32, none)
resource.setrlimit(resource.RLIMIT_AS, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 2**32,) * 2)
data = path.read_bytes()
places = [*range(0, min(len(data), 400), 3), *range(400, len(data) - 8, 97)]
for place in places:
    for number in (2**62, 2**40, -1):
        broken = bytearray(data)
        struct.pack_into("<q", broken, place, number)
        path.write_bytes(broken)
        try:
            FaissFile(path, 12, 32, none).candidates(query, 12, SearchParameters())
        except IndexFormatError:
            pass
print("refused or read")
"""
