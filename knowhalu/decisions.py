"""The last step of a check: a method's P(hallucinated) scaled, and the label decided anew by what it then is."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from knowhalu.types import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Kind = Literal["none", "temperature", "platt", "isotonic"]
EDGE = 1e-6
"""Probabilities nearer to 0 or 1 than this are taken to be so near, so that their log-odds are numbers."""


class Scaling(Record):
    """A curve that never falls, from a method's P(hallucinated) to one that says how often it is right.

    Temperature and Platt: sigmoid(slope x log-odds + shift), with a shift of 0 for a temperature of 1 / slope. Isotonic: straight
    lines between the points (x, y), and level outside of them.
    """

    kind: Kind = "none"
    slope: float = Field(1.0, gt=0.0)
    shift: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _rises(self) -> "Scaling":
        never_falls = all(list(v) == sorted(v) for v in (self.x, self.y))
        if len(self.x) != len(self.y) or not never_falls or (self.kind == "isotonic") != bool(self.x):
            raise ValueError("an isotonic scaling, and no other, has as many x as y, and both never fall")
        return self

    def __call__(self, probability: "ArrayLike") -> "NDArray[np.float64]":
        """Return scaled probabilities, of the shape that they are given in."""
        import numpy as np  # here, so that settings are read without it

        p = np.asarray(probability, dtype=np.float64)
        if self.kind == "none":
            return p
        if self.kind == "isotonic":
            return np.clip(np.interp(p, self.x, self.y), 0.0, 1.0)
        z = self.slope * log_odds(p) + self.shift
        return np.asarray(1 / (1 + np.exp(-np.clip(z, -700.0, 700.0))))


class Decision(Record):
    """How a verdict is decided by its scaled probability: at most `low` is faithful, over `high` hallucinated, else left open.

    Equal borders are a threshold. Without borders the method's own labels stand.
    """

    scaling: Scaling = Scaling()
    low: float | None = Field(None, ge=-1.0, le=1.0)
    high: float | None = Field(None, ge=-1.0, le=1.0)

    @model_validator(mode="after")
    def _in_order(self) -> "Decision":
        if (self.low is None) != (self.high is None) or (self.low or 0.0) > (self.high or 0.0):
            raise ValueError("low and high are given together, and low is not over high")
        return self

    @property
    def changes(self) -> bool:
        """Tell whether anything is scaled or decided at all."""
        return self.scaling.kind != "none" or self.low is not None

    def says(self, scaled: float) -> bool | None:
        """Tell whether a scaled probability means a hallucination; None where it is left open. There must be borders."""
        low, high = self.low or 0.0, self.high or 0.0
        return True if scaled > high else False if scaled <= low else None


def log_odds(p: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the natural log-odds of probabilities, cut off at `EDGE`."""
    import numpy as np

    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.asarray(np.log(inside / (1 - inside)))
