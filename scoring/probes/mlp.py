"""Non-linear probes: one or two hidden layers (paper Appendix B.3.3).

The paper does not give the widths of its decoders, only their sizes: about 170 and 464 times the linear probe's parameters. The default
widths give these ratios for embeddings of 1,024 dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from scoring.engines import ignore
from scoring.errors import OrganizerError
from scoring.probes.probe import (
    PARAMETERS,
    ProbeInput,
    ProbeSettings,
    Training,
    TrainingParameters,
    checked_parameters,
)

WIDTHS = {1: (170,), 2: (400, 162)}


class MlpProbe:
    """A network with hidden layers and ReLU, trained like the linear probe; PyTorch is imported when training begins.

    Args:
        settings: The linear probe's parameters, and ``hidden_layers`` (1 or 2; default 1) or ``hidden_widths`` (a list); ``device`` may be
            a GPU.
    """

    name = "mlp"

    def __init__(self, settings: ProbeSettings) -> None:
        params = checked_parameters(
            settings.params, self.name, (*PARAMETERS, "hidden_layers", "hidden_widths")
        )
        self._settings = settings
        self._parameters = TrainingParameters.from_params(params)
        self._hidden = _widths(params)
        self._device = str(params.get("device") or "cpu")

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return self._hidden

    def train(
        self,
        data: ProbeInput,
        *,
        folds: int,
        details: bool = False,
        progress: Callable[[int], None] = ignore,
    ) -> Training:
        """See :meth:`scoring.probes.probe.Probe.train`."""
        from scoring.probes.torch_loop import train_folds

        results = train_folds(
            data,
            self._parameters,
            hidden=self._hidden,
            folds=folds,
            settings=self._settings,
            details=details,
            progress=progress,
            device=_usable(self._device),
        )
        return Training(
            folds=results, hyperparameters={**vars(self._parameters), "hidden_widths": list(self._hidden)}
        )

    def parameters(self, dim: int, outputs: int) -> int:
        """Count weights and biases of all layers."""
        return sum((inputs + 1) * width for inputs, width in pairwise((dim, *self._hidden, outputs)))

    def multiply_accumulates(self, dim: int, outputs: int) -> int:
        """Count one operation per weight."""
        return sum(inputs * width for inputs, width in pairwise((dim, *self._hidden, outputs)))


def _widths(params: dict[str, object]) -> tuple[int, ...]:
    widths = params.get("hidden_widths")
    if widths is None:
        layers = params.get("hidden_layers", 1)
        if layers in WIDTHS and not isinstance(layers, bool):
            return WIDTHS[int(str(layers))]
        raise OrganizerError(
            f"probe_params.hidden_layers is {layers!r}, not 1 or 2.",
            cure="For other networks set probe_params.hidden_widths, such as [256, 64].",
            code="probe.bad_parameter",
        )
    if (
        not isinstance(widths, (list, tuple))
        or not 1 <= len(widths) <= 8
        or not all(isinstance(width, int) and not isinstance(width, bool) and width > 0 for width in widths)
    ):
        raise OrganizerError(
            f"probe_params.hidden_widths is {widths!r}, not a list of one to eight positive whole numbers.",
            cure="Write it like [256] or [256, 64].",
            code="probe.bad_parameter",
        )
    return tuple(widths)


def _usable(device: str) -> str:
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # a torch without CUDA raises AssertionError
        raise OrganizerError(
            f"probe_params.device {device!r} cannot be used here.",
            cure="Set it to cpu or auto.",
            code="probe.device",
        ) from error
    return device
