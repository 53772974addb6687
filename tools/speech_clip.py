"""`python tools/speech_clip.py`: makes the speech that tests transcribe, with espeak-ng, a package of Debian.

It reads tests/kit/sounds/lighthouse.txt aloud and writes lighthouse.opus beside it. Both are in the repository, so
this is needed only if the text changes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import soundfile
import soxr

SOUNDS = Path(__file__).parents[1] / "tests" / "kit" / "sounds"
RATE = 16_000
#: The higher, the smaller the file: 17 kbit/s.
COMPRESSION = 0.95


def main() -> None:
    text, clip = SOUNDS / "lighthouse.txt", SOUNDS / "lighthouse.opus"
    with tempfile.TemporaryDirectory() as folder:
        spoken = Path(folder, "spoken.wav")
        command = ["espeak-ng", "-v", "en-us", "-s", "150", "-f", str(text), "-w", str(spoken)]
        if subprocess.run(command, check=False).returncode:  # noqa: S603
            sys.exit("espeak-ng failed. On Debian: apt-get install espeak-ng")
        samples, rate = soundfile.read(spoken, dtype="float32")
    sound = soxr.resample(samples, rate, RATE)
    soundfile.write(clip, sound, RATE, format="OGG", subtype="OPUS", compression_level=COMPRESSION)
    print(f"{clip.name}: {len(sound) / RATE:.1f} s, {clip.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
