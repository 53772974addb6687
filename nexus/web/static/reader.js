// For reading: settings, the table of contents, the place where the reader left off, and the keyboard.
// The page can be read without it. Settings stay in this browser; the place goes to the server, for other devices.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const media = byId("reader").dataset.media;
  const asked = new URLSearchParams(location.search);
  const wide = matchMedia("(min-width: 70rem)");
  // Where the target of a jump ends up, below the bar; and a little further down, the line being read.
  const LANDING = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
  const READING_LINE = LANDING + 24;

  // ── What is remembered: how texts look by this browser, where the reader is for this reader alone ──

  const kept = window.nexusKept;

  function recall(name) {
    try {
      return JSON.parse(localStorage.getItem(name)) ?? {};
    } catch {
      return {}; // nothing can be stored, or it is not ours
    }
  }

  function keep(name, value) {
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch {
      // Forgetting it does no harm.
    }
  }

  // ── Settings: static/look.js applies them ──

  const SIZES = [0.8, 0.9, 1, 1.1, 1.25, 1.4, 1.6, 1.8];

  function choose(part, value) {
    const place = here();
    keep("nexus:look", { ...recall("nexus:look"), [part]: value });
    document.dispatchEvent(new Event("nexus:look"));
    showSettings();
    if (place) goTo(place);
  }

  function resize(by) {
    const size = recall("nexus:look").size ?? 1;
    const next = SIZES.indexOf(size) + by;
    if (SIZES[next]) choose("size", SIZES[next]);
  }

  function showSettings() {
    const form = byId("look");
    if (!form) return;
    const look = recall("nexus:look");
    for (const part of ["width", "face", "theme"]) form.elements[part].value = look[part] ?? "";
    byId("size").textContent = `${Math.round((look.size ?? 1) * 100)} %`;
    for (const button of form.querySelectorAll("[data-size]")) {
      button.disabled = (look.size ?? 1) === SIZES.at(button.dataset.size > 0 ? -1 : 0);
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.form?.id === "look") choose(event.target.name, event.target.value);
  });

  // ── Places: a fragment, a block in it, and how far down in the block ──

  const fragments = () => [...document.querySelectorAll("#prose > .fragment")];
  const top = (element) => element.getBoundingClientRect().top;

  // The last element, in reading order, that begins above the line.
  function lastAbove(elements, line) {
    let low = 0;
    let high = elements.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (top(elements[middle]) <= line) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // None before the beginning of the text.
  function here() {
    const shown = fragments();
    const fragment = shown[lastAbove(shown, READING_LINE)] ?? (byId("earlier") ? shown[0] : null);
    if (!fragment) return null;
    const blocks = [...fragment.children];
    const block = Math.max(lastAbove(blocks, READING_LINE), 0);
    const box = (blocks[block] ?? fragment).getBoundingClientRect();
    const far = box.height ? (READING_LINE - box.top) / box.height : 0;
    return { fragment: Number(fragment.id.slice(1)), block, far: Math.min(Math.max(far, 0), 1) };
  }

  // Returns whether the place is loaded.
  function goTo(place) {
    const fragment = byId(`f${place.fragment}`);
    if (!fragment) return false;
    const box = (fragment.children[place.block] ?? fragment).getBoundingClientRect();
    scrollTo({ top: scrollY + box.top + box.height * place.far - READING_LINE, behavior: "instant" });
    return true;
  }

  // A place is a place in one version of the text.
  const PLACE = `place:${media}:${byId("reader").dataset.revision}`;
  let settled = false;
  let waiting = 0;

  function remember() {
    waiting = 0;
    if (!settled || !byId("prose")) return;
    const place = here();
    kept.set(PLACE, place && { ...place, at: Date.now() });
    if (!place || sameSpot(place, told)) return;
    later ||= setTimeout(tell, TELL_AFTER);
  }

  // ── The place on the server ──

  const TELL_AFTER = 2000;
  let later = 0;
  let told = placeThere();
  const sameSpot = (one, other) => Boolean(other) && one.fragment === other.fragment && one.block === other.block && Math.abs(one.far - other.far) < 0.01;

  function placeThere() {
    return JSON.parse(byId("reader").dataset.place ?? "null");
  }

  // The later of the two, by the clock of the device that was there.
  function lastPlace() {
    const [own, there] = [kept.get(PLACE) ?? {}, placeThere()];
    const last = there && (own.fragment === undefined || (own.at ?? 0) < there.at) ? there : own;
    return last.fragment || last.block || last.far ? last : {};
  }

  // How much of the whole text lies above the line, or all of it once its end is seen.
  function fraction(place) {
    const pieces = Number(byId("reader").dataset.pieces) || 1;
    const box = byId(`f${place.fragment}`).getBoundingClientRect();
    const seenAll = !byId("more") && byId("prose").getBoundingClientRect().bottom <= innerHeight + 8;
    if (seenAll) return 1;
    const inside = box.height ? (READING_LINE - box.top) / box.height : 0;
    return Math.min(Math.max((place.fragment + Math.min(Math.max(inside, 0), 1)) / pieces, 0), 1);
  }

  // With keepalive it is sent even if the page is left. Another version than the reader's own has no place.
  function tell() {
    clearTimeout(later);
    later = 0;
    const place = settled && byId("prose") ? here() : null;
    if (place && !sameSpot(place, told)) report(place, fraction(place));
  }

  function report(place, fraction) {
    const { revision, version } = byId("reader").dataset;
    if (version) return;
    const body = JSON.stringify({ revision: Number(revision), fraction, place, at: new Date().toISOString() });
    const headers = { "Content-Type": "application/json" };
    fetch(`/items/${media}/progress`, { method: "POST", headers, body, keepalive: true }).catch(() => (told = null));
    told = place;
  }
  addEventListener("pagehide", tell);
  document.addEventListener("visibilitychange", () => document.hidden && tell());

  addEventListener("scroll", () => {
    waiting ||= setTimeout(remember, 200);
    requestAnimationFrame(mark);
  }, { passive: true });
  addEventListener("load", remember);
  addEventListener("pagehide", remember);

  // Return to where the reader left off, unless a new visit names a place.
  function resume() {
    settled = true;
    if (!byId("prose")) return;
    const place = lastPlace();
    const arrived = performance.getEntriesByType("navigation")[0]?.type === "navigate";
    const named = asked.has("from") || asked.has("before") || asked.has("at") || location.hash;
    const wanted = place.fragment !== undefined && (!named || !arrived || asked.get("from") === String(place.fragment));
    if (!wanted || (location.hash && arrived)) return;
    if (goTo(place)) tellResumed();
    else loadFrom(place);
  }

  // Open the page that begins there.
  function loadFrom(place) {
    settled = false; // that page remembers
    const version = byId("reader").dataset.version;
    location.replace(`?from=${place.fragment}${version ? `&revision=${version}` : ""}`);
  }

  function tellResumed() {
    const from = scrollY;
    const told = byId("resumed");
    told.hidden = false;
    addEventListener("scroll", function leave() {
      if (Math.abs(scrollY - from) < innerHeight) return;
      told.hidden = true;
      removeEventListener("scroll", leave);
    }, { passive: true });
  }

  function startOver(event) {
    kept.set(PLACE, null);
    delete byId("reader").dataset.place;
    report({ fragment: 0, block: 0, far: 0 }, 0);
    byId("resumed").hidden = true;
    if (byId("earlier")) {
      settled = false; // the next page starts at the beginning
      return;
    }
    event.preventDefault();
    scrollTo({ top: 0 });
  }

  // ── The table of contents ──

  let marked = null;

  function mark() {
    const links = [...document.querySelectorAll("#contents a")].filter((link) => byId(link.dataset.anchor));
    const now = links[lastAbove(links.map((link) => byId(link.dataset.anchor)), READING_LINE + 8)] ?? null;
    if (now === marked) return;
    marked?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "true");
    marked = now;
    const list = now?.closest("nav");
    // Not while the pointer is over it: a moving link can't be clicked.
    if (!list || list.matches(":hover")) return;
    const away = top(now) - top(list);
    if (away < 0 || away > list.clientHeight - 40) list.scrollTop += away - list.clientHeight / 3;
  }

  function follow(link, event) {
    const target = new URL(link.href);
    const place = target.pathname === location.pathname && target.hash && byId(decodeURIComponent(target.hash.slice(1)));
    if (!place) return; // another page, or another part of this text
    event.preventDefault();
    history.pushState(null, "", target.hash);
    place.scrollIntoView();
    if (!wide.matches) byId("contents")?.removeAttribute("open");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-size]");
    if (button) resize(Number(button.dataset.size));
    for (const panel of document.querySelectorAll("#settings[open], #contents[open]")) {
      const stays = panel.contains(event.target) || (panel.id === "contents" && wide.matches);
      if (!stays) panel.open = false;
    }
    const link = event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.closest("#resumed")) startOver(event);
    else follow(link, event);
  });

  // ── The keyboard ──

  function step(by) {
    const stops = [...document.querySelectorAll("#prose > .fragment, #prose :is(h1, h2, h3, h4, h5, h6)")];
    const line = LANDING + by * 8;
    const next = stops[lastAbove(stops, line) + (by > 0 ? 1 : 0)];
    if (next) next.scrollIntoView();
    else scrollBy({ top: by * innerHeight * 0.85 });
  }

  function toggleContents() {
    const contents = byId("contents");
    if (!contents) return;
    contents.open = !contents.open;
    if (contents.open) (marked ?? contents.querySelector("a")).focus({ preventScroll: true });
  }

  const keys = { j: () => step(1), k: () => step(-1), "+": () => resize(1), "=": () => resize(1), "-": () => resize(-1), t: toggleContents };

  document.addEventListener("nexus:key", (event) => {
    if (!byId("prose") || !Object.hasOwn(keys, event.detail.key)) return;
    event.preventDefault();
    keys[event.detail.key]();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const panel of document.querySelectorAll("#settings[open], #contents[open]")) {
      panel.open = false;
      if (panel.contains(document.activeElement)) panel.querySelector("summary").focus();
    }
  });

  // ── What arrives later ──

  // Text added before must not push the present text down.
  let anchored = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const first = event.detail.target.id === "earlier" && document.querySelector("#prose > .fragment");
    anchored = first ? { first, at: top(first) } : null;
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (anchored) scrollBy({ top: top(anchored.first) - anchored.at, behavior: "instant" });
    anchored = null;
    awaitPictures();
  });

  // Pictures that were on their way are looked for again, less and less often: they are not worth a stream of events.
  const FIRST_LOOK = 1500;
  const LAST_LOOK = 120_000;
  let looking = 0;

  function awaitPictures(wait = FIRST_LOOK) {
    clearTimeout(looking);
    if (document.querySelector(".picture.waiting")) looking = setTimeout(() => lookForPictures(wait), wait);
  }

  async function lookForPictures(wait) {
    const fragment = document.querySelector(".fragment:has(.picture.waiting)");
    if (!fragment) return;
    const version = byId("reader").dataset.version;
    const address = `/items/${media}/text?from=${fragment.id.slice(1)}${version ? `&revision=${version}` : ""}`;
    try {
      const answer = await fetch(address);
      if (answer.ok) placePictures(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // Offline; the next look may find them.
    }
    if (wait < LAST_LOOK) awaitPictures(wait * 1.6);
  }

  function placePictures(found) {
    for (const waiting of document.querySelectorAll(".picture.waiting")) {
      const now = found.querySelector(`[data-picture="${CSS.escape(waiting.dataset.picture)}"]:not(.waiting)`);
      if (now) waiting.replaceWith(document.importNode(now, true));
    }
  }

  document.addEventListener("nexus:put", (event) => {
    if (event.detail.id === "bar") prepare();
    if (event.detail.id !== "text") return;
    const place = lastPlace();
    if (place.fragment !== undefined && !goTo(place)) loadFrom(place);
    mark();
    awaitPictures();
  });

  function prepare() {
    showSettings();
    const contents = byId("contents");
    if (contents) contents.open = wide.matches;
    const language = document.querySelector("[data-language]");
    if (language) language.textContent = nameOf(language.dataset.language);
    mark();
  }

  function nameOf(language) {
    try {
      return new Intl.DisplayNames("en", { type: "language" }).of(language);
    } catch {
      return language;
    }
  }

  wide.addEventListener("change", prepare);
  history.scrollRestoration = "manual";

  // A browser that can't show a PDF in a page shows the text if there is one, unless the pages were asked for.
  const noViewer = byId("pages") && !asked.has("view") && (navigator.pdfViewerEnabled === false || !matchMedia("(min-width: 40rem)").matches);
  const toText = noViewer && document.querySelector(".switch a[href$='view=text']");
  if (toText) location.replace(toText.href);

  prepare();
  kept.ready.then(() => {
    resume();
    mark();
    awaitPictures();
  });
})();
