"""Pages that speak as the players of other sites do, and write down what they are told."""

from __future__ import annotations

_PAGE = """<!doctype html><title>Player</title><pre id="log"></pre><script>
const log = (...said) => (document.getElementById("log").textContent += said.join(" ") + "\\n");
const state = { time: 0, playing: false };
const asked = new URL(location.href);
setInterval(() => state.playing && (state.time += 0.25), 250);
%s
</script>"""

#: https://www.youtube-nocookie.com/embed/… with enablejsapi=1: it answers nobody who has not said "listening".
YOUTUBE = (
    _PAGE
    % """
let greeted = false;
state.time = Number(asked.searchParams.get("start") ?? 0);
const page = asked.searchParams.get("origin");
const say = (event, info) =>
  parent.postMessage(JSON.stringify({ event, info, id: "nexus", channel: "widget" }), page);
const now = (playerState) => ({ currentTime: state.time, duration: 48, playerState });
const deliver = () => say("infoDelivery", now(state.playing ? 1 : 2));
addEventListener("message", ({ data, origin }) => {
  if (origin !== page) return;
  const message = JSON.parse(data);
  if (message.event === "listening" && !greeted) {
    greeted = true;
    say("initialDelivery", now(-1));
    say("onReady", null);
    setInterval(deliver, 250);
  }
  if (message.event !== "command") return;
  const [value] = message.args;
  ({
    playVideo: () => { state.playing = true; log("play"); },
    pauseVideo: () => { state.playing = false; log("pause"); },
    seekTo: () => { state.time = value; log("seek", value); },
    setPlaybackRate: () => log("speed", value),
    setVolume: () => log("volume", value),
  })[message.func]?.();
  deliver();
});
"""
)

#: https://player.vimeo.com/video/…: it says "ready", and tells only what it was asked to tell.
VIMEO = (
    _PAGE
    % """
const wanted = new Set();
const say = (message) => parent.postMessage(JSON.stringify(message), "*");
const tell = (event) => wanted.has(event) && say({ event, data: { seconds: state.time, duration: 48, percent: 0 } });
say({ event: "ready" });
setInterval(() => state.playing && tell("timeupdate"), 250);
addEventListener("message", ({ data }) => {
  const { method, value } = JSON.parse(data);
  ({
    ping: () => say({ method: "ping" }),
    addEventListener: () => wanted.add(value),
    play: () => { state.playing = true; log("play"); tell("play"); },
    pause: () => { state.playing = false; log("pause"); tell("pause"); },
    setCurrentTime: () => { state.time = value; log("seek", value); tell("seeked"); },
    setPlaybackRate: () => log("speed", value),
    setVolume: () => log("volume", value),
  })[method]?.();
});
"""
)
