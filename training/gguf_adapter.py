"""A LoRA adapter of a Llama model, from PEFT's names to the GGUF that llama.cpp loads."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from torch import Tensor

from indexes.storage.atomic_files import write_file_atomically

ARCHITECTURE = "llama"
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}  # fmt: skip
Numbers = npt.NDArray[np.float16]


def write_adapter(weights: Mapping[str, Tensor], heads: Mapping[str, int], alpha: float, path: Path) -> None:
    """Write `...layers.N.self_attn.q_proj.lora_A...` and so on as `blk.N.attn_q.weight.lora_a`, in 16 bits.

    `heads` are the numbers of heads of `q_proj` and `k_proj`, whose rows llama.cpp has in another order.
    """

    def write(temporary: Path) -> None:
        writer = gguf.GGUFWriter(temporary, ARCHITECTURE)
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)
        for name, weight in weights.items():
            layer, module, side = _take_apart(name)
            numbers = weight.detach().float().numpy().astype(np.float16)
            projection = module.rpartition(".")[2]
            if side == "lora_b" and projection in heads:
                numbers = interleave(numbers, heads[projection])
            writer.add_tensor(f"blk.{layer}.{NAMES[module]}.weight.{side}", np.ascontiguousarray(numbers))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    path.parent.mkdir(parents=True, exist_ok=True)
    write_file_atomically(path, write)


def interleave(rows: Numbers, heads: int) -> Numbers:
    """The rows of each head, first and second halves in turn: llama.cpp rotates neighbours, PyTorch halves."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def _take_apart(name: str) -> tuple[int, str, str]:
    """Layer, module and side of a name such as `base_model.model.model.layers.3.mlp.up_proj.lora_A.default.weight`."""
    number, _, rest = name.partition(".layers.")[2].partition(".")
    module = next(module for module in NAMES if rest.startswith(module))
    return int(number), module, "lora_a" if ".lora_A." in rest else "lora_b"
