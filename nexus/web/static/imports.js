// The page with one button: files are dropped, dragged into order, and nothing is lost by leaving unasked.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const page = document.querySelector(".desk");
  const said = () => byId("notices");
  const lookAgain = () => document.dispatchEvent(new CustomEvent("nexus:stale"));

  function say(text) {
    const notice = document.createElement("p");
    notice.className = "notice notice-failed";
    notice.textContent = text;
    said().append(notice);
  }

  // ── Files: sent one after the other, each by itself; the list grows as they arrive ──

  let sending = 0;
  const mayAdd = () => Boolean(byId("choose"));

  async function send(files) {
    said().replaceChildren();
    sending += 1;
    for (const file of files) await sendOne(file).catch(() => say(`${file.name}: Nexus did not answer. Try again in a moment.`));
    sending -= 1;
    lookAgain();
  }

  async function sendOne(file) {
    const answer = await fetch(`/import/sources?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    if (!answer.ok) say(`${file.name}: ${(await answer.json()).error.message}`);
  }

  document.addEventListener("submit", (event) => {
    if (event.target.id !== "choose") return;
    event.preventDefault();
    const chosen = [...byId("import-files-input").files];
    event.target.reset();
    send(chosen);
  });
  addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files") || !mayAdd()) return;
    event.preventDefault();
    page.classList.add("is-drop-target");
  });
  addEventListener("dragleave", (event) => event.relatedTarget ?? page.classList.remove("is-drop-target"));
  addEventListener("drop", (event) => {
    page.classList.remove("is-drop-target");
    if (!event.dataTransfer.files.length || !mayAdd()) return;
    event.preventDefault();
    send([...event.dataTransfer.files]);
  });

  // ── Order: a row takes the place of the one that it is dropped on ──

  let dragged = null;
  const goesDown = (over) => Boolean(dragged.compareDocumentPosition(over) & Node.DOCUMENT_POSITION_FOLLOWING);
  const unmark = () => {
    for (const row of document.querySelectorAll(".is-over")) row.classList.remove("is-over", "is-after");
  };
  const rowOf = (event) => event.target.closest?.(".import-row[draggable]");
  // What the server has counts, also where nothing has changed there.
  const undo = () => {
    Object.assign(byId("import-rows").dataset, { at: 0, version: "" });
    lookAgain();
  };
  document.addEventListener("dragstart", (event) => {
    dragged = rowOf(event);
    if (!dragged) return;
    dragged.classList.add("is-dragged");
    dragged.dataset.typed = ""; // the list is not replaced under the hand that drags
  });
  document.addEventListener("dragend", () => {
    if (!dragged) return;
    unmark();
    dragged.classList.remove("is-dragged");
    delete dragged.dataset.typed;
    dragged = null;
    lookAgain();
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
    fetch("/import/order", {
      method: "PUT",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ source_ids: ids }),
    }).then((answer) => answer.ok || undo());
  });

  // ── Start: a name that was typed counts, whether it was set or not ──

  document.addEventListener("submit", (event) => {
    const name = byId("library");
    if (event.target.id === "start" && name && name.value !== name.defaultValue) event.target.elements.name.value = name.value;
  });

  // ── Leaving: asked only where something would be lost, and not by the page's own forms ──

  let leaving = false;
  document.addEventListener("submit", (event) => (leaving = !event.defaultPrevented));
  addEventListener("pageshow", () => (leaving = false));
  addEventListener("beforeunload", (event) => {
    if (!leaving && (sending || byId("import-state")?.dataset.warn !== undefined)) event.preventDefault();
  });
})();
