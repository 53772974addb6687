# ruff: noqa: PLC0415 the limits are set before the libraries are loaded
"""What runs in the process of an embedding model: it embeds one text after the other.

One at a time, because that is as fast as in batches, takes less memory, and gives a text the same vector whatever else
is embedded: in a batch, all texts share one scale for their 8-bit numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus.inference.child import (
    ChildLimits,
    LoadedModel,
    Loading,
    WrongModel,
    is_about_memory,
    limit_memory,
    require_whole,
    serve_model,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
#: What a model may ask for: the tokens, which of them are not padding, and which sentence each belongs to.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
#: An answer begins with its outcome and the tokens that it took. The vector follows.
ANSWER = struct.Struct("<BI")
DONE, FAILED, NOT_FINITE = 0, 1, 3


class ModelOrder(NamedTuple):
    """Which model to load, and what it may take."""

    folder: str
    #: The SHA-256 of each file that must be as it was.
    digests: Mapping[str, str]
    most_tokens: int
    #: Beyond what Python and its libraries have mapped.
    memory_bytes: int
    niceness: int
    idle_seconds: float
    text_seconds: float


def run_child() -> None:
    """Never returns."""
    serve_model(_understand)


def _understand(facts: dict[str, Any]) -> Loading:
    order = ModelOrder(**facts)
    limits = ChildLimits(order.niceness, order.idle_seconds, order.text_seconds)
    return Loading(limits, partial(_loaded, order))


def _loaded(order: ModelOrder) -> LoadedModel:
    model = OnnxModel(order)
    return LoadedModel(partial(_answer, model), {"dimension": model.embed("x").size})


def _answer(model: OnnxModel, text: bytes) -> bytes:
    """Whatever a library raises becomes an answer, except MemoryError: after that the process is of no more use."""
    try:
        vector = model.embed(text.decode())
    except ArithmeticError:
        return ANSWER.pack(NOT_FINITE, 0)
    except Exception as error:
        if is_about_memory(error):
            raise MemoryError from error
        return ANSWER.pack(FAILED, 0)
    return ANSWER.pack(DONE, model.tokens) + vector.tobytes()


class OnnxModel:
    """A model and its tokenizer. Its result is one vector, or one for each token, whose mean is taken."""

    def __init__(self, order: ModelOrder) -> None:
        import numpy
        import onnxruntime
        from tokenizers import Tokenizer

        limit_memory(order.memory_bytes)
        self._numpy = numpy
        self.tokens = 0
        folder = Path(order.folder)
        require_whole(folder, order.digests)
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(order.most_tokens)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(
            str(folder / MODEL_FILE), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {
            one.name: "i4" if one.type == "tensor(int32)" else "i8" for one in self._session.get_inputs()
        }
        if unknown := sorted(set(self._inputs) - set(INPUTS)):
            raise WrongModel(f"asks for inputs that Nexus does not have: {', '.join(unknown)}")
        self._output = self._find_output()

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text. Raises ArithmeticError if the model answers with zeros or with what is not a
        number."""
        numpy = self._numpy
        encoded = self._tokenizer.encode(text)
        self.tokens = len(encoded.ids)
        values = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        given = {name: numpy.array([values[name]], dtype=kind) for name, kind in self._inputs.items()}
        (found,) = self._session.run([self._output], given)
        vector = found[0] if found.ndim == 2 else found[0].mean(axis=0)
        length = float(numpy.linalg.norm(vector.astype("<f8")))
        if not 0 < length < float("inf"):
            raise ArithmeticError
        unit: NDArray[np.float32] = (vector / length).astype("<f4")
        return unit

    def _find_output(self) -> str:
        """A vector for the whole text is better than one for each token."""
        shapes: dict[int, Any] = {len(one.shape): one.name for one in reversed(self._session.get_outputs())}
        if not shapes.keys() & {2, 3}:
            raise WrongModel("has no output of vectors")
        name: str = shapes.get(2) or shapes[3]
        return name
