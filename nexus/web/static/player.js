// The controls of a recording. Where somebody is goes to the server, for their other devices.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const asked = new URLSearchParams(location.search);
  const media = byId("reader").dataset.media;
  const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];
  const BACK = 15;
  const FORWARD = 30;
  const TELL_EVERY = 10_000;

  let player = null;
  let sound = null;
  let now = { time: 0, length: null, playing: false, ended: false, problem: false };

  // The same words as in nexus/web/views/filters.py.
  function clock(seconds) {
    const whole = Math.round(seconds);
    const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (number) => String(number).padStart(2, "0");
    return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
  }

  function inWords(seconds) {
    const whole = Math.round(seconds);
    const parts = [[Math.floor(whole / 3600), "hour"], [Math.floor(whole / 60) % 60, "minute"], [whole % 60, "second"]];
    const shown = parts.filter(([count]) => count).map(([count, name]) => `${count} ${name}${count === 1 ? "" : "s"}`);
    return shown.join(" ") || "the beginning";
  }

  // ── What a person chose, kept in this browser ──

  function recall() {
    try {
      return JSON.parse(localStorage.getItem("nexus:listening")) ?? {};
    } catch {
      return {};
    }
  }

  function keep(part) {
    try {
      localStorage.setItem("nexus:listening", JSON.stringify({ ...recall(), ...part }));
    } catch {
      // Forgetting it does no harm.
    }
  }

  // ── The player of this page. A newer version of it may take its place ──

  function prepare() {
    const found = byId("player");
    if (!found || found === player || !found.dataset.speaks) return;
    player = found;
    sound = window.nexusSound(player, hear);
    if (!sound) return;
    byId("sound")?.toggleAttribute("controls", Boolean(byId("stage")));
    document.body.classList.add("has-dock");
    now = { ...now, time: 0, length: Number(player.dataset.seconds) || null };
    const chosen = recall();
    byId("player-volume").value = chosen.volume ?? 1;
    if (chosen.volume !== undefined) sound.volume(chosen.volume);
    choose(chosen.speed ?? 1);
    const beginning = asked.has("at") ? Number(asked.get("at")) || 0 : Number(player.dataset.heard) || 0;
    now.time = beginning;
    if (beginning) sound.seek(beginning);
    show();
    document.dispatchEvent(new CustomEvent("nexus:player"));
    if (asked.has("play")) play();
  }

  function hear(state) {
    const before = now;
    now = { ...now, ...state, length: state.length ?? now.length };
    if (now.problem && !before.problem) explain();
    if (!now.problem) byId("player-problem").hidden = true;
    if (before.playing && !now.playing) tell();
    if (!before.ended && now.ended) finish();
    if (now.playing) later ||= setTimeout(tell, TELL_EVERY);
    show();
    document.dispatchEvent(new CustomEvent("nexus:sound", { detail: { ...now } }));
  }

  let dragging = false;

  function show() {
    const position = byId("player-position");
    const { time, length, playing } = now;
    player.classList.toggle("is-playing", playing);
    byId("player-toggle").setAttribute("aria-label", playing ? "Pause" : "Play");
    byId("player-length").textContent = length ? clock(length) : "–:––";
    position.disabled = !length;
    if (length) position.max = Math.ceil(length);
    if (!dragging) position.value = time;
    const shown = dragging ? Number(position.value) : time;
    byId("player-now").textContent = clock(shown);
    position.setAttribute("aria-valuetext", length ? `${inWords(shown)} of ${inWords(length)}` : inWords(shown));
    position.style.setProperty("--far", length ? `${Math.min(100, (100 * shown) / length)}%` : "0%");
    if (navigator.mediaSession) navigator.mediaSession.playbackState = playing ? "playing" : "paused";
  }

  // ── What can be done ──

  const play = () =>
    sound.play().catch((error) => {
      // A browser that wants a click first is no problem of the recording; its controls are there.
      if (error.name !== "NotAllowedError" && error.name !== "AbortError") explain();
    });

  function seek(seconds, thenPlay = false) {
    const last = now.length ?? Infinity;
    sound.seek(Math.min(Math.max(seconds, 0), Math.max(last - 0.5, 0)));
    if (thenPlay) play();
    later ||= setTimeout(tell, 1000);
  }

  function choose(speed) {
    sound.speed(speed);
    byId("player-speed").value = String(speed);
    keep({ speed });
  }

  function faster(by) {
    const next = SPEEDS[SPEEDS.indexOf(Number(byId("player-speed").value)) + by];
    if (!next) return;
    choose(next);
    byId("said").textContent = `Speed ${next}`;
  }

  const acts = {
    play,
    toggle: () => (now.playing ? sound.pause() : play()),
    back: () => seek(now.time - BACK),
    forward: () => seek(now.time + FORWARD),
  };

  // What went wrong is known to the server: the element says only that something did.
  async function explain() {
    const said = byId("player-problem");
    said.textContent = "The recording can't be played.";
    said.hidden = false;
    const address = byId("sound")?.getAttribute("src");
    if (!address) return;
    try {
      const answer = await fetch(address, { headers: { Range: "bytes=0-0", "HX-Request": "true" } });
      if (answer.ok) said.textContent = "This browser can't play this kind of recording. Open the original instead.";
      else said.textContent = new DOMParser().parseFromString(await answer.text(), "text/html").body.textContent.trim();
    } catch {
      said.textContent = "Nexus did not answer. Try again in a moment.";
    }
  }

  // ── Where the listener is ──

  let later = 0;
  let told = null;

  function tell() {
    clearTimeout(later);
    later = 0;
    if (!sound?.isLoaded() || now.time === told) return;
    told = now.time;
    const body = JSON.stringify({ seconds: Math.round(now.time * 10) / 10, at: new Date().toISOString() });
    const headers = { "Content-Type": "application/json" };
    fetch(`/items/${media}/heard`, { method: "POST", headers, body, keepalive: true }).catch(() => (told = null));
  }
  addEventListener("pagehide", tell);
  document.addEventListener("visibilitychange", () => document.hidden && tell());

  // At its end a recording leaves the queue, and the next one begins.
  async function finish() {
    tell();
    try {
      const answer = await fetch(`/listen/${media}/heard`, { method: "POST", headers: { Accept: "application/json" } });
      const { next } = answer.ok ? await answer.json() : {};
      if (next) location.assign(`/items/${next}?play`);
    } catch {
      // Offline: it stays where it is.
    }
  }

  // ── Pointer and keyboard ──

  document.addEventListener("click", (event) => {
    if (!sound) return;
    const control = event.target.closest("[data-player], [data-to]");
    if (control?.dataset.to !== undefined) seek(Number(control.dataset.to), true);
    else if (control) acts[control.dataset.player]?.();
    for (const panel of document.querySelectorAll("#chapters[open]")) {
      if (!panel.contains(event.target) || control?.dataset.to !== undefined) panel.open = false;
    }
  });

  document.addEventListener("input", ({ target }) => {
    if (!sound) return;
    if (target.id === "player-position") {
      dragging = true;
      show();
    }
    if (target.id === "player-volume") {
      sound.volume(Number(target.value));
      keep({ volume: Number(target.value) });
    }
  });

  document.addEventListener("change", ({ target }) => {
    if (!sound) return;
    if (target.id === "player-speed") choose(Number(target.value));
    if (target.id !== "player-position") return;
    dragging = false;
    seek(Number(target.value));
  });

  const keys = {
    " ": acts.toggle,
    k: acts.toggle,
    j: acts.back,
    l: acts.forward,
    ArrowLeft: acts.back,
    ArrowRight: acts.forward,
    "<": () => faster(-1),
    ">": () => faster(1),
  };

  // Before the keys of the reader. A focused button or link keeps the space bar for itself.
  document.addEventListener("nexus:key", (event) => {
    const { key } = event.detail;
    const focused = document.activeElement;
    if (!sound || !Object.hasOwn(keys, key)) return;
    if (key === " " && focused?.closest("button, a, summary, label, video, audio, input")) return;
    if (key.startsWith("Arrow") && focused?.closest("video, audio, [tabindex='0'], input")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    keys[key]();
  }, { capture: true });

  document.addEventListener("keydown", (event) => {
    const panel = event.key === "Escape" && document.querySelector("#chapters[open]");
    if (!panel) return;
    panel.open = false;
    if (panel.contains(document.activeElement)) panel.querySelector("summary").focus();
  });

  // The keys of headphones and of lock screens.
  function answerDevice() {
    const session = navigator.mediaSession;
    if (!session || !sound) return;
    session.metadata = new MediaMetadata({ title: player.dataset.title });
    const handlers = { play, pause: () => sound.pause(), seekbackward: acts.back, seekforward: acts.forward };
    for (const [name, act] of Object.entries(handlers)) session.setActionHandler(name, act);
    session.setActionHandler("seekto", ({ seekTime }) => seek(seekTime));
  }

  window.nexusPlayer = { seek, clock, time: () => now.time, isPlaying: () => now.playing };
  document.addEventListener("nexus:put", ({ detail }) => detail.id === "player" && prepare());
  prepare();
  answerDevice();
})();
