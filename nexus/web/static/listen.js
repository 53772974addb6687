// The queue: it changes in place, the focus stays with what was moved, and rows can be dragged.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);

  async function send(address, body) {
    const answer = await fetch(address, { method: "POST", body: new URLSearchParams(body) });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    byId("queue").replaceWith(document.importNode(page.getElementById("queue"), true));
    const [head, fresh] = [document, page].map((one) => one.querySelector(".listen-head"));
    if (fresh) head.replaceWith(document.importNode(fresh, true));
    htmx.process(byId("queue"));
  }

  const titleOf = (row) => row.querySelector(".item-title").textContent.trim();

  function focusOn(id, neighbour) {
    const wanted = byId(id);
    const near = byId(neighbour)?.querySelector(".item-title a");
    (wanted && !wanted.disabled ? wanted : byId(id?.replace(/^up|^down/, (side) => (side === "up" ? "down" : "up"))) ?? near ?? byId("main")).focus();
  }

  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-moves]");
    if (!form) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const row = form.closest(".queued");
    const neighbour = (row.nextElementSibling ?? row.previousElementSibling)?.id;
    const { id } = form.querySelector("button");
    const said = id.startsWith("remove") ? "removed" : `moved ${id.startsWith("up") ? "up" : "down"}`;
    try {
      await send(form.getAttribute("action"), Object.fromEntries(new FormData(form)));
      byId("said").textContent = `${titleOf(row)}: ${said}`;
      focusOn(id, neighbour);
    } catch {
      form.submit();
    }
  }, { capture: true });

  // ── Dragging ──

  let dragged = null;
  const rows = () => [...document.querySelectorAll(".queued")];

  document.addEventListener("pointerdown", ({ target }) => {
    const row = target.closest(".queued");
    if (row && !target.closest("button, form")) row.draggable = true;
  });
  document.addEventListener("dragstart", (event) => {
    dragged = event.target.closest?.(".queued") ?? null;
    dragged?.classList.add("is-dragged");
    event.dataTransfer.effectAllowed = "move";
  });
  document.addEventListener("dragover", (event) => {
    const over = dragged && event.target.closest(".queued");
    if (!over) return;
    event.preventDefault();
    const box = over.getBoundingClientRect();
    if (over !== dragged) over[event.clientY < box.top + box.height / 2 ? "before" : "after"](dragged);
  });
  document.addEventListener("dragend", () => {
    const row = dragged;
    dragged = null;
    if (!row) return;
    row.classList.remove("is-dragged");
    send(`/listen/${row.dataset.id}/move`, { position: rows().indexOf(row) }).catch(() => location.reload());
  });
})();
