# ruff: noqa: PLC0415 the limits are set before the libraries are loaded
"""What runs in a model's process: it loads the model, then embeds one text after the other.

One at a time, because that is as fast as in batches, takes less memory, and gives a text the same vector whatever else
is embedded: in a batch, all texts share one scale for their 8-bit numbers. The process has an empty environment, no
network if the kernel allows, and a limit on memory. It ends when its socket closes, when nobody has asked for a while,
and when a text takes far too long. Nothing is imported from Nexus that it doesn't need.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus.embed import frames

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_FILE, TOKENIZER_FILE = "model.onnx", "tokenizer.json"
#: What a model may ask for: the tokens, which of them are no padding, and which sentence they are of.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
#: How many files may be open, how large a file it may write, and whether its memory is dumped if it crashes.
LIMITS = ((resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0))
#: How many times the time for a text may pass before the process ends itself, in case nobody else does.
GRACE = 2
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000


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


class WrongModel(Exception):
    """The model can't be used. The text says why, and continues the sentence "The model …"."""


def run_child() -> None:
    """Never returns."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for Nexus, which closes the socket in its own time
    line = socket.socket(fileno=int(sys.argv[1]))
    code = 0
    try:
        order = ModelOrder(**json.loads(frames.read_frame(line)))
        _give_up_rights(order)
        model = _load(line, order)
        while model is not None:
            _serve_text(line, model, order)
    except (EOFError, TimeoutError, OSError):
        pass  # Nexus is gone, or has had nothing to do for a while
    except MemoryError:
        code = frames.OUT_OF_MEMORY
    finally:
        os._exit(code)


def encode_facts(facts: dict[str, object]) -> bytes:
    return json.dumps(facts).encode()


def _give_up_rights(order: ModelOrder) -> None:
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # before the server
    os.nice(order.niceness)
    if sys.platform == "linux":
        unshare = getattr(ctypes.CDLL(None), "unshare", None)
        if unshare is not None:
            unshare(_NEW_NETWORK if os.geteuid() == 0 else _NEW_USERS | _NEW_NETWORK)
    for what, most in LIMITS:
        _set_limit(what, most)


def _set_limit(what: int, most: int) -> None:
    """A container may have set a lower one already."""
    held = resource.getrlimit(what)[1]
    wanted = most if held == resource.RLIM_INFINITY else min(most, held)
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (wanted, wanted))


def _load(line: socket.socket, order: ModelOrder) -> OnnxModel | None:
    try:
        model = OnnxModel(order)
        dimension = model.embed("x").size
    except MemoryError:
        raise
    except WrongModel as error:
        frames.write_frame(line, encode_facts({"wrong": str(error)}))
        return None
    except Exception as error:
        if _is_about_memory(error):
            raise MemoryError from error
        frames.write_frame(line, encode_facts({"wrong": f"can't be loaded ({type(error).__name__})"}))
        return None
    frames.write_frame(line, encode_facts({"dimension": dimension}))
    return model


def _serve_text(line: socket.socket, model: OnnxModel, order: ModelOrder) -> None:
    text = frames.read_frame(line, time.monotonic() + order.idle_seconds).decode()
    signal.setitimer(signal.ITIMER_REAL, GRACE * order.text_seconds)
    frames.write_frame(line, _answer(model, text))
    signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(model: OnnxModel, text: str) -> bytes:
    """Whatever a library raises becomes an answer, except MemoryError: after that the process is good for nothing."""
    try:
        vector = model.embed(text)
    except ArithmeticError:
        return frames.ANSWER.pack(frames.NOT_FINITE, 0)
    except Exception as error:
        if isinstance(error, MemoryError) or _is_about_memory(error):
            raise MemoryError from error
        return frames.ANSWER.pack(frames.FAILED, 0)
    return frames.ANSWER.pack(frames.DONE, model.tokens) + vector.tobytes()


def _is_about_memory(error: Exception) -> bool:
    """onnxruntime has no class of its own for this."""
    return any(word in str(error) for word in ("bad_alloc", "allocate memory", "bad allocation"))


class OnnxModel:
    """A model and its tokenizer. Its result is one vector, or one for each token, whose mean is taken."""

    def __init__(self, order: ModelOrder) -> None:
        import numpy
        import onnxruntime
        from tokenizers import Tokenizer

        self._limit_memory(order.memory_bytes)
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
        """Return the vector of a text. Raises ArithmeticError if the model makes no numbers of it."""
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

    @staticmethod
    def _limit_memory(most: int) -> None:
        """Only Linux says how much is mapped."""
        with suppress(OSError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            _set_limit(resource.RLIMIT_AS, pages * resource.getpagesize() + most)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises WrongModel if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WrongModel(f"is not whole: {path.name} can't be read") from error


def require_whole(folder: Path, digests: Mapping[str, str]) -> None:
    """Raises WrongModel if a file is not what it was."""
    for name, digest in digests.items():
        if file_digest(folder / name) != digest:
            raise WrongModel(f"has changed: {name} is not what it was")
