"""Non-linear probes: one or two hidden layers (paper Appendix B.3.3).

The paper does not give the widths of its decoders, only their sizes: about 170 and 464 times the linear probe's parameters. The default
widths give these ratios for embeddings of 1,024 dimensions.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from scoring.probes.linear import LinearProbe, TrainingParameters
from scoring.probes.probe import ProbeSettings

WIDTHS = {1: (170,), 2: (400, 162)}


class MlpParameters(TrainingParameters):
    """The linear probe's parameters, and the hidden layers; ``device`` may be a GPU."""

    hidden_layers: Literal[1, 2] = Field(1, description="1 or 2")
    hidden_widths: list[PositiveInt] | None = Field(
        None, min_length=1, max_length=8, description="a list of one to eight whole numbers above 0"
    )


class MlpProbe(LinearProbe):
    """A network with hidden layers and ReLU, trained like the linear probe."""

    name = "mlp"
    model = MlpParameters

    def __init__(self, settings: ProbeSettings) -> None:
        super().__init__(settings)
        params = MlpParameters.model_validate(dict(settings.params))
        self.hidden = tuple(params.hidden_widths or WIDTHS[params.hidden_layers])
        self.device = params.device or "cpu"
