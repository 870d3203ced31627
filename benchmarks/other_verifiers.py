#!/usr/bin/env python
"""Speed of external verifiers: every architecture that is read, at its published size with random weights.

The pairs are those that the pipeline asks for drawn rows of the evaluation files. Each architecture is measured in turn with the
packaged verifier, so that their ratio does not depend on what else the machine does. All use the tokenizer of the packaged
verifier, so the same text has as many tokens for all; a template adds its own.
"""

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from common import make_parser, write_results
from encoder_speed import draw_pairs, rounds, spread, timed
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.external import open_verifier
from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.io.verifier_file import VERIFIER_FILE

BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
MODERN = {"hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12, "intermediate_size": 1152, "vocab_size": 50368}
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "pad_token_id": 1}
DEBERTA = {
    "vocab_size": 128100, "relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
}  # fmt: skip
T5 = {"d_kv": 64, "feed_forward_proj": "gated-gelu", "vocab_size": 32128}
SEQUENCE, TOKENS = "AutoModelForSequenceClassification", "AutoModelForTokenClassification"


class Architecture(NamedTuple):
    """A published verifier: its class and shape in transformers, and its card; `prefix` is that of the weights' names."""

    kind: str
    model: str
    shape: dict[str, Any]
    card: str
    outputs: int = 2
    prefix: str = ""


ARCHITECTURES = {
    "NLI, BERT base": Architecture("bert", SEQUENCE, BASE, 'labels = ["supported", "neutral", "contradicted"]', 3),
    "MiniCheck, RoBERTa large": Architecture(
        "roberta", SEQUENCE, LARGE | ROBERTA, 'preset = "minicheck-roberta"\ntemplate = "{premise}[SEP]{claim}"'
    ),
    "MiniCheck, DeBERTa-v3 large": Architecture("deberta-v2", SEQUENCE, LARGE | DEBERTA, 'preset = "minicheck-deberta"'),
    "FactCG, DeBERTa-v3 large": Architecture("deberta-v2", SEQUENCE, LARGE | DEBERTA, 'preset = "factcg"'),
    "MiniCheck, Flan-T5 large": Architecture(
        "t5", "AutoModelForSeq2SeqLM", T5 | {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_heads": 16},
        'preset = "minicheck-flan-t5"\nanswers = ["0", "1"]\ntemplate = "predict: {premise}[SEP]{claim}"',
    ),
    "HHEM-2.1-open, Flan-T5 base": Architecture(
        "t5", TOKENS, T5 | {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12}, 'preset = "hhem-2.1-open"',
        prefix="t5.",
    ),
    "AlignScore, RoBERTa large": Architecture(
        "roberta", SEQUENCE, LARGE | ROBERTA, 'labels = ["supported", "neutral", "contradicted"]\nwindow = 190', 3
    ),
    "LettuceDetect, ModernBERT base": Architecture("modernbert", TOKENS, MODERN, 'preset = "lettucedetect"'),
}  # fmt: skip


def write_folder(folder: Path, architecture: Architecture) -> int:
    """Write a model with random weights and return the number of its parameters."""
    import transformers
    from safetensors.torch import load_file, save_file
    from transformers.initialization import no_init_weights

    config = transformers.AutoConfig.for_model(architecture.kind, num_labels=architecture.outputs, **architecture.shape)
    with no_init_weights():
        model = getattr(transformers, architecture.model).from_config(config, dtype=torch.bfloat16)
    model.tie_weights()
    with torch.inference_mode():
        for tensor in model.parameters():
            tensor.normal_(std=0.02)
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    if architecture.prefix:
        save_file({architecture.prefix + name: tensor.clone() for name, tensor in load_file(path).items()}, path)
    tokenizer = Tokenizer.from_file(str(PACKAGED_VERIFIER / "tokenizer.json"))
    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / VERIFIER_FILE).write_text(architecture.card + "\n", encoding="utf-8")
    return sum(tensor.numel() for tensor in model.parameters())


def measured(args: Any) -> Iterator[dict[str, Any]]:
    """Measure every architecture with the packaged verifier, round by round."""
    packaged = EncoderBackend(threads=args.threads)
    pairs = draw_pairs(args.data, packaged, 200, args.seed)
    few = spread(packaged, pairs, args.pairs)
    yield {"pairs": len(few), "median_tokens": statistics.median(len(w.tokens.ids) for w in packaged._window_rows(few))}
    for name, architecture in ARCHITECTURES.items():
        if args.only and args.only not in name:
            continue
        folder = Path(tempfile.mkdtemp())
        try:
            parameters = write_folder(folder, architecture)
            other = open_verifier(folder, threads=args.threads)
        finally:
            shutil.rmtree(folder)
        ways: dict[str, Callable[[], float]] = {
            "packaged": timed(packaged, lambda: packaged.score(few), len(few)),
            "other": timed(other, lambda other=other: other.score(few), len(few)),
        }
        rates = rounds(ways, args.rounds)
        ratios = [ours / theirs for ours, theirs in zip(rates["packaged"], rates["other"], strict=True)]
        row = {"name": name, "parameters": parameters, "pairs_per_second": statistics.median(rates["other"]),
               "packaged_pairs_per_second": statistics.median(rates["packaged"]), "ratio": statistics.median(ratios),
               "least": min(ratios), "most": max(ratios)}  # fmt: skip
        print(f"{name}: {row['pairs_per_second']:.2f} pairs/s, packaged x {row['ratio']:.0f}", flush=True)
        yield row


def markdown(result: dict[str, Any]) -> str:
    """Return the table with its explanation."""
    lines = [
        f"{result['pairs']} pairs that the pipeline asks for, median {result['median_tokens']:.0f} tokens,",
        f"{result['rounds']} rounds, threads: {result['threads']}, {result['precision']} on {result['device']}, random weights.",
        "",
        "| verifier, architecture | parameters | pairs/s | the packaged verifier is faster by (least, most) |",
        "|---|---:|---:|---:|",
    ]
    for row in result["architectures"]:
        times = f"{row['ratio']:.1f} ({row['least']:.1f}, {row['most']:.1f})"
        lines.append(f"| {row['name']} | {row['parameters'] / 1e6:.0f}M | {row['pairs_per_second']:.1f} | {times} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "other_verifiers.json", "data")
    parser.add_argument("--pairs", type=int, default=16, help="pairs, a multiple of 4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="measure the architectures whose name has this text")
    parser.add_argument("--threads", type=int, help="threads of all; one, where others use the cores too")
    args = parser.parse_args()
    first, *rows = measured(args)
    packaged = EncoderBackend(threads=args.threads)
    result = {
        **first, "rounds": args.rounds, "seed": args.seed, "threads": torch.get_num_threads(), "device": packaged.device.type,
        "precision": str(next(packaged.model.parameters()).dtype).removeprefix("torch."), "architectures": rows,
    }  # fmt: skip
    write_results(args.out, result, markdown(result))
    print(markdown(result), end="")


if __name__ == "__main__":
    main()
