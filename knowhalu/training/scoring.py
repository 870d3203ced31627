"""What a verifier says of training examples, read in the shapes of its training."""

from collections.abc import Sequence

import torch
from torch import Tensor

from knowhalu.encoder.device import mixed
from knowhalu.encoder.verifier import Tokens, Verifier, Vocabulary
from knowhalu.training.batches import BUCKETS, tokenize
from knowhalu.training.examples import UNSUPPORTED, Example


@torch.inference_mode()
def probabilities(model: Verifier, vocabulary: Vocabulary, examples: Sequence[Example]) -> Tensor:
    """Score examples as a training reads them, in its fixed shapes: `(examples, 3)`, the three classes."""
    rows: list[Tokens] = tokenize(list(examples), vocabulary)
    device = next(model.parameters()).device
    found = torch.zeros(len(rows), 3)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    for start in range(0, len(rows), 16):
        part = order[start : start + 16]
        length = next(size for size, _ in BUCKETS if size >= len(rows[part[-1]].ids))
        tensors = (t.to(device) for t in vocabulary.batch([rows[i] for i in part], length))
        with mixed(device):
            logits = model(*tensors)
        found[part] = logits.float().softmax(-1).cpu()
    return found


def met(probability: Tensor, target: int) -> float:
    """Return the probability of a target; that of UNSUPPORTED is of either class."""
    return float(probability[1:].sum() if target == UNSUPPORTED else probability[target])
