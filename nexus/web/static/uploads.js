// Uploads: files that are dropped or chosen, two at a time, from the browser straight to the store.
// The row of an upload has the id of the item that it becomes; its data-at keeps app.js from replacing it too early.
"use strict";

(() => {
  const AT_ONCE = 2;
  const TYPES = { pdf: "application/pdf", epub: "application/epub+zip", text: "text/plain" };
  const ENDINGS = { pdf: "pdf", epub: "epub", txt: "text", text: "text", md: "text", markdown: "text" };
  const place = document.querySelector("[data-uploads]");
  // The library that is open gets them, too.
  const into = place.dataset.library ? `?library=${place.dataset.library}` : "";
  const going = new Set();
  const byId = (id) => document.getElementById(id);
  const say = (text) => (byId("said").textContent = text);

  // ── What can go wrong ──

  // Retrying does not help with these.
  const FINAL = ["E_INVALID_FILE_TYPE", "E_FILE_TOO_LARGE", "E_INVALID_KIND", "E_INVALID_REQUEST", "E_FORBIDDEN"];
  // The server found these in the file: the item has failed, and its own row says so.
  const FAILED = ["E_INVALID_FILE_TYPE", "E_FILE_TOO_LARGE"];
  const LOST = "The connection was lost before the whole file arrived. Check the network, then retry.";
  const OVER = "The upload link has expired. Retry to get a new one.";
  const SIGNED_OUT = "You are signed out. Sign in again in another tab, then retry.";
  const STOPPED = "Stopped before the whole file arrived.";

  class Refused extends Error {
    constructor(message, code = "") {
      super(message);
      this.code = code;
    }
  }

  function refusal(status, text, otherwise) {
    try {
      const { code, message } = JSON.parse(text).error;
      return new Refused(status === 401 ? SIGNED_OUT : message, code);
    } catch {
      return new Refused(otherwise);
    }
  }

  async function ask(address, body) {
    const headers = { Accept: "application/json", "Content-Type": "application/json" };
    const sent = fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await sent.catch(() => Promise.reject(new Refused(LOST)));
    const text = await answer.text().catch(() => "");
    if (!answer.ok) throw refusal(answer.status, text, "Nexus did not answer. Retry in a moment.");
    return JSON.parse(text).data;
  }

  // ── One upload: a place, the bytes, the check ──

  async function run(upload) {
    show(upload, "sending");
    try {
      if (upload.target && (await arrived(upload))) return;
      if (!upload.target) await takePlace(upload);
      await send(upload);
      await check(upload);
    } catch (problem) {
      await end(upload, problem);
    }
  }

  async function takePlace(upload) {
    const { file, kind } = upload;
    const fields = { kind, filename: file.name, content_type: TYPES[kind], size_bytes: file.size };
    upload.target = await ask(upload.id ? `/items/${upload.id}/retry-upload` : "/items/upload", fields);
    upload.id = upload.target.media_id;
    takeRow(upload);
  }

  // Before it is sent again: the server knows whether it has arrived, and whether its link is still valid.
  async function arrived(upload) {
    try {
      await check(upload);
      return true;
    } catch (problem) {
      if (problem.code === "E_NOT_FOUND") upload.id = null;
      if (["E_UPLOAD_EXPIRED", "E_INVALID_STATE", "E_NOT_FOUND"].includes(problem.code)) upload.target = null;
      else if (problem.code !== "E_STORAGE_MISSING") throw problem;
      show(upload, "sending");
      return false;
    }
  }

  function send(upload) {
    const { upload_url: url, upload_headers: headers } = upload.target;
    return new Promise((resolve, reject) => {
      if (upload.cancelled) return reject(new Refused(STOPPED));
      const request = (upload.request = new XMLHttpRequest());
      request.upload.addEventListener("progress", (event) => far(upload, event.loaded / upload.file.size));
      request.addEventListener("error", () => reject(new Refused(LOST)));
      request.addEventListener("abort", () => reject(new Refused(STOPPED)));
      request.addEventListener("load", () => {
        if (request.status < 300) return resolve();
        const otherwise = `The file store refused it (${request.status}). Retry in a moment.`;
        reject(request.status === 403 ? new Refused(OVER) : refusal(request.status, request.responseText, otherwise));
      });
      request.open("PUT", url);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.send(upload.file);
    });
  }

  async function check(upload) {
    show(upload, "checking");
    const { media_id: id, duplicate } = await ask(`/items/${upload.id}/ingest${into}`);
    if (!duplicate) return settle(upload);
    upload.row.removeAttribute("id");
    upload.row.querySelector("[data-open]").href = `/items/${id}`;
    show(upload, "have", "You already have this.");
    changed(id);
  }

  async function end(upload, problem) {
    if (upload.cancelled && !upload.again) return forget(upload);
    if (upload.row.dataset.state === "checking" && FAILED.includes(problem.code)) return settle(upload);
    const message = problem instanceof Refused ? problem.message : "Something went wrong on this page. Reload it and try again.";
    show(upload, FINAL.includes(problem.code) ? "refused" : "wrong", message);
  }

  // A cancelled upload leaves nothing behind; if the server can't be told, `nexus clean` removes it later.
  async function forget(upload) {
    remove(upload.row);
    if (!upload.id) return;
    await fetch(`/items/${upload.id}/delete`, { method: "POST" }).catch(() => {});
  }

  // ── Two at a time ──

  function start(upload) {
    going.add(upload);
    upload.cancelled = false;
    show(upload, "waiting");
    next();
  }

  function next() {
    const running = [...going].filter((upload) => upload.running);
    const upload = [...going].find((one) => !one.running);
    if (!upload || running.length >= AT_ONCE) return;
    upload.running = true;
    run(upload).finally(() => {
      upload.running = false;
      going.delete(upload);
      next();
    });
    next();
  }

  addEventListener("beforeunload", (event) => {
    if (going.size) event.preventDefault();
  });

  // ── Its row ──

  function add(file, again = null) {
    const row = byId("upload-row").content.firstElementChild.cloneNode(true);
    const upload = { file, again, kind: kindOf(file), id: again, row, target: null, request: null };
    const name = row.querySelector("[data-name]");
    name.textContent = file.name;
    row.querySelector("[data-size]").textContent = size(file.size);
    row.querySelector("progress").setAttribute("aria-label", `Upload of ${file.name}`);
    for (const of of row.querySelectorAll("[data-of]")) of.textContent = ` ${file.name}`;
    for (const fact of row.querySelectorAll("[data-if]")) if (fact.dataset.if !== upload.kind) fact.remove();
    row.addEventListener("click", (event) => acts[event.target.closest("[data-act]")?.dataset.act]?.(upload));
    place.prepend(row);
    if (again) takeRow(upload);
    if (upload.kind) return start(upload);
    show(upload, "refused", "Nexus reads PDF, EPUB and text files.");
  }

  const acts = {
    retry: start,
    dismiss: (upload) => (upload.id && upload.row.id ? settle(upload) : remove(upload.row)),
    cancel: (upload) => {
      upload.cancelled = true;
      if (upload.running) return upload.request?.abort();
      going.delete(upload);
      end(upload, new Refused(STOPPED));
    },
  };

  // Take the place of the same item in the list, and stay newer than any update of it.
  function takeRow(upload) {
    const { row, id } = upload;
    const shown = byId(`item-${id}`);
    if (shown && shown !== row && upload.again) shown.replaceWith(row);
    else if (shown !== row) shown?.remove();
    row.id = `item-${id}`;
    row.dataset.at = "Infinity";
    row.querySelector("[data-name]").id = `open-${id}`; // the focus moves on to the link with the same id
  }

  // The item's own row takes over.
  function settle(upload) {
    upload.row.dataset.at = "0";
    if (upload.row.contains(document.activeElement)) focusName(upload.row);
    if (byId("reader")) remove(upload.row);
    changed(upload.id);
  }

  const changed = (id) => document.dispatchEvent(new CustomEvent("nexus:changed", { detail: { id } }));

  function show(upload, state, message = "") {
    const { row, file } = upload;
    const focused = row.contains(document.activeElement);
    row.dataset.state = state;
    for (const part of row.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(state);
    row.querySelector("[data-said]").textContent = message;
    row.querySelector("[data-far]").textContent = { waiting: "Waiting", checking: "Checking…" }[state] ?? "";
    if (state === "checking") row.querySelector("progress").removeAttribute("value");
    if (state === "sending") far(upload, 0);
    if (state !== "waiting" && state !== "sending") say(`${file.name}: ${message || "Checking…"}`);
    if (focused && !row.contains(document.activeElement)) focusName(row);
  }

  // Screen readers hear each quarter.
  function far(upload, part) {
    const { row, file } = upload;
    const percent = Math.floor(Math.min(part, 1) * 100);
    row.querySelector("progress").value = part;
    row.querySelector("[data-far]").textContent = `${percent} %`;
    const quarter = Math.floor(percent / 25) * 25;
    if (quarter !== upload.quarter) say(quarter ? `${file.name}: ${quarter} %` : `Uploading ${file.name}`);
    upload.quarter = quarter;
  }

  // When a button disappears, the row's name gets the focus.
  const focusName = (row) => row.querySelector("[data-name]").focus();

  function remove(row) {
    if (row.contains(document.activeElement)) (byId("files") ?? byId("main")).focus();
    row.remove();
  }

  function kindOf(file) {
    const ending = file.name.toLowerCase().split(".").pop();
    return ENDINGS[ending] ?? Object.keys(TYPES).find((kind) => TYPES[kind] === file.type);
  }

  // The same words as in nexus/web/views/filters.py.
  function size(count) {
    if (count < 1000) return `${count} ${count === 1 ? "byte" : "bytes"}`;
    const units = ["kB", "MB", "GB"];
    let [amount, unit] = [count / 1000, 0];
    for (; amount >= 999.5 && unit < units.length - 1; unit++) amount /= 1000;
    return `${amount.toFixed(amount < 9.95 ? 1 : 0)} ${units[unit]}`;
  }

  // ── Choosing files: the buttons, and dropping them anywhere on the library's page ──

  document.addEventListener("change", (event) => {
    const { type, id, files, dataset } = event.target;
    if (type !== "file") return;
    for (const file of files) if (id === "files" || dataset.uploadAgain) add(file, dataset.uploadAgain ?? null);
    event.target.value = ""; // so that the same file can be chosen again
  });

  const drop = byId("drop");
  const isFiles = (event) => drop && event.dataTransfer?.types.includes("Files");

  function over(event) {
    if (!isFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    drop.hidden = false;
  }

  document.addEventListener("dragenter", over);
  document.addEventListener("dragover", over);
  // It covers the page, so leaving it means leaving the page.
  drop?.addEventListener("dragleave", () => (drop.hidden = true));
  document.addEventListener("drop", (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    drop.hidden = true;
    for (const file of event.dataTransfer.files) add(file);
  });
})();
