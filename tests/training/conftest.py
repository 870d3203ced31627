"""A tiny base model and tiny training files."""

import gzip
import json

import pytest
import torch
from safetensors.torch import save_file

from knowhalu.encoder.bert import _WEIGHT_NAMES, Bert, BertShape
from knowhalu.training.data_files import text_key
from knowhalu.training.recipes import (
    ANSWERS_FILE,
    CLAIMS_FILE,
    INFERENCE_FILE,
    INVENTED_FILE,
    MIX_FILE,
    MODEL_PAIRS_FILE,
    PASSAGE_ANSWERS_FILE,
    PASSAGES_FILE,
    PLAIN_FILE,
    SCIFACT_FILE,
    SQUAD_FILE,
    SYNTHETIC_PAIRS_FILE,
    WICE_TOKENS_FILE,
    WIKIPEDIA_FILE,
)
from tests.support.tiny import VOCABULARY, write_tokenizer

SHAPE = BertShape(vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
SENTENCES = [
    "The {n} bridge over the river was opened in 18{n:02d} by the city of Rome.",
    "It is {n} metres long and was rebuilt after the flood of 19{n:02d}.",
    "In March, about {n} hundred people walked across it before the first train came.",
]


def document(n):
    return " ".join(s.format(n=n) for s in SENTENCES)


def rows(count=60):
    """Make rows of every training file."""
    labels = ["supported", "contradicted", "neutral", "unsupported"]
    mix = [
        {"set": s, "source": document(i), "claim": f"The {i} bridge was opened.", "label": labels[i % 4]}
        for i in range(count)
        for s in ("nli_cad_snli", "fever_dev_claims")
    ]
    pairs = [
        {
            "dataset": "xsum",
            "document": document(i),
            "right_summary": f"A bridge of {i} metres was opened in Rome.",
            "hallucinated_summary": f"A bridge of {i + 100} metres was opened in Rome.",
        }
        for i in range(count)
    ]
    articles = [{"doc_id": f"w{i}", "title": f"Bridge {i}", "text": document(i)} for i in range(count)]
    claims = [
        {
            "document": document(i),
            "claims": [{"text": f"It is {i} metres long.", "label": "supported", "support": [f"It is {i} metres"]}],
        }
        for i in range(count)
    ]
    answers = [
        {
            "knowledge": document(i), "question": "When was the bridge opened?",
            "answers": [{"text": f"18{i:02d}", "label": "correct"}, {"text": "Long ago", "label": "off_target"}],
        }
        for i in range(count)
    ]  # fmt: skip
    marked = [
        {
            "source": document(i), "claim": f"The {i} bridge was closed.", "label": "unsupported", "label3": "partial",
            "claim_tokens": ["The", str(i), "bridge", "was", "closed", "."],
            "non_supported": [False, False, False, False, True, False],
        }
        for i in range(count)
    ]  # fmt: skip
    passages = [
        {
            "id": f"p{i}", "of": text_key(document(i)), "start": 0, "end": len(SENTENCES[0].format(n=i)),
            "claims": [{"text": f"Rome opened bridge {i}.", "label": "supported", "wrong": None}],
        }
        for i in range(count)
    ]  # fmt: skip
    replies = [{"text": t, "label": s, "wrong": w} for t, s, w in (("Rome", "supported", None), ("Pisa", "contradicted", "Pisa"))]
    named = ("id", "of", "start", "end")
    asked = [{**{k: row[k] for k in named}, "question": "Who opened it?", "answers": replies} for row in passages]
    return {
        MIX_FILE: mix,
        SYNTHETIC_PAIRS_FILE: pairs,
        MODEL_PAIRS_FILE: pairs,
        WIKIPEDIA_FILE: articles,
        CLAIMS_FILE: claims,
        INFERENCE_FILE: claims,
        INVENTED_FILE: claims,
        ANSWERS_FILE: answers,
        WICE_TOKENS_FILE: marked,
        PASSAGES_FILE: passages,
        PLAIN_FILE: passages,
        PASSAGE_ANSWERS_FILE: asked,
        SCIFACT_FILE: articles[:5],
        SQUAD_FILE: articles[:5],
    }


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name, found in rows().items():
        (folder / name).parent.mkdir(exist_ok=True)
        with gzip.open(folder / name, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)
    return folder


def library_name(name):
    """Translate a weight name of ours into the library's."""
    parts = name.split(".")
    leaf, short = parts[-1], parts[-2]
    inner = parts[0] == "layers"
    known = [k for k, v in _WEIGHT_NAMES.items() if v == short and k.startswith("embeddings") != inner]
    return f"encoder.layer.{parts[1]}.{known[0]}.{leaf}" if inner else f"{known[0]}.{leaf}"


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    save_file({library_name(k): v for k, v in Bert(SHAPE).state_dict().items()}, folder / "model.safetensors")
    sizes = {k: getattr(SHAPE, k) for k in SHAPE.__dataclass_fields__}
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **sizes}))
    write_tokenizer(folder)
    return folder
