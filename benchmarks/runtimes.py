#!/usr/bin/env python
"""The verifier's service on other runtimes, all in turn in one run, to see whether one is worth a dependency.

Only the forward pass is exchanged; batching, windows and the pairs are the service's own. The others are not dependencies:
`pip install onnxruntime onnx onnxscript openvino` adds them, and what is missing is left out. Beside the speed stands by how much
P(supported) differs from that of float32 weights in torch.
"""

import argparse
import importlib.util
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from encoder_speed import asked, rounds, timed
from tables import write_results
from torch import Tensor

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.device import in_one_thread
from knowhalu.encoder.verifier import Verifier

NEEDED = 1.3
"""By how much a runtime must be faster than the service as it is to become an extra."""
Forward = Callable[[Tensor, Tensor, Tensor], Tensor]
REFERENCE, OURS = "torch, float32", "torch, bfloat16: the service as it is"


class Classes:
    """Any way to compute the classes, in the place of a model; words are not marked."""

    marker = None

    def __init__(self, forward: Forward) -> None:
        self.forward = forward

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Return logits."""
        return self.forward(*tensors)


def there(*modules: str) -> bool:
    """Tell whether all modules are installed."""
    return all(importlib.util.find_spec(m) for m in modules)


def example() -> tuple[Tensor, Tensor, Tensor]:
    """Make a small input for the converters."""
    return torch.ones(2, 40, dtype=torch.long), torch.ones(2, 40, dtype=torch.long), torch.zeros(2, 40, dtype=torch.long)


def onnx_file(model: Verifier, path: Path) -> Path:
    """Export float32 weights with free numbers of rows and of tokens."""
    rows, length = torch.export.Dim("rows", min=1, max=4096), torch.export.Dim("length", min=2, max=512)
    torch.onnx.export(
        model, example(), path, dynamo=True, input_names=["ids", "mask", "types"], external_data=False, verbose=False,
        dynamic_shapes=({0: rows, 1: length},) * 3,
    )  # fmt: skip
    return path


def onnx_runtime(path: Path, threads: int) -> Forward:
    """Run an exported file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return lambda *tensors: torch.from_numpy(session.run(None, {n: t.numpy() for n, t in zip(names, tensors, strict=True)})[0])


def int8(path: Path) -> Path:
    """Make int8 weights per channel, activations quantized as they come."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model, small = onnx.load(path), path.with_name("int8.onnx")
    del model.graph.value_info[:]  # the exporter leaves shapes there from before it turned the weights
    quantize_dynamic(model, small, per_channel=True, weight_type=QuantType.QInt8)
    return small


def openvino(model: Verifier, threads: int) -> Forward:
    """Convert float32 weights, to be computed in bfloat16."""
    import openvino as ov

    shape = ov.PartialShape([-1, -1])
    converted = ov.convert_model(model, example_input=example(), input=[(shape, ov.Type.i64)] * 3)
    hints = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = ov.Core().compile_model(converted, "CPU", hints)
    return lambda *tensors: torch.from_numpy(compiled([t.numpy() for t in tensors])[0].copy())


@in_one_thread
def ways(folder: Path, threads: int) -> dict[str, Forward]:
    """Return the forward pass of every runtime that is installed."""
    whole = Verifier.load(EncoderBackend().folder).requires_grad_(False)
    found: dict[str, Forward] = {REFERENCE: whole}
    if there("onnxruntime", "onnx", "onnxscript"):
        exported = onnx_file(whole, folder / "verifier.onnx")
        found["ONNX Runtime, float32"] = onnx_runtime(exported, threads)
        found["ONNX Runtime, int8 weights"] = onnx_runtime(int8(exported), threads)
    if there("openvino"):
        found["OpenVINO, bfloat16"] = openvino(whole, threads)
    return found


def markdown(result: dict[str, Any]) -> str:
    """Lay out the table."""
    lines = [
        f"{result['pairs']} pairs that the pipeline asks for, {result['rounds']} rounds, all in turn, threads: "
        f"{result['threads']}.",
        f"To become an extra, a runtime must be {NEEDED} times as fast as the service, with probabilities no further off.",
        "",
        "| runtime | pairs/s | of the service's speed (least, most) | difference of P(supported): mean | largest |",
        "|---|---|---|---|---|",
    ]
    for name, row in result["ways"].items():
        speed = f"{row['pairs_per_second']:.0f} | {row['times']:.2f} ({row['least']:.2f}, {row['most']:.2f})"
        lines.append(f"| {name} | {speed} | {row['mean_difference']:.4f} | {row['largest_difference']:.3f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--pairs", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/runtimes.json"))
    args = parser.parse_args()
    backend = EncoderBackend(precision="bf16")
    threads = torch.get_num_threads()
    pairs = asked(args.data, backend, args.pairs, args.seed)
    own: Any = backend.model

    def score(forward: Any) -> list[float]:
        backend.model = Classes(forward)  # type: ignore[assignment]
        backend.clear_cache()
        return [p.supported for p in backend.score(pairs)]

    with tempfile.TemporaryDirectory() as folder:
        found = {OURS: own, **ways(Path(folder), threads)}
        said = {name: score(forward) for name, forward in found.items()}
        rates = rounds({n: timed(backend, lambda f=f: score(f), len(pairs)) for n, f in found.items()}, args.rounds)
    result: dict[str, Any] = {"pairs": len(pairs), "rounds": args.rounds, "seed": args.seed, "threads": threads, "ways": {}}
    for name in found:
        ratios = [theirs / ours for theirs, ours in zip(rates[name], rates[OURS], strict=True)]
        gaps = [abs(a - b) for a, b in zip(said[name], said[REFERENCE], strict=True)]
        result["ways"][name] = {
            "pairs_per_second": statistics.median(rates[name]), "times": statistics.median(ratios), "least": min(ratios),
            "most": max(ratios), "mean_difference": statistics.fmean(gaps), "largest_difference": max(gaps),
        }  # fmt: skip
    write_results(args.out, result, markdown(result))
    print(markdown(result), end="")


if __name__ == "__main__":
    main()
