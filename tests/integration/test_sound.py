"""Sound files, decoded in a process of their own: whatever they hold, there are pieces or a clear error."""

from __future__ import annotations

import io
import os
import signal
import struct
import threading
from pathlib import Path
from typing import BinaryIO

import numpy
import pytest

from nexus.errors import (
    SoundTooLong,
    SoundUnreadable,
    TranscriptionCrashed,
    TranscriptionFailed,
    TranscriptionMemory,
    TranscriptionStopped,
)
from nexus.transcribe.sound import RATE, WIDTH, SoundPiece
from nexus.transcribe.sound import process as process_module
from nexus.transcribe.sound.process import MIB, OpenSound, SoundLimits
from nexus.transcribe.speech.local import LENGTHS
from tests.kit.parsers import gone
from tests.kit.speech import CLIP, CLIP_SECONDS, SHORT_PIECES, file_of, tone

SECONDS = 9.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def opened(folder: Path, data: bytes) -> BinaryIO:
    path = folder / "sound"
    path.write_bytes(data)
    return path.open("rb")


def pieces_in(folder: Path, data: bytes, **more: object) -> list[SoundPiece]:
    with opened(folder, data) as file, OpenSound(file, SHORT_PIECES, **more) as sound:  # type: ignore[arg-type]
        return list(sound.pieces())


def joined(pieces: list[SoundPiece]) -> numpy.ndarray:
    return numpy.frombuffer(b"".join(one.samples for one in pieces), "<i2").astype("f4") / 32768


@pytest.mark.parametrize(
    ("form", "subtype", "rate"),
    [
        ("WAV", None, 44100),
        ("WAV", "FLOAT", 8000),
        ("FLAC", None, 48000),
        ("OGG", "VORBIS", 44100),
        ("OGG", "OPUS", 48000),
        ("MP3", None, 44100),
        ("MP3", None, 22050),
    ],
)
def test_each_format_becomes_the_same_sound(folder: Path, form: str, subtype: str | None, rate: int) -> None:
    pieces = pieces_in(folder, file_of(tone(SECONDS, rate=rate), form, rate, subtype))
    assert pieces[-1].ends_ms == pytest.approx(SECONDS * 1000, abs=100)
    sound = joined(pieces)
    spectrum = numpy.abs(numpy.fft.rfft(sound))
    assert numpy.argmax(spectrum) * RATE / len(sound) == pytest.approx(220, abs=2)
    assert numpy.abs(sound).max() == pytest.approx(0.3, abs=0.05)


def test_stereo_becomes_mono(folder: Path) -> None:
    both = numpy.stack([tone(SECONDS), -tone(SECONDS)], axis=1)
    assert numpy.abs(joined(pieces_in(folder, file_of(both)))).max() < 0.001


def test_pieces_follow_each_other_and_end_where_it_is_quiet(folder: Path) -> None:
    pieces = pieces_in(folder, file_of(tone(SECONDS)))
    assert pieces[0].starts_ms == 0
    assert [one.ends_ms for one in pieces[:-1]] == [one.starts_ms for one in pieces[1:]]
    assert pieces[-1].ends_ms == SECONDS * 1000
    assert all(len(one.samples) == (one.ends_ms - one.starts_ms) * RATE * WIDTH // 1000 for one in pieces)
    assert all(800 <= one.ends_ms % 1000 <= 1000 for one in pieces[:-1])


def test_sound_without_a_pause_is_cut_nevertheless(folder: Path) -> None:
    loud = numpy.full(int(SECONDS * RATE), 0.5, "f4")
    lengths = [one.seconds for one in pieces_in(folder, file_of(loud))]
    assert all(2 <= length <= 4 for length in lengths[:-1])


def test_a_later_process_goes_on_exactly_where_a_piece_ended(folder: Path) -> None:
    data = file_of(tone(SECONDS, rate=44100), rate=44100)
    whole = pieces_in(folder, data)
    assert pieces_in(folder, data, starts_ms=whole[0].ends_ms) == whole[1:]


def test_nothing_is_left_after_the_end(folder: Path) -> None:
    assert pieces_in(folder, file_of(tone(SECONDS)), starts_ms=int(SECONDS * 1000)) == []


def test_the_length_is_known_before_the_sound_is_decoded(folder: Path) -> None:
    with CLIP.open("rb") as file, OpenSound(file, SHORT_PIECES) as sound:
        assert sound.seconds == pytest.approx(CLIP_SECONDS)


NOT_SOUND = {
    "nothing": b"",
    "a page": b"<!doctype html><title>Sign in</title>" * 100,
    "zeros": bytes(100_000),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(1000),
    "a header alone": file_of(tone(1), "WAV")[:30],
    "a playlist": b"#EXTM3U\n#EXTINF:10,\nhttp://127.0.0.1:9/secret.ts\n",
    "a list of files": b"ffconcat version 1.0\nfile /etc/passwd\n",
    "no channels": b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 0, 16000, 0, 0, 16),
}


@pytest.mark.parametrize("name", NOT_SOUND)
def test_what_is_no_sound_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(SoundUnreadable):
        pieces_in(folder, NOT_SOUND[name])


