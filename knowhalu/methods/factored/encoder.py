"""The encoder as reasoner of Factored Verification: claims by text rules, P(supported) by the small verifier."""

import json
from collections.abc import Sequence
from pathlib import Path

from knowhalu.errors import ModelError
from knowhalu.io.fitted_files import check_fitted_weights, fitted_folder
from knowhalu.io.verifier_file import read_external
from knowhalu.methods.common.combine import COMBINATION_RULES, DEFAULT_CALIBRATION, CombinationCalibration
from knowhalu.methods.knowhalu.encoder import EntailmentJudge
from knowhalu.requests import Conversation
from knowhalu.text.clauses import claims_nothing, split_clauses
from knowhalu.text.sentences import Span
from knowhalu.types import Claim, Judgment, Passage, Sample


class FactoredEncoder:
    """Answer with the small verifier; needs no LLM and no GPU."""

    def __init__(self, folder: Path) -> None:
        """Load the weights and the fitted thetas; raises ModelError where a file of the verifier cannot be used."""
        self.entailment = EntailmentJudge(folder)
        self.standard = load_combination_calibration(folder)

    def claims(self, sample: Sample, spans: Sequence[Span]) -> Conversation[list[tuple[Claim, ...]]]:
        """Split sentences into clauses where rules can do it safely; questions and refusals claim nothing."""
        yield from ()
        return [
            () if claims_nothing(s.text, answers=sample.question is not None)
            else tuple(Claim(start=s.start + c.start, end=s.start + c.end, text=c.text) for c in split_clauses(s.text))
            for s in spans
        ]  # fmt: skip

    def supported(self, part: Sample, passages: Sequence[Passage], of: int) -> Conversation[Judgment]:
        """Judge one claim; as an answer to the question only where it is the whole answer."""
        if of > 1:
            part = part.model_copy(update={"question": None})
        return (yield from self.entailment.judge(part, passages))


def load_combination_calibration(folder: Path) -> CombinationCalibration:
    """Load the thetas of a verifier, those of a model nobody fitted for an external verifier without them; raises ModelError."""
    path = fitted_folder(folder) / "factored.json"
    if read_external(folder) is not None and not path.is_file():
        return DEFAULT_CALIBRATION
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        calibration = CombinationCalibration(
            {rule: float(data["thetas"][rule]) for rule in COMBINATION_RULES}, float(data["typical"]), float(data["reference"])
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: cannot read the thetas of Factored Verification ({error}); "
                         "fit them with scripts/fit_theta.py") from error  # fmt: skip
    check_fitted_weights(path, data, "scripts/fit_theta.py", folder)
    if not (all(0 <= t <= 1 for t in calibration.thetas.values()) and 0 < calibration.typical <= 1 and calibration.reference > 0):
        raise ModelError(f"{path}: thetas and typical support must be probabilities; fit them with scripts/fit_theta.py")
    return calibration
