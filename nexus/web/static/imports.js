// The import page: files are dropped and dragged into order, and leaving asks first if something would be lost.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const page = () => document.querySelector(".desk");
  const said = () => byId("notices");
  const lookAgain = () => document.dispatchEvent(new CustomEvent("nexus:stale"));

  function say(text) {
    const notice = document.createElement("p");
    notice.className = "notice notice-failed";
    notice.textContent = text;
    said().append(notice);
  }

  // ── Files: sent one after the other; the list grows as they arrive ──

  const line = []; // files still to be sent
  let sent = 0;
  let sending = false;
  let held = null; // the form that waits until all files have arrived
  let name = "";
  const mayAdd = () => Boolean(byId("choose"));

  async function send(files) {
    line.push(...files);
    if (sending || !line.length) return;
    said().replaceChildren();
    sending = true;
    for (sent = 0; line.length; sent += 1) {
      const file = line.shift();
      name = file.name;
      show();
      await sendOne(file).catch(() => say(`${file.name}: Nexus did not answer. Try again in a moment.`));
    }
    sending = false;
    byId("sending").hidden = true;
    lookAgain();
    goOn();
  }

  async function sendOne(file) {
    const answer = await fetch(`/import/sources?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    if (!answer.ok) say(`${file.name}: ${(await answer.json()).error.message}`);
  }

  function show() {
    const then = held ? " It continues automatically after that." : "";
    byId("sending").textContent = `Sending ${sent + 1} of ${sent + 1 + line.length}: ${name}.${then}`;
    byId("sending").hidden = false;
  }

  // A form that reloads the page would cut off the file being sent, so it waits. If a file was refused, the user has
  // to press again.
  document.addEventListener(
    "submit",
    (event) => {
      if (!sending || event.target.id === "choose") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      held = event.target.getAttribute("action");
      show();
    },
    true,
  );

  function goOn() {
    const form = held && document.querySelector(`form[action="${held}"]`);
    held = null;
    if (form && !said().hasChildNodes()) form.requestSubmit();
  }

  document.addEventListener("change", (event) => {
    if (event.target.id !== "import-files-input") return;
    send([...event.target.files]);
    event.target.value = "";
  });

  // From a folder, take visible files that can be imported. A file dropped on its own is always sent.
  async function within(entry, top = true) {
    if (!top && entry.name.startsWith(".")) return [];
    if (entry.isFile) {
      const endings = byId("import-files-input").accept.split(",");
      const fits = top || endings.some((ending) => entry.name.toLowerCase().endsWith(ending));
      return fits ? [await new Promise((found, failed) => entry.file(found, failed))] : [];
    }
    const reader = entry.createReader();
    const entries = [];
    const more = () => new Promise((found, failed) => reader.readEntries(found, failed));
    for (let some = await more(); some.length; some = await more()) entries.push(...some);
    entries.sort((one, other) => (one.name < other.name ? -1 : 1));
    return (await Promise.all(entries.map((one) => within(one, false)))).flat();
  }

  addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files") || !mayAdd()) return;
    event.preventDefault();
    page().classList.add("is-drop-target");
  });
  addEventListener("dragleave", (event) => event.relatedTarget ?? page().classList.remove("is-drop-target"));
  addEventListener("drop", (event) => {
    page().classList.remove("is-drop-target");
    if (!event.dataTransfer.files.length || !mayAdd()) return;
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    if (!entries.every(Boolean)) send([...event.dataTransfer.files]);
    else
      Promise.all(entries.map((entry) => within(entry)))
        .then((found) => send(found.flat()))
        .catch(() => say("The files can't be read. Check their permissions, then drop them again."));
  });

  // ── Order: a row takes the place of the row it is dropped on ──

  let dragged = null;
  let ordering = Promise.resolve();
  const goesDown = (over) => Boolean(dragged.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING);
  const unmark = () => {
    for (const row of document.querySelectorAll(".is-over")) row.classList.remove("is-over", "is-after");
  };
  const rowOf = (event) => event.target.closest?.(".import-row[draggable]");
  // Show the server's order again, even though nothing has changed there.
  const undo = () => {
    Object.assign(byId("import-rows").dataset, { at: 0, version: "" });
    lookAgain();
  };
  document.addEventListener("dragstart", (event) => {
    dragged = rowOf(event);
    if (!dragged) return;
    dragged.classList.add("is-dragged");
    dragged.dataset.typed = ""; // the list is not replaced during the drag
  });
  document.addEventListener("dragend", () => {
    if (!dragged) return;
    unmark();
    dragged.classList.remove("is-dragged");
    delete dragged.dataset.typed;
    dragged = null;
    ordering.then(lookAgain);
  });
  document.addEventListener("dragover", (event) => {
    const over = rowOf(event);
    if (!dragged || !over) return;
    event.preventDefault();
    unmark();
    over.classList.add("is-over");
    over.classList.toggle("is-after", goesDown(over));
  });
  document.addEventListener("drop", (event) => {
    const over = rowOf(event);
    if (!dragged || !over || dragged === over) return;
    event.preventDefault();
    if (goesDown(over)) over.after(dragged);
    else over.before(dragged);
    const ids = [...document.querySelectorAll(".import-row")].map((row) => row.dataset.source);
    ordering = fetch("/import/order", {
      method: "PUT",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ source_ids: ids }),
    }).then((answer) => answer.ok || undo());
  });

  // ── The library: choosing one sets it. A name that was typed counts, whether or not it was set ──

  document.addEventListener("change", ({ target }) => {
    if (target.id === "library" && target.value) target.form.requestSubmit();
    else if (target.id === "library") byId("library-name").focus();
  });

  document.addEventListener(
    "submit",
    (event) => {
      if (event.target.id !== "start" || byId("library")?.value !== "") return;
      const name = byId("library-name");
      if (name.value !== name.defaultValue) event.target.elements.name.value = name.value;
    },
    true,
  );

  // ── Leaving: asks only if something would be lost, and not for the page's own forms ──

  let leaving = false;
  document.addEventListener("submit", (event) => (leaving = !event.defaultPrevented));
  document.addEventListener("nexus:leave", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
  addEventListener("beforeunload", (event) => {
    if (!leaving && (sending || byId("import-state")?.dataset.warn !== undefined)) event.preventDefault();
  });
})();
