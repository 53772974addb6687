"""Is speech transcribed as fast as the model alone does it, and does a long recording take no more memory?

Both hear the same speech in one run, ten minutes of it, or as many as NEXUS_BENCH_SPEECH_MINUTES says: an hour takes
six times as long. The bare model runs in a process like that of Nexus, and is given the whole as one file.
Processor time is compared, because Nexus listens at low priority.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import soundfile

from bench.places import Place
from bench.scorer import NoData
from bench.table import Line
from nexus.transcribe.sound import RATE, PieceLengths
from nexus.transcribe.sound.process import OpenSound
from nexus.transcribe.speech import believable
from nexus.transcribe.speech.local import LocalSpeech, weights_folder

CLIP = Path(__file__).parents[1] / "tests" / "kit" / "sounds" / "lighthouse.opus"
MINUTES = float(os.environ.get("NEXUS_BENCH_SPEECH_MINUTES", "10"))
MOST_RATIO, MOST_GROWTH = 1.15, 1.1
HOURS, SHORT_HOURS = 10, 0.5
MIB = 1024 * 1024

BARE = """
import sys, time
from faster_whisper import WhisperModel
began = time.process_time()
model = WhisperModel(sys.argv[1], device="cpu", compute_type="int8", cpu_threads=1)
segments, _ = model.transcribe(sys.argv[2], language="en", beam_size=1, temperature=0.0, vad_filter=True,
                               condition_on_previous_text=False)
words = sum(len(one.text.split()) for one in segments)
print(time.process_time() - began, words)
"""


def ask(_: Place) -> list[Line]:
    """The memory is that of the process that decodes, over ten hours and over half an hour."""
    if importlib.util.find_spec("faster_whisper") is None:
        raise NoData("The extra is not installed. Run: make speech")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "speech.flac")
        _write(path, MINUTES)
        (bare, bare_words), (ours, words) = _bare(path), _ours(path)
        short, long = (_peak(Path(folder, "quiet.flac"), hours) for hours in (SHORT_HOURS, HOURS))
    return [
        Line(f"{MINUTES:g} min of speech", f"{ours:.1f} s", f"{bare:.1f} s", ours / bare, at_most=MOST_RATIO),
        Line("words heard in it", str(words), str(bare_words), words / bare_words),
        Line(
            f"memory over {HOURS} h, to that over {SHORT_HOURS} h",
            f"{long / MIB:.0f} MiB",
            f"{short / MIB:.0f} MiB",
            long / short,
            at_most=MOST_GROWTH,
        ),
    ]


def _write(path: Path, minutes: float) -> None:
    sound, rate = soundfile.read(CLIP, dtype="float32")
    with soundfile.SoundFile(path, "w", rate, 1) as file:
        for _ in range(max(1, round(minutes * 60 * rate / len(sound)))):
            file.write(sound)


def _bare(path: Path) -> tuple[float, int]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", BARE, str(weights_folder()), str(path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, words = ran.stdout.split()
    return float(seconds), int(words)


def _ours(path: Path) -> tuple[float, int]:
    model = LocalSpeech(300.0)
    began, words = _processor_seconds(), 0
    with path.open("rb") as file, OpenSound(file, model.lengths) as sound:
        for piece in sound.pieces():
            words += sum(len(cue.text.split()) for cue in believable(model.hear(piece.samples, "en")))
    model.close()
    return _processor_seconds() - began, words


def _processor_seconds() -> float:
    """Of this process, and of those that it has ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak(path: Path, hours: float) -> int:
    """The most memory of the process that decodes, in bytes. Nobody listens."""
    with soundfile.SoundFile(path, "w", RATE, 1) as file:
        minute = numpy.zeros(60 * RATE, "f4")
        for _ in range(int(hours * 60)):
            file.write(minute)
    peak = 0
    with path.open("rb") as file, OpenSound(file, PieceLengths(150.0, 240.0)) as sound:
        for _ in sound.pieces():
            status = Path(f"/proc/{sound.process_id}/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return peak
