"""How speech becomes text: captions, transcripts that feeds and pages name, and models that listen.

Whatever the source, a transcript is a list of cues. Cues become paragraphs, chapters become headings, and every
paragraph keeps the times of its words.
"""

from nexus.extract.transcript import UNTIMED, Cue, Transcript

__all__ = ["UNTIMED", "Cue", "Transcript"]
