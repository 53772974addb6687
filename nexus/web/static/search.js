// For searching: the keyboard, and the recent searches, which stay in this browser. htmx asks while somebody types.
// The page can be used without it.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const MOST = 8;
  // A question counts as asked when one of its results is opened, or nobody has typed for so long.
  const PAUSE = 2000;
  const kept = window.nexusKept;
  const field = byId("search");
  let pause;

  // ── Recent searches ──

  const recall = () => kept.get("recent") ?? [];
  const keep = (recent) => kept.set("recent", recent.length ? recent : null);

  function remember() {
    clearTimeout(pause);
    const asked = field.value.trim().slice(0, 200);
    if (asked && byId("hits")) keep([asked, ...recall().filter((one) => one !== asked)].slice(0, MOST));
  }

  function showRecent() {
    const recent = recall();
    if (!byId("recent")) return;
    byId("recent").hidden = !recent.length;
    const lines = recent.map((one) => {
      const line = document.createElement("li");
      const link = document.createElement("a");
      link.href = `/find?${new URLSearchParams({ q: one })}`;
      link.textContent = one;
      link.dir = "auto";
      line.append(link);
      return line;
    });
    byId("recent").querySelector("ul").replaceChildren(...lines);
  }

  // ── The keyboard ──

  function step(by) {
    const links = [...document.querySelectorAll("[data-hit], #recent a")];
    const here = links.indexOf(document.activeElement);
    if (here + by < 0) return field.focus();
    const next = links[Math.min(here + by, links.length - 1)];
    next?.focus({ preventScroll: true });
    next?.closest("li").scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target === field || event.target.closest?.("#found");
    if (!inside) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && !(event.target === field && by < 0)) step(by);
    else if (event.key === "Escape" && event.target !== field) field.focus();
    else return;
    event.preventDefault();
  });

  // Enter in the question opens nothing yet: it shows the results of what was typed, and goes to the first.
  byId("search-form").addEventListener("submit", (event) => {
    if (byId("found").dataset.asked !== field.value) return;
    event.preventDefault();
    remember();
    step(1);
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("#hits a")) remember();
    if (event.target.closest("#forget")) {
      keep([]);
      showRecent();
      field.focus();
    }
  });

  document.addEventListener("htmx:afterSwap", () => {
    showRecent();
    clearTimeout(pause);
    pause = setTimeout(remember, PAUSE);
    document.title = field.value.trim() ? `${field.value.trim()} · Search · Nexus` : "Search · Nexus";
  });

  // The end of what is there already, not the beginning, is where typing goes on.
  field.setSelectionRange(field.value.length, field.value.length);
  if (field.value) pause = setTimeout(remember, PAUSE);
  kept.ready.then(showRecent);
})();
