"""Recordings: videos and episodes, as things to hear and to read.

facts                 what is known about a recording, kept as soon as it is found out
own_transcripts       a transcript that a viewer brings
transcribing, speech  one attempt to hear a recording, and what is kept of it meanwhile
timings, spoken       when the words of a text are spoken
sound                 the sound, passed on to those who listen
listening, heard      what somebody wants to hear next, and how far they have heard it
"""
