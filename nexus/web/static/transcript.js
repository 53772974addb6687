// A transcript that follows its recording: a click on a sentence plays from there, and the sentence that is spoken is
// marked. Times come with each fragment: [[start, end, starts_ms, ends_ms], …], in characters of its text.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const player = window.nexusPlayer;
  const asked = new URLSearchParams(location.search);
  // How long a sentence stays marked after it has ended, if no other begins.
  const LINGERS_MS = 4000;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  // ── Sentences: where they are in the text, and when they are spoken ──

  let sentences = [];

  // The server counts characters as Python does, where an emoji is one; here it is two.
  function unitsIn(text) {
    if (!/[\ud800-\udbff]/.test(text)) return (characters) => characters;
    const units = [0];
    for (const one of text) units.push(units.at(-1) + one.length);
    return (characters) => units[Math.min(characters, units.length - 1)];
  }

  const known = new WeakMap();

  function sentencesOf(section) {
    if (known.has(section)) return known.get(section);
    const units = unitsIn(section.textContent);
    const found = JSON.parse(section.dataset.times).map(([start, end, from, until]) => ({ section, start: units(start), end: units(end), from, until }));
    known.set(section, found);
    return found;
  }

  function gather() {
    const sections = [...document.querySelectorAll("#prose > .fragment[data-times]")];
    sentences = sections.flatMap(sentencesOf);
    byId("prose")?.classList.toggle("is-spoken", sentences.length > 0 && Boolean(player));
    if (player) sections.forEach(stamp);
  }

  // The sentence that is spoken at a moment: the last that has begun, unless it ended long before.
  function spokenAt(ms) {
    let [low, high] = [0, sentences.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sentences[middle].from <= ms) low = middle + 1;
      else high = middle;
    }
    const found = sentences[low - 1];
    return found && ms < Math.max(found.until, sentences[low]?.from < found.until + LINGERS_MS ? sentences[low].from : found.until) ? found : null;
  }

  // ── Characters of a section, as places in the document ──

  function* partsOf({ section, start, end }) {
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    let at = 0;
    while (walker.nextNode() && at < end) {
      const node = walker.currentNode;
      const [begins, ends] = [Math.max(start - at, 0), Math.min(end - at, node.length)];
      if (begins < ends && node.data.slice(begins, ends).trim()) yield [node, begins, ends];
      at += node.length;
    }
  }

  function offsetIn(section, node, offset) {
    const before = document.createRange();
    before.setStart(section, 0);
    before.setEnd(node, offset);
    return before.toString().length;
  }

  function placeUnder(x, y) {
    if (document.caretPositionFromPoint) {
      const found = document.caretPositionFromPoint(x, y);
      return found && [found.offsetNode, found.offset];
    }
    const found = document.caretRangeFromPoint?.(x, y);
    return found && [found.startContainer, found.startOffset];
  }

  function sentenceUnder(event) {
    const section = event.target.closest(".fragment[data-times]");
    const place = section && placeUnder(event.clientX, event.clientY);
    if (!place || !section.contains(place[0]) || place[0].nodeType !== Node.TEXT_NODE) return null;
    const offset = offsetIn(section, ...place);
    return sentencesOf(section).find((one) => offset < one.end + 1 && offset >= one.start) ?? null;
  }

  // ── The mark ──

  let marked = null;
  let marks = [];

  function mark(sentence) {
    if (sentence === marked && marks.every((one) => one.isConnected)) return;
    for (const one of marks) {
      const { parentNode } = one;
      one.replaceWith(...one.childNodes);
      parentNode?.normalize();
    }
    marks = sentence ? [...partsOf(sentence)].map(wrap) : [];
    marks[0]?.setAttribute("aria-current", "true");
    marked = sentence;
    if (sentence && follows) reveal();
    showFollow();
  }

  function wrap([node, begins, ends]) {
    const shown = document.createElement("span");
    shown.className = "spoken";
    const text = node.splitText(begins);
    text.splitText(ends - begins);
    text.replaceWith(shown);
    shown.append(text);
    return shown;
  }

  // ── Following: until the reader scrolls away, and again once they come back ──

  let follows = true;

  function isInView() {
    const box = marks[0]?.getBoundingClientRect();
    const dock = document.querySelector(".dock")?.getBoundingClientRect().top ?? innerHeight;
    return Boolean(box) && box.bottom > topEdge() && box.top < dock;
  }

  // What covers the top of the window: the bar, and on phones the picture.
  function topEdge() {
    const covers = [...document.querySelectorAll("#bar, .player.is-video")].map((one) => one.getBoundingClientRect());
    return Math.max(0, ...covers.filter((box) => box.top <= 60 && box.width > innerWidth / 2).map((box) => box.bottom));
  }

  function reveal() {
    if (!marks[0]) return;
    const box = marks[0].getBoundingClientRect();
    const dock = document.querySelector(".dock")?.getBoundingClientRect().top ?? innerHeight;
    const [first, last] = [topEdge() + 40, dock - 120];
    if (box.top >= first && box.bottom <= last) return;
    const aim = first + (last - first) / 3;
    scrollTo({ top: scrollY + box.top - aim, behavior: still.matches ? "instant" : "smooth" });
  }

  function showFollow() {
    const button = byId("player-follow");
    if (button) button.hidden = !marks.length || isInView() || follows;
  }

  // What readers do to scroll; what this script does is no such event.
  const scrolled = () => {
    follows = !marks.length || isInView();
    showFollow();
  };
  const byReader = () => addEventListener("scrollend", scrolled, { once: true });
  for (const what of ["wheel", "touchmove"]) addEventListener(what, byReader, { passive: true });
  addEventListener("keydown", ({ key }) => ["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"].includes(key) && byReader());
  addEventListener("pointerdown", (event) => event.target === document.documentElement && byReader()); // the scroll bar

  function followAgain() {
    follows = true;
    reveal();
    showFollow();
  }

  // ── Playing from the text ──

  function playFrom(sentence) {
    follows = true;
    player.seek(sentence.from / 1000, true);
  }

  document.addEventListener("click", (event) => {
    if (!player) return;
    if (event.target.closest("[data-player=follow]")) followAgain();
    const stamp = event.target.closest(".stamp");
    if (stamp) {
      follows = true;
      player.seek(Number(stamp.dataset.from) / 1000, true);
      return;
    }
    if (event.defaultPrevented || event.target.closest("a, button, summary, img") || !getSelection().isCollapsed) return;
    const sentence = sentenceUnder(event);
    if (sentence) playFrom(sentence);
  });

  // Where each paragraph begins, for those who use no pointer. Its words are in attributes: the text stays the same.
  function stamp(section) {
    if (section.querySelector(":scope .stamp")) return;
    const firsts = new Map();
    for (const sentence of sentencesOf(section)) {
      const [[node] = []] = partsOf(sentence);
      const block = node?.parentElement.closest("p, h1, h2, h3, li, blockquote");
      if (block && !firsts.has(block)) firsts.set(block, sentence);
    }
    for (const [block, sentence] of firsts) {
      if (/^H\d$/.test(block.tagName)) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "stamp";
      button.dataset.from = sentence.from;
      button.dataset.time = player.clock(sentence.from / 1000);
      button.setAttribute("aria-label", `Play from ${button.dataset.time}`);
      block.prepend(button);
    }
  }

  // ── The recording goes on ──

  let loadingFor = null;

  // Text that is not here yet is asked for when its time comes.
  function loadOn(ms) {
    const last = sentences.at(-1);
    const first = sentences[0];
    const part = last && ms > last.until + 500 ? byId("more") : first && ms < first.from ? byId("earlier") : null;
    const link = part?.querySelector("a[hx-get]");
    if (!link || loadingFor === link) return;
    loadingFor = link;
    link.click();
  }

  document.addEventListener("nexus:sound", ({ detail }) => {
    const ms = detail.time * 1000;
    if (!detail.playing && !marked && !ms) return;
    mark(spokenAt(ms));
    if (detail.playing) loadOn(ms);
  });

  for (const what of ["htmx:afterSwap", "nexus:put", "nexus:player"]) {
    document.addEventListener(what, () => {
      gather();
      if (player && player.time()) mark(spokenAt(player.time() * 1000));
    });
  }

  // ── Where an address leads: to a moment, or to a passage that a search found ──

  function begin() {
    if (!player || !sentences.length) return;
    const [, start] = /^(\d{1,9})-\d{1,9}$/.exec(asked.get("mark") ?? "") ?? [];
    const section = byId(`f${asked.get("from")}`);
    if (start !== undefined && section?.dataset.times && !asked.has("at")) {
      const units = unitsIn(section.textContent)(Number(start));
      const sentence = sentencesOf(section).findLast((one) => one.start <= units) ?? sentencesOf(section)[0];
      if (sentence) player.seek(sentence.from / 1000);
      return;
    }
    if (!asked.has("at")) return;
    mark(spokenAt(player.time() * 1000));
    addEventListener("load", reveal, { once: true });
    reveal();
  }

  gather();
  begin();
})();
