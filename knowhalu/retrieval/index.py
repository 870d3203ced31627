"""An index on disk: opened by its manifest, searched through memory maps, verified byte for byte."""

from collections.abc import Sequence
from pathlib import Path

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.base import Embedder, check_k
from knowhalu.retrieval.manifest import MANIFEST, VECTORS, Manifest, check_sizes, hash_file, read_manifest
from knowhalu.retrieval.store import PassageStore
from knowhalu.retrieval.stored import open_stored, verify_parts
from knowhalu.retrieval.vectors import open_vectors
from knowhalu.types import Passage


class FaissIndex:
    """Search the passages of an index folder by the cosine of their vectors."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self.folder, self.embedder = Path(folder), embedder
        self.manifest = read_manifest(self.folder)
        check_sizes(self.folder, self.manifest)
        check_embedder(self.folder, self.manifest, embedder)
        counts = self.manifest.counts
        self._store = PassageStore(self.folder, counts.passages, counts.documents)
        self._vectors = open_vectors(self.folder / VECTORS, embedder.dimension, counts.passages)

    @classmethod
    def open(cls, folder: Path, embedder: Embedder) -> "FaissIndex":
        """Open an index; raises IndexFormatError where it is missing, damaged or made by another embedder."""
        return cls(folder, embedder)

    def __len__(self) -> int:
        """Return the number of passages."""
        return len(self._store)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return at most `k` passages for each query, best first; none for a blank query."""
        check_k(k)
        asked = [i for i, query in enumerate(queries) if query.strip()]
        found: list[list[Passage]] = [[] for _ in queries]
        if asked:
            vectors = self.embedder.encode([queries[i] for i in asked], query=True)
            scores, rows = self._vectors.search(vectors, min(k, len(self)))
            for i, row, score in zip(asked, rows.tolist(), scores.tolist(), strict=True):
                found[i] = [self._store.get(n, s) for n, s in zip(row, score, strict=True) if n >= 0]
        return found


def check_embedder(folder: Path, manifest: Manifest, embedder: Embedder) -> None:
    """Raise IndexFormatError unless the embedder is the one that made the vectors."""
    made = manifest.embedder
    same = (made.fingerprint, made.dimension) == (embedder.fingerprint, embedder.dimension)
    if not same:
        raise IndexFormatError(
            f"{folder}: was built with the embedder {made.name!r} ({made.dimension} dimensions, {made.fingerprint[:12]}), not "
            f"with {embedder.name!r} ({embedder.dimension} dimensions, {embedder.fingerprint[:12]}). "
            f"Open it with {made.name!r}, or rebuild it with {embedder.name!r}"
        )


def read_info(folder: Path) -> Manifest:
    """Read what an index says of itself; raises IndexFormatError where there is none or a file has another size."""
    manifest = read_manifest(Path(folder))
    check_sizes(Path(folder), manifest)
    return manifest


def verify(folder: Path) -> list[str]:
    """Check every byte and count of an index folder and list what is wrong; an empty list means intact."""
    folder = Path(folder)
    try:
        manifest = read_info(folder)
    except IndexFormatError as error:
        return [str(error)]
    problems = [
        f"{folder / name}: its bytes have changed since the index was built (sha256 differs)"
        for name, entry in manifest.files.items()
        if hash_file(folder / name) != entry
    ]
    known = {MANIFEST, *manifest.files, "lexical", "late"}
    problems += [f"{path}: does not belong to the index" for path in sorted(folder.iterdir()) if path.name not in known]
    try:
        counts = manifest.counts
        problems += PassageStore(folder, counts.passages, counts.documents).problems()
        problems += verify_parts(open_stored(folder))
        open_vectors(folder / VECTORS, manifest.embedder.dimension, counts.passages)
    except IndexFormatError as error:
        problems.append(str(error))
    return problems
