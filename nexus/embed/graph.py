# ruff: noqa: PLC0415 onnx is there only while a model is made
"""Writes all-MiniLM-L6-v2 as an ONNX model, from its weights alone, and makes it small.

Pooling and norm are part of the graph, so that it answers with finished vectors. Weights become 8-bit numbers with a
scale for each channel. They are unsigned: processors without VNNI add products of signed ones in 16 bits, which
overflow. One product keeps its precision, since its inputs have outliers that 8 bits can't hold; docs/decisions/0042
has the figures.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAYERS, HEADS, SIZE = 6, 12, 384
OPSET, IR_VERSION = 20, 9
EPSILON = 1e-12
#: Added to the score of padding, so that nothing is taken from it.
NEVER = 10_000.0
KEPT_WHOLE = "encoder.layer.0.output.dense"
_HEAD = struct.Struct("<Q")

Weights = dict[str, "NDArray[np.float32]"]


def read_weights(path: Path) -> Weights:
    """Read a safetensors file: the length of a JSON head, the head, and the numbers. Tensors that are not floats are
    left out: they only count positions."""
    raw = path.read_bytes()
    (length,) = _HEAD.unpack_from(raw)
    start = _HEAD.size + length
    head = json.loads(raw[_HEAD.size : start])
    return {
        name: np.frombuffer(
            raw[start + about["data_offsets"][0] : start + about["data_offsets"][1]], "<f4"
        ).reshape(about["shape"])
        for name, about in head.items()
        if name != "__metadata__" and about["dtype"] == "F32"
    }


class GraphWriter:
    """Collects the nodes of a graph. Each method adds some, and returns the name of their result."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: object, kind: type = np.float32) -> str:
        # Not ascontiguousarray: it turns a number into a list of one.
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.array(value, dtype=kind, order="C"), name))
        return name

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: object) -> str:
        from onnx import helper

        result = name or f"{kind}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=result, **attributes))
        return result

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def dense(self, x: str, name: str) -> str:
        turned = self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self.op("Add", self.op("MatMul", x, turned, name=name), self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=EPSILON)

    def words(self) -> str:
        """Embed each token by its word and its position."""
        zero, one = self.constant("zero", 0, np.int64), self.constant("one", 1, np.int64)
        places = self.op("Range", zero, self.op("Gather", self.op("Shape", "input_ids"), one), one)
        word = self.op("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        place = self.op("Gather", self.weight("embeddings.position_embeddings.weight"), places)
        first = self.constant("type", self.weights["embeddings.token_type_embeddings.weight"][0])
        return self.norm(self.op("Add", self.op("Add", word, place), first), "embeddings.LayerNorm")

    def layer(self, x: str, number: int, bias: str) -> str:
        name = f"encoder.layer.{number}"
        seen = self._attention(x, f"{name}.attention.self", bias)
        x = self.norm(
            self.op("Add", self.dense(seen, f"{name}.attention.output.dense"), x),
            f"{name}.attention.output.LayerNorm",
        )
        wide = self.op("Gelu", self.dense(x, f"{name}.intermediate.dense"))
        return self.norm(
            self.op("Add", self.dense(wide, f"{name}.output.dense"), x), f"{name}.output.LayerNorm"
        )

    def _attention(self, x: str, name: str, bias: str) -> str:
        query, key, value = (
            self.op("Transpose", self.op("Reshape", self.dense(x, f"{name}.{part}"), "split"), perm=order)
            for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        scores = self.op("Add", self.op("Mul", self.op("MatMul", query, key), "scale"), bias)
        seen = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        return self.op("Reshape", self.op("Transpose", seen, perm=[0, 2, 1, 3]), "merge")

    def pool(self, x: str, mask: str) -> str:
        """The mean of the tokens that are not padding, scaled to a length of one."""
        tokens = self.constant("tokens", [1], np.int64)
        counted = self.op("Unsqueeze", mask, self.constant("last", [2], np.int64))
        total = self.op("ReduceSum", self.op("Mul", x, counted), tokens, keepdims=0)
        mean = self.op("Div", total, self.op("ReduceSum", counted, tokens, keepdims=0))
        return self.op("LpNormalization", mean, name="embedding", axis=-1, p=2)


def write_graph(weights: Weights, path: Path) -> None:
    """Write the model as it was published, with numbers of 32 bits."""
    import onnx
    from onnx import TensorProto, helper

    made = GraphWriter(weights)
    for name, shape in {
        "split": [0, 0, HEADS, SIZE // HEADS],
        "merge": [0, 0, SIZE],
        "heads": [1, 2],
    }.items():
        made.constant(name, shape, np.int64)
    made.constant("scale", (SIZE // HEADS) ** -0.5)
    mask = made.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = made.op("Sub", made.op("Unsqueeze", mask, "heads"), made.constant("all", 1.0))
    bias = made.op("Mul", padding, made.constant("never", NEVER))
    x = made.words()
    for number in range(LAYERS):
        x = made.layer(x, number, bias)
    made.pool(x, mask)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", SIZE])]
    graph = helper.make_graph(made.nodes, "all-MiniLM-L6-v2", inputs, outputs, made.constants)
    opsets = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION), path)


def quantize(whole: Path, small: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        whole,
        small,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        weight_type=QuantType.QUInt8,
        nodes_to_exclude=[KEPT_WHOLE],
    )


def mean_cosine(whole: Path, small: Path, tokenizer: Path, samples: Sequence[str]) -> float:
    """Compare the two on some sentences, and return the mean cosine of the pairs of vectors."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(tokenizer))
    words.no_padding()
    sessions = [InferenceSession(str(path), providers=["CPUExecutionProvider"]) for path in (whole, small)]
    found = []
    for sample in samples:
        ids = np.array([words.encode(sample).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        first, second = (session.run(None, given)[0][0] for session in sessions)
        found.append(float(first @ second))
    return sum(found) / len(found)
