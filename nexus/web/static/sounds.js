// What a recording is played by: an element of the page, or the player of another site in a frame. All are spoken to
// in the same way. Nothing of another site is loaded before `load`, and no script of it ever runs in this page.
"use strict";

(() => {
  // `told` is called with what has changed: { time, length, playing, ended, problem }.

  function ofElement(element, told) {
    let wanted = null; // where to begin, as long as nothing is loaded
    const tell = (what) => element.addEventListener(what, () => told(state()));
    const state = () => ({
      time: wanted ?? element.currentTime,
      length: Number.isFinite(element.duration) ? element.duration : null,
      playing: !element.paused && !element.ended,
      ended: element.ended,
      problem: element.error !== null,
    });
    for (const what of ["timeupdate", "durationchange", "play", "playing", "pause", "ended", "seeked", "error"]) tell(what);
    element.addEventListener("loadedmetadata", () => {
      if (wanted !== null) element.currentTime = wanted;
      wanted = null;
    });
    return {
      isLoaded: () => element.readyState > 0,
      play: () => {
        if (element.error) element.load();
        return element.play();
      },
      pause: () => element.pause(),
      seek: (seconds) => {
        if (element.readyState > 0) element.currentTime = seconds;
        else wanted = seconds;
        told(state());
      },
      speed: (rate) => {
        element.defaultPlaybackRate = rate; // loading would bring back the usual one
        element.playbackRate = rate;
      },
      volume: (volume) => (element.volume = volume),
    };
  }

  // A frame is made at the first play. What it is told before it answers is kept, and said then.
  function ofFrame(stage, told, protocol) {
    const { frame: address, frameTitle } = stage.dataset;
    const { origin } = new URL(address);
    const now = { time: 0, length: null, playing: false, ended: false, problem: false };
    let frame = null;
    let answers = false;
    let kept = { seconds: null, rate: null, volume: null };

    function load() {
      frame = document.createElement("iframe");
      frame.title = frameTitle;
      frame.allow = "autoplay; fullscreen; picture-in-picture; encrypted-media";
      frame.allowFullscreen = true;
      // Sites ask where they are shown; they learn the name of this Nexus, and not the page.
      frame.referrerPolicy = "strict-origin-when-cross-origin";
      frame.sandbox = "allow-scripts allow-same-origin allow-popups allow-presentation allow-forms";
      frame.src = protocol.address(new URL(address), kept.seconds ?? 0).href;
      stage.replaceChildren(frame);
      addEventListener("message", hear);
      if (protocol.greet) greet(frame);
    }

    // Until the frame answers: it hears nothing while it is loading.
    function greet(greeted, left = 120) {
      if (answers || !left || frame !== greeted) return;
      say(protocol.greet);
      setTimeout(() => greet(greeted, left - 1), 250);
    }

    const say = (message) => frame?.contentWindow?.postMessage(message, origin);
    const command = (name, ...given) => answers && say(protocol.command(name, ...given));

    function hear(event) {
      if (event.origin !== origin || event.source !== frame?.contentWindow) return;
      const found = protocol.read(event.data);
      if (!found) return;
      if (!answers) begin();
      Object.assign(now, found);
      told({ ...now });
    }

    function begin() {
      answers = true;
      for (const message of protocol.begin ?? []) say(message);
      if (kept.seconds) command("seek", kept.seconds);
      if (kept.rate !== null) command("speed", kept.rate);
      if (kept.volume !== null) command("volume", kept.volume);
      command("play");
    }

    return {
      isLoaded: () => frame !== null,
      play: async () => (frame ? command("play") : load()),
      pause: () => command("pause"),
      seek: (seconds) => {
        kept.seconds = seconds;
        now.time = seconds;
        if (protocol.command) command("seek", seconds);
        else if (frame) frame.src = protocol.address(new URL(address), seconds).href;
        told({ ...now });
      },
      speed: (rate) => command("speed", (kept.rate = rate)),
      volume: (volume) => command("volume", (kept.volume = volume)),
    };
  }

  function parsed(data) {
    try {
      const found = typeof data === "string" ? JSON.parse(data) : data;
      return found && typeof found === "object" ? found : null;
    } catch {
      return null;
    }
  }

  const number = (value) => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined);
  // Without what was not said.
  const said = (pairs) => Object.fromEntries(Object.entries(pairs).filter(([, value]) => value !== undefined));

  const YOUTUBE = { play: "playVideo", pause: "pauseVideo", seek: "seekTo", speed: "setPlaybackRate", volume: "setVolume" };
  const VIMEO = { play: "play", pause: "pause", seek: "setCurrentTime", speed: "setPlaybackRate", volume: "setVolume" };
  const NEWS = ["play", "pause", "timeupdate", "ended", "seeked", "loaded"];

  const protocols = {
    youtube: {
      address: (url, seconds) => {
        url.searchParams.set("origin", location.origin);
        if (seconds >= 1) url.searchParams.set("start", Math.floor(seconds));
        return url;
      },
      greet: JSON.stringify({ event: "listening", id: "nexus", channel: "widget" }),
      command: (name, value) => {
        const given = { seek: [value, true], volume: [Math.round(value * 100)], speed: [value] }[name] ?? [];
        return JSON.stringify({ event: "command", id: "nexus", func: YOUTUBE[name], args: given });
      },
      read: (data) => {
        const message = parsed(data);
        if (!message || !["onReady", "initialDelivery", "infoDelivery", "onError"].includes(message.event)) return null;
        if (message.event === "onError") return { problem: true, playing: false };
        const { currentTime, duration, playerState: state } = message.info ?? {};
        return said({
          time: number(currentTime),
          length: number(duration) || undefined,
          playing: state === undefined ? undefined : state === 1 || state === 3,
          ended: state === undefined ? undefined : state === 0,
        });
      },
    },
    vimeo: {
      address: (url, seconds) => {
        if (seconds >= 1) url.hash = `t=${Math.floor(seconds)}s`;
        return url;
      },
      greet: JSON.stringify({ method: "ping" }),
      begin: NEWS.map((value) => JSON.stringify({ method: "addEventListener", value })),
      command: (name, value) => JSON.stringify(value === undefined ? { method: VIMEO[name] } : { method: VIMEO[name], value }),
      read: (data) => {
        const message = parsed(data);
        if (!message || !(message.event || message.method)) return null;
        if (message.event === "error") return {};
        const { seconds, duration } = message.data ?? {};
        return said({
          time: number(seconds),
          length: number(duration) || undefined,
          playing: { play: true, pause: false, ended: false }[message.event],
          ended: { ended: true, play: false }[message.event],
        });
      },
    },
    // It tells nothing, and begins somewhere else when it is loaded again.
    nothing: {
      address: (url, seconds) => {
        if (seconds >= 1) url.searchParams.set("start", `${Math.floor(seconds)}s`);
        url.searchParams.set("autoplay", "1");
        return url;
      },
      read: () => null,
    },
  };

  window.nexusSound = (player, told) => {
    const element = player.querySelector("#sound");
    if (element) return ofElement(element, told);
    const protocol = protocols[player.dataset.speaks];
    const stage = player.querySelector("#stage");
    return protocol && stage ? ofFrame(stage, told, protocol) : null;
  };
})();
