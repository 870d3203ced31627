"""The plan of a build: exact for small sources, scaled by bytes from a sample of large ones."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from knowhalu.cli.index import index
from knowhalu.errors import InputError, SettingsError
from knowhalu.index import plan
from knowhalu.index.build import build_index
from knowhalu.index.manifest import Chunking
from knowhalu.index.plan import bytes_per_vector, estimate_faiss_seconds, measure_embedding_rate, plan_build
from knowhalu.ingest.sources import DocumentReader
from tests.support.indexing import WordEmbedder

SENTENCE = "The river by town number {} carries {} barrels of water to the sea. "


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no sample end early because the machine is busy."""
    monkeypatch.setattr(plan, "MAX_SAMPLING_SECONDS", float("inf"))


def write(path: Path, count: int) -> Path:
    """Write so many documents of 130 words."""
    texts = ("".join(SENTENCE.format(f"{i:06}", n) for n in range(10)) for i in range(count))
    rows = ({"id": f"{i:06}", "title": f"T{i:06}", "text": text} for i, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_plan_of_a_small_source_is_exact(tmp_path: Path, words: WordEmbedder) -> None:
    """Documents and passages are those of the build; the disk is right within a tenth."""
    path = write(tmp_path / "x.jsonl", 300)
    made = plan_build(DocumentReader(path), words, Chunking(words=50))
    built = build_index(DocumentReader(path), tmp_path / "index", words, chunking=Chunking(words=50))
    assert (made.exact, made.documents, made.passages) == (True, built.counts.documents, built.counts.passages)
    disk = sum(entry.size for entry in built.files.values())
    assert abs(made.disk - disk) < 0.1 * disk
    assert made.rate > 0 and made.embedding == pytest.approx(made.passages / made.rate) and made.searching == 0


def test_a_large_source_is_sampled_and_scaled(tmp_path: Path, words: WordEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each format by its own bytes; a tenth of the documents is read."""
    monkeypatch.setattr(plan, "MAX_SAMPLED_DOCUMENTS", 40)
    write(tmp_path / "x.jsonl", 500)
    for i in range(100):
        (tmp_path / f"{i:03}.txt").write_text("One short text.")
    made = plan_build(DocumentReader(tmp_path), words, Chunking(words=50))
    assert not made.exact and made.sampled < 100
    assert made.documents == pytest.approx(600, rel=0.02) and made.passages == pytest.approx(500 * 4 + 100, rel=0.02)
    whole = plan_build(DocumentReader(tmp_path), words, Chunking(words=50), exact=True)
    assert (whole.exact, whole.documents, whole.passages, whole.sampled) == (True, 600, 2100, 600)


def test_sampling_stops_after_the_time_limit(tmp_path: Path, words: WordEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read by then must do."""
    monkeypatch.setattr(plan, "MAX_SAMPLING_SECONDS", -1.0)
    made = plan_build(DocumentReader(write(tmp_path / "x.jsonl", 500)), words, Chunking())
    assert made.sampled < 10 and made.documents == pytest.approx(500, rel=0.5)


def test_broken_records_are_counted_and_no_documents_are_an_error(tmp_path: Path, words: WordEmbedder) -> None:
    """A plan does not stop at a broken record unless it is exact and asked to."""
    path = write(tmp_path / "x.jsonl", 3)
    path.write_text(path.read_text() + "broken\n")
    assert plan_build(DocumentReader(path), words, Chunking()).problems == 1
    with pytest.raises(InputError, match=r"x\.jsonl:4"):
        plan_build(DocumentReader(path), words, Chunking(), exact=True)
    path.write_text("broken\n")
    with pytest.raises(InputError, match="contain no document"):
        plan_build(DocumentReader(path), words, Chunking())


def test_disk_memory_and_time_depend_on_the_factory(tmp_path: Path, words: WordEmbedder) -> None:
    """It is asked with the number of passages; numbers may be stored in half the bytes."""
    path = write(tmp_path / "x.jsonl", 20)
    asked: list[int] = []

    def factory(count: int) -> str:
        asked.append(count)
        return "HNSW32"

    flat, graph = (
        plan_build(DocumentReader(path), words, Chunking()),
        plan_build(DocumentReader(path), words, Chunking(), factory=factory),
    )
    half = plan_build(DocumentReader(path), words, Chunking(), number_bytes=2)
    assert asked == [flat.passages] and graph.factory == "HNSW32"
    assert graph.disk - flat.disk == flat.passages * (4 * 32 + 8 * 32) and graph.searching > 0
    assert flat.disk - half.disk == flat.passages * 2 * 32


@pytest.mark.parametrize(
    ("factory", "size"),
    [("Flat", 1536), ("SQ8", 384), ("IVF1024,PQ48", 48 + 2 + 8), ("IVF1024,SQ8", 384 + 2 + 8), ("HNSW32", 1792),
     ("PCA64,HNSW16,SQ8", 64 + 128)],
)  # fmt: skip
def test_bytes_per_vector_match_faiss(factory: str, size: int) -> None:
    """Codes, numbers and links; an unknown factory is refused with a remedy."""
    assert bytes_per_vector(factory, 384) == size
    with pytest.raises(SettingsError, match="factory 'Nonsense': FAISS cannot build it for 384 dimensions"):
        bytes_per_vector("Nonsense", 384)


def test_estimated_time_grows_with_the_number_of_passages() -> None:
    """Only comparing needs no structure."""
    assert estimate_faiss_seconds("Flat", 10**7, 384) == 0
    assert estimate_faiss_seconds("IVF4096,PQ48", 10**8, 384) > estimate_faiss_seconds("IVF4096,PQ48", 10**6, 384) > 0


def test_the_rate_is_measured_on_all_texts_or_long_enough(words: WordEmbedder) -> None:
    """More are embedded as long as the clock shows too little."""
    measure_embedding_rate(words, [f"text {i}" for i in range(100)], seconds=1e9)
    assert [len(call) for call in words.calls] == [8, 16, 32, 64, 100]


def test_the_commands_print_the_plan_and_build_nothing(tmp_path: Path) -> None:
    """In words, as JSON, and by the flag of the build."""
    path = write(tmp_path / "x.jsonl", 5)

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(index, [str(a) for a in arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    shown = run("plan", path, "--words", 50, "--overlap", 12)
    assert "documents  5\n" in shown and "all sources were read" in shown and "passages per second" in shown
    assert json.loads(run("plan", path, "--json", "--factory", "HNSW32"))["factory"] == "HNSW32"
    assert "documents  5\n" in run("build", path, "--out", tmp_path / "index", "--plan")
    assert not (tmp_path / "index").exists()
    assert "XML dump of Wikipedia" in run("build", "--help") and "psgs_w100.tsv" in run("plan", "--help")


def test_a_build_reports_skipped_records(tmp_path: Path) -> None:
    """Reasons are counted, and the options of the sources reach the reader."""
    (tmp_path / "a.html").write_text("<script>x</script>")
    (tmp_path / "b.html").write_text("<p>Text that is visible.")
    (tmp_path / "c.xlsx").write_text("no")
    done = CliRunner().invoke(index, ["build", str(tmp_path), "--out", str(tmp_path / "index"), "--workers", "1"])
    assert "1 left out: HTML page without visible text" in done.output and "1 left out: files of other kinds" in done.output
    done = CliRunner().invoke(index, ["build", str(tmp_path), "--out", str(tmp_path / "i"), "--overlap", "100"])
    assert isinstance(done.exception, InputError) and "overlap of 100 words" in str(done.exception)
    done = CliRunner().invoke(index, ["build", str(tmp_path / "b.html"), "--out", str(tmp_path / "i"), "--format", "doc"])
    assert isinstance(done.exception, InputError) and "the format 'doc' is unknown" in str(done.exception)
