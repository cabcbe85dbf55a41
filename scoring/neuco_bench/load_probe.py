"""Load the probe that is stored next to this file; it needs PyTorch only.

A probe takes embeddings that are standardized with the ``embedding_mean`` and ``embedding_std`` of ``probe.pth``. The outputs of a
regression, times its ``label_range`` plus its ``label_low``, are labels.
"""

from __future__ import annotations

from pathlib import Path

import torch


def load_probe(
    folder: Path = Path(__file__).parent, device: torch.device | str = "cpu"
) -> tuple[torch.nn.Module, str]:
    """Return the probe, ready to predict, and the type of its task."""
    checkpoint = torch.load(Path(folder) / "probe.pth", map_location=device, weights_only=True)
    state = checkpoint["state_dict"]
    probe = torch.nn.Sequential()
    for name in dict.fromkeys(key.split(".")[0] for key in state):
        outputs, inputs = state[f"{name}.weight"].shape
        probe.add_module(name, torch.nn.Linear(inputs, outputs))
        if name != "linear":
            probe.add_module(f"relu_{name}", torch.nn.ReLU())
    if checkpoint["output_dim"] == 1:
        probe.add_module("flat", torch.nn.Flatten(0))
    probe.load_state_dict(state)
    return probe.to(device).eval(), checkpoint["task_type"]
