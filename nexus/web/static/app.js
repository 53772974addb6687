// Live pages: the stream of events, pieces of the page replaced by newer ones, and the keyboard.
// Every page works without it. No state is kept here: the server renders, and this puts the result in its place.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);

  // ── Pieces: every element with data-live and an id is replaced by its newer version ──

  function put(fresh) {
    const shown = byId(fresh.id);
    if (!shown) return false;
    // Answers can arrive out of order. A piece that has not changed stays, and keeps the focus.
    const later = Number(fresh.dataset.at) - Number(shown.dataset.at);
    const isSame = badgeOf(fresh) === badgeOf(shown) && fresh.dataset.noted === shown.dataset.noted;
    if (later < 0 || (later === 0 && isSame)) return true;
    // A text that someone is reading stays while its version is the same.
    if (fresh.dataset.version !== undefined && fresh.dataset.version === shown.dataset.version) return true;
    if (hasTyped(shown)) return true;
    announce(shown, fresh);
    for (const box of shown.querySelectorAll("input[type=checkbox]:checked")) {
      fresh.querySelector(`input[value="${box.value}"]`)?.setAttribute("checked", "");
    }
    htmx.swap(shown, fresh.outerHTML, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 });
    document.dispatchEvent(new CustomEvent("nexus:put", { detail: { id: fresh.id } }));
    return true;
  }

  function insert(fresh) {
    const list = byId("items");
    if (!list) return;
    htmx.swap(list, fresh.outerHTML, { swapStyle: "afterbegin", swapDelay: 0, settleDelay: 0 });
    byId(fresh.id)?.classList.add("is-new");
  }

  // What someone has typed stays, too.
  function hasTyped(piece) {
    const fields = [...piece.querySelectorAll("textarea, input[type=text]")];
    return Boolean(piece.querySelector("[data-typed]")) || fields.some((field) => field.value !== field.defaultValue);
  }

  const badgeOf = (piece) => piece.querySelector(".badge")?.textContent.trim();

  function announce(shown, fresh) {
    const after = badgeOf(fresh);
    if (!after || badgeOf(shown) === after) return;
    const title = fresh.querySelector("h1, .item-title")?.textContent.trim() ?? "";
    byId("said").textContent = `${title}: ${after}`;
  }

  async function piecesOf(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok) return { status: answer.status, pieces: [] };
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return { status: answer.status, pieces: [...page.querySelectorAll("[data-live][id]")] };
  }

  // ── One item: requested again, one request at a time, and once more if something happened meanwhile ──

  const busy = new Map();

  async function refresh(id, mayInsert, mayLeave = false) {
    const running = busy.get(id);
    if (running) {
      running.again = true;
      running.mayInsert ||= mayInsert;
      running.mayLeave ||= mayLeave;
      return;
    }
    const turn = { again: true, mayInsert, mayLeave };
    busy.set(id, turn);
    try {
      while (turn.again) {
        turn.again = false;
        await look(id, turn);
      }
    } catch {
      // The server is unavailable; the page catches up once it is connected again.
    } finally {
      busy.delete(id);
    }
  }

  async function look(id, turn) {
    const reading = byId("reader")?.dataset.media === id;
    if (!reading && !byId(`item-${id}`) && !turn.mayInsert) return;
    const list = byId("items")?.dataset.list;
    const { status, pieces } = await piecesOf(reading ? location.href : `/items/${id}/row?${list ?? ""}`);
    const shown = byId(`item-${id}`);
    // The row of an upload stays while it shows something.
    if (status === 404 && !reading && shown?.dataset.at !== "Infinity") shown?.remove();
    for (const fresh of pieces) {
      if (fresh.dataset.elsewhere !== undefined && turn.mayLeave) leaveList(fresh.id);
      else if (!put(fresh) && turn.mayInsert && fresh.dataset.elsewhere === undefined) insert(fresh);
    }
  }

  // What the reader has just put elsewhere leaves the list, and the focus goes on to the next row.
  function leaveList(id) {
    const row = byId(id);
    if (!row) return;
    const next = row.nextElementSibling ?? row.previousElementSibling;
    if (row.contains(document.activeElement)) (next?.querySelector("a") ?? byId("main")).focus();
    row.remove();
  }

  function belongsHere(event) {
    const list = byId("items");
    if (!list || new URLSearchParams(location.search).has("cursor")) return false;
    if (list.dataset.sorted !== undefined) return false; // the top is not its place
    const statuses = list.dataset.statuses.split(" ").filter(Boolean);
    return statuses.length ? statuses.includes(event.to_status) : event.event === "create";
  }

  // Everything on the page, after a time without events. A page that answers a form names its own address.
  async function catchUp() {
    const address = document.querySelector("[data-address]")?.dataset.address ?? location.href;
    const { status, pieces } = await piecesOf(address);
    if (status === 401) tell("You are signed out. Reload this page to sign in.");
    if (byId("jobs")) arrange(pieces);
    for (const fresh of pieces.reverse()) if (!put(fresh) && fresh.dataset.desk === undefined) insert(fresh);
    goOn();
  }

  // The list of jobs: new ones come in where they belong, and those that have left this part of it go.
  function arrange(pieces) {
    const rows = pieces.filter((piece) => piece.matches(".item"));
    const listed = new Set(rows.map((row) => row.id));
    const last = rows.length ? byId(rows.at(-1).id) : null;
    for (const shown of byId("jobs").querySelectorAll(":scope > .item")) {
      const isAbove = last && shown.compareDocumentPosition(last) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (!listed.has(shown.id) && (isAbove || !byId("more"))) shown.remove();
    }
    let next = byId("more");
    for (const row of rows.toReversed()) {
      if (!byId(row.id)) {
        const isNew = document.importNode(row, true);
        isNew.classList.add("is-new");
        byId("jobs").insertBefore(isNew, next);
        htmx.process(isNew);
      }
      next = byId(row.id);
    }
  }

  // One request at a time, and once more if something happened meanwhile.
  let looking = null;
  async function lookAgain() {
    if (looking) return (looking.again = true);
    looking = { again: true };
    while (looking.again) {
      looking.again = false;
      await catchUp().catch(() => {}); // the server is unavailable; the next call may succeed
    }
    looking = null;
  }

  // The step that a page takes on its own, once, unless someone is typing.
  let gone = false;
  function goOn() {
    const form = document.querySelector("form[data-auto]");
    if (!form || gone || hasTyped(document.body)) return;
    gone = true;
    form.requestSubmit();
  }

  // ── A text that takes long: the page says so, and offers to enter it by hand ──

  function watchWait() {
    const notice = byId("overdue");
    if (!notice || notice.dataset.watched) return;
    notice.dataset.watched = "yes";
    setTimeout(() => {
      // If someone typed, the notice is still on the page even though the text has arrived.
      if (!notice.isConnected || !document.querySelector("[data-awaits-text]")) return;
      notice.hidden = false;
      notice.closest("details").open = true;
      byId("said").textContent = notice.textContent;
    }, Number(notice.dataset.in) * 1000);
  }
  document.addEventListener("nexus:put", watchWait);

  // ── The stream. A hidden tab closes it: browsers give a site only six connections ──

  let stream = null;
  let missed = true; // also what happened between the rendering of this page and the first event
  let again = 0;

  function follow() {
    const address = document.body.dataset.follow;
    if (!address || stream || document.hidden) return;
    stream = new EventSource(address);
    stream.addEventListener("hello", () => {
      tell("");
      if (missed) lookAgain();
      missed = false;
    });
    stream.addEventListener("media", (message) => {
      const event = JSON.parse(message.data);
      refresh(event.media_id, belongsHere(event));
      if (event.event === "create") feedNews(); // perhaps a feed has brought it
    });
    stream.addEventListener("subscription", feedNews);
    stream.addEventListener("import", () => byId("import-state") && lookAgain());
    for (const subject of ["job", "story"]) {
      stream.addEventListener(subject, (message) => deskNews(JSON.parse(message.data)[`${subject}_id`], subject));
    }
    stream.addEventListener("error", () => {
      tell("Connection lost, reconnecting…");
      if (stream?.readyState !== EventSource.CLOSED) return; // it reconnects on its own, and continues where it was
      letGo();
      clearTimeout(again);
      again = setTimeout(follow, 2000);
      lookAgain();
    });
  }

  // A page of jobs or stories is requested again when one of those it shows has changed. A list of jobs may get more.
  function deskNews(id, subject) {
    const isListed = subject === "job" && byId("jobs") && !new URLSearchParams(location.search).has("cursor");
    if (isListed || byId(`job-${id}`) || byId(`story-${id}`)) lookAgain();
  }

  function feedNews() {
    if (document.querySelector("[data-feeds]")) lookAgain();
  }

  // ── Ticked rows of a list ──

  const ticks = () => [...document.querySelectorAll("input[name=job]")];
  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-select-all]")) for (const tick of ticks()) tick.checked = target.checked;
    const count = ticks().filter((tick) => tick.checked).length;
    const said = document.querySelector("[data-selected]");
    if (said) said.textContent = count ? `${count} selected` : "";
  });

  // Without the stream, a page with work in progress is requested every second.
  setInterval(() => {
    const deaf = stream?.readyState !== EventSource.OPEN;
    if (deaf && !document.hidden && document.querySelector("[data-working]")) lookAgain();
  }, 1000);

  function tell(text) {
    byId("link-lost").textContent = text;
    byId("link-lost").hidden = !text;
  }

  function letGo() {
    stream?.close();
    stream = null;
    missed = true;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? letGo() : follow()));
  addEventListener("pagehide", letGo);
  addEventListener("pageshow", follow);

  // ── What htmx does not show by itself ──

  document.addEventListener("nexus:stale", () => lookAgain());

  document.addEventListener("nexus:noted", ({ detail }) => refresh(detail.id, false, true));

  document.addEventListener("nexus:changed", (event) => {
    const id = event.detail.id;
    refresh(id, Boolean(byId("items")), true).then(() => {
      const row = byId(`item-${id}`);
      row?.classList.remove("is-new");
      row?.getAnimations(); // settles the style, so that the highlight starts again
      row?.classList.add("is-new");
      row?.scrollIntoView({ block: "nearest" });
    });
  });

  for (const kind of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(kind, () => {
      const notice = document.createElement("p");
      notice.className = "notice notice-failed";
      notice.textContent = "Nexus did not answer, and nothing was changed here. Try again in a moment.";
      byId("notices").replaceChildren(notice);
    });
  }
  document.addEventListener("htmx:beforeRequest", () => byId("notices").replaceChildren());

  // ── Times: the same words as in nexus/web/views/filters.py ──

  function ago(moment) {
    const seconds = (Date.now() - moment) / 1000;
    if (seconds < 60) return "just now";
    const [name, size] = seconds < 3600 ? ["minute", 60] : seconds < 86400 ? ["hour", 3600] : ["day", 86400];
    const count = Math.floor(seconds / size);
    return `${count} ${name}${count === 1 ? "" : "s"} ago`;
  }

  setInterval(() => {
    for (const shown of document.querySelectorAll("time[data-ago]")) {
      const moment = Date.parse(shown.dateTime);
      if (Date.now() - moment < 7 * 86400e3) shown.textContent = ago(moment);
    }
  }, 30000);

  // ── The keyboard. The page's own script comes first ──

  function step(by) {
    const links = [...document.querySelectorAll(".item-title a")];
    const here = links.findIndex((link) => link.closest(".item").contains(document.activeElement));
    const next = here < 0 ? (by > 0 ? 0 : links.length - 1) : here + by;
    links[next]?.focus();
    links[next]?.closest(".item").scrollIntoView({ block: "nearest" });
  }

  const keys = {
    "/": () => (byId("search") ? (byId("search").focus(), byId("search").select()) : location.assign("/find")),
    n: () => (byId("url") ? (byId("url").focus(), byId("url").select()) : location.assign("/#url")),
    u: () => byId("files")?.click(),
    "?": () => byId("keys").showModal(),
    j: () => step(1),
    k: () => step(-1),
    f: () => press("favourite"),
    r: () => press("read"),
    a: () => press("archived"),
  };

  // The switch of the item that is read, or of the row that has the focus.
  function press(name) {
    const place = byId("reader") ?? document.activeElement.closest?.(".item");
    place?.querySelector(`.mark-${name}`)?.click();
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=radio], [type=file]), textarea, select, dialog, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const asked = new CustomEvent("nexus:key", { detail: { key: event.key }, cancelable: true });
    const taken = !document.dispatchEvent(asked);
    if (!taken && !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    if (!taken) keys[event.key]();
  });
  // What is not chosen stays out of the address.
  document.addEventListener("submit", ({ target }) => {
    if (!target.matches("[data-filter]")) return;
    const empty = [...target.elements].filter((field) => field.name && !field.value);
    for (const field of empty) field.disabled = true;
    setTimeout(() => empty.forEach((field) => (field.disabled = false)));
  });

  // ── Lists: the menu of libraries is open where there is room, and what leaves a list leads back to it ──

  const wide = matchMedia("(min-width: 64rem)");
  function openMenus() {
    for (const menu of document.querySelectorAll(".shelves")) menu.open = wide.matches;
  }
  wide.addEventListener("change", openMenus);
  document.addEventListener("nexus:put", ({ detail }) => detail.id === "main" && openMenus());
  openMenus();

  const kept = window.nexusKept;
  kept.ready.then(() => {
    if (byId("items")) kept.set("tab:list", byId("items").dataset.list);
    const list = kept.get("tab:list") ?? "";
    for (const back of document.querySelectorAll("[data-back]")) {
      if (back.matches("a")) back.href = list ? `/?${list}` : "/";
      else back.value = list;
    }
  });

  // On a phone the links of the header may be scrolled.
  function showWhereWeAre() {
    const links = document.querySelector(".top nav");
    const here = links.querySelector("[aria-current]");
    if (here) links.scrollLeft = here.offsetLeft - links.offsetLeft - (links.clientWidth - here.offsetWidth) / 2;
  }

  byId("keys-button")?.addEventListener("click", () => byId("keys").showModal());
  byId("keys-button")?.removeAttribute("hidden");
  if (location.hash === "#url") byId("url")?.focus();
  showWhereWeAre();
  goOn();
  watchWait();

  follow();
})();