@pytest.mark.parametrize("form", ["MP3", "FLAC", "OGG", "WAV"])
def test_damaged_sound_ends_early_or_is_refused(folder: Path, form: str) -> None:
    """It never hangs, and never costs more than itself."""
    good = bytearray(file_of(tone(SECONDS), form))
    random = numpy.random.default_rng(7)
    for _ in range(3):
        data = bytearray(good)
        for place in random.integers(0, len(data), 40):
            data[place] = int(random.integers(0, 256))
        try:
            pieces = pieces_in(folder, bytes(data[: int(random.integers(len(data) // 2, len(data)))]))
        except TranscriptionFailed:
            continue
        assert sum(one.seconds for one in pieces) < 60


def test_a_small_file_that_decodes_to_days_is_refused(folder: Path) -> None:
    data = file_of(numpy.zeros(120 * RATE, "f4"))
    assert len(data) < 100_000
    limits = SoundLimits(longest_seconds=60.0)
    with opened(folder, data) as file, OpenSound(file, SHORT_PIECES, limits=limits) as sound:
        assert sound.seconds == 120.0
        with pytest.raises(SoundTooLong):
            list(sound.pieces())


def test_a_header_may_lie_about_the_length(folder: Path) -> None:
    data = bytearray(file_of(tone(SECONDS), "WAV"))
    data[4:8] = data[40:44] = b"\xff\xff\xff\x7f"
    assert pieces_in(folder, bytes(data))[-1].ends_ms == SECONDS * 1000


def test_a_process_without_memory_is_a_failure_that_may_pass(folder: Path) -> None:
    with pytest.raises((TranscriptionMemory, TranscriptionCrashed)) as raised:
        pieces_in(folder, file_of(tone(60)), limits=SoundLimits(memory_bytes=1))
    assert raised.value.transient


def test_a_process_that_uses_up_its_time_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = (
        "import sys; sys.path[:] = sys.argv[2:]\n"
        "from nexus.transcribe.sound import child\n"
        "def endless(file):\n"
        "    while True: pass\n"
        "child.decode_sound = endless; child.run_decoder()"
    )
    monkeypatch.setattr(process_module, "START", endless)
    with pytest.raises(TranscriptionCrashed):
        pieces_in(folder, b"x", limits=SoundLimits(cpu_seconds=0))


def test_a_process_that_is_killed_is_a_failure_that_may_pass(folder: Path) -> None:
    with opened(folder, file_of(tone(SECONDS))) as file, OpenSound(file, SHORT_PIECES) as sound:
        pieces = sound.pieces()
        next(pieces)
        assert sound._child is not None
        os.kill(sound._child.process.pid, signal.SIGKILL)
        with pytest.raises(TranscriptionCrashed):
            list(pieces)


def test_a_process_that_hangs_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "PIECE_SECONDS", 0.5)
    with opened(folder, file_of(tone(SECONDS))) as file, OpenSound(file, SHORT_PIECES) as sound:
        assert sound._child is not None
        pid = sound._child.process.pid
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(SoundUnreadable):
            list(sound.pieces())
    assert gone(pid)


def test_decoding_that_nobody_wants_any_more_ends_its_process(folder: Path) -> None:
    over = threading.Event()

    def watch() -> None:
        if over.is_set():
            raise TranscriptionStopped

    with opened(folder, file_of(tone(SECONDS))) as file, OpenSound(file, SHORT_PIECES, 0, watch) as sound:
        assert sound._child is not None
        pid = sound._child.process.pid
        os.kill(pid, signal.SIGSTOP)
        over.set()
        with pytest.raises(TranscriptionStopped):
            list(sound.pieces())
    assert gone(pid)


def test_the_process_has_no_network_files_or_children(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that was taken over tries all three."""
    tries = (
        "import os, socket, sys; sys.path[:] = sys.argv[2:]\n"
        "from nexus.transcribe.sound import child\n"
        "def taken_over(file):\n"
        "    got = []\n"
        "    for act in (lambda: socket.socket(), lambda: open('/etc/passwd'), lambda: os.fork()):\n"
        "        try: act(); got.append(act)\n"
        "        except OSError: pass\n"
        "    raise child.NoSound if not got else MemoryError\n"
        "child.decode_sound = taken_over; child.run_decoder()"
    )
    monkeypatch.setattr(process_module, "START", tries)
    with pytest.raises(SoundUnreadable):
        pieces_in(folder, b"x")


def test_only_one_piece_of_a_long_recording_is_in_memory(folder: Path) -> None:
    """Forty minutes take no more than the first eight, and what a piece took is given back after it."""
    silent = file_of(numpy.zeros(40 * 60 * RATE, "f4"))
    with opened(folder, silent) as file, OpenSound(file, LENGTHS) as sound:
        memory = [_memory_of(sound.process_id) for _ in sound.pieces()]
    peak = memory[-1]["VmHWM"]
    assert peak < memory[1]["VmHWM"] * 1.1
    assert max(one["VmRSS"] for one in memory) < peak - 16 * MIB


def _memory_of(process_id: int | None) -> dict[str, int]:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return {
        name: int(line.split()[1]) * 1024 for line in lines if (name := line.split(":")[0]).startswith("Vm")
    }


def test_a_file_that_is_not_at_its_beginning_is_read_whole(folder: Path) -> None:
    with opened(folder, file_of(tone(SECONDS))) as file:
        file.seek(0, io.SEEK_END)
        with OpenSound(file, SHORT_PIECES) as sound:
            assert list(sound.pieces())[-1].ends_ms == SECONDS * 1000
