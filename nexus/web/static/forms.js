// Forms: sent in the background, so that a server that is down costs nothing that was typed. Text is kept in this
// browser until it is saved, and leaving with unsaved text asks first. Without this script they are plain forms.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const user = document.body.dataset.user;
  const kept = window.nexusKept;
  // Each page keeps what is typed in it beside what others keep, so that two windows can't overwrite each other.
  const here = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  const MOST_KEPT = 5;
  const TEXT = "textarea, input:not([type]), input[type=text], input[type=email], input[type=url]";
  const FIELD = `${TEXT}, select, input[type=radio], input[type=checkbox]`;

  // ── What a form holds ──

  const isOurs = (form) => form.getAttribute("method")?.toLowerCase() === "post";
  const holdsText = (form) => isOurs(form) && fieldsOf(form).some((field) => field.matches(TEXT));
  const fieldsOf = (form) => [...form.elements].filter((one) => one.name && one.matches(FIELD) && !one.readOnly);
  const isBox = (field) => field.type === "radio" || field.type === "checkbox";
  const keyOf = (form) => `draft:${form.dataset.keep ?? `${form.getAttribute("action")}#${form.id}`}|`;

  // A claim that was taken out is sent as an empty one, and kept as one.
  const valueOf = (field) => {
    if (isBox(field)) return field.checked ? field.value : "";
    return field.matches(":disabled") ? "" : field.value;
  };
  const savedValueOf = (field) => {
    if (isBox(field)) return field.defaultChecked ? field.value : "";
    if (field.matches("select")) return ([...field.options].find((one) => one.defaultSelected) ?? field.options[0])?.value;
    return field.defaultValue;
  };
  const pairs = (form) => fieldsOf(form).map((field) => [field.name, valueOf(field)]);
  const filled = (fields) => JSON.stringify(fields.filter(([, value]) => value));
  const hasTyped = (form) =>
    form.hasAttribute("data-typed") || fieldsOf(form).some((field) => valueOf(field) !== savedValueOf(field));

  // ── Kept in this browser: for each form, what each page holds ──

  // The latest first.
  const read = (key) => kept.names(key).map((name) => [name.slice(key.length), kept.get(name)]).sort(([, one], [, other]) => other.at - one.at);
  const isKept = (form) => holdsText(form) && kept.get(keyOf(form) + here) !== undefined;
  const forget = (key, page = here) => kept.set(key + page, null);

  function keep(form) {
    if (!user || !holdsText(form)) return;
    const key = keyOf(form);
    if (!hasTyped(form)) return forget(key);
    const hidden = [...form.elements].filter((one) => one.type === "hidden").map((one) => [one.name, one.value]);
    kept.set(key + here, { at: Date.now(), fields: pairs(form), hidden });
    read(key).slice(MOST_KEPT).forEach(([page]) => forget(key, page));
  }

  document.addEventListener("input", (event) => event.target.form && keep(event.target.form));
  document.addEventListener("nexus:typed", (event) => keep(event.target));

  // ── A file that is dropped anywhere on a form goes into its field, instead of replacing the page ──

  const fileFieldAt = (event) =>
    event.dataTransfer?.types.includes("Files") && event.target.closest?.(".by-hand")?.querySelector("input[type=file]");
  document.addEventListener("dragover", (event) => fileFieldAt(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    const field = fileFieldAt(event);
    if (!field) return;
    event.preventDefault();
    field.files = event.dataTransfer.files;
  });

  // ── What an earlier page kept is offered ──

  function offer(form) {
    if (!user || !holdsText(form)) return;
    form.querySelector(":scope > .unsaved")?.remove();
    const others = read(keyOf(form)).filter(([page]) => page !== here);
    for (const [page, draft] of others) {
      if (filled(draft.fields) === filled(pairs(form))) forget(keyOf(form), page);
      else return putOffer(form, page, draft);
    }
  }

  function putOffer(form, page, draft) {
    const notice = byId("unsaved").content.firstElementChild.cloneNode(true);
    const time = notice.querySelector("time");
    time.dateTime = new Date(draft.at).toISOString();
    time.textContent = timeOf(new Date(draft.at));
    notice.querySelector("[data-restore]").addEventListener("click", () => {
      notice.remove();
      fill(form, draft);
      forget(keyOf(form), page);
      offer(form);
    });
    notice.querySelector("[data-discard]").addEventListener("click", () => {
      forget(keyOf(form), page);
      offer(form);
    });
    form.prepend(notice);
    form.closest("[data-if-kept]")?.removeAttribute("hidden");
    for (let around = form.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  }

  function timeOf(date) {
    const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    const day = { day: "numeric", month: "long" };
    const isToday = date.toDateString() === new Date().toDateString();
    return date.toLocaleString("en-GB", isToday ? time : { ...day, ...time });
  }

  // Each field says that it was typed in: a list that grows as it is filled has room for the next one then.
  function fill(form, { fields, hidden = [] }) {
    const seen = {};
    for (const [name, value] of fields) {
      seen[name] = (seen[name] ?? -1) + 1;
      const field = fieldsOf(form).filter((one) => one.name === name)[seen[name]];
      if (!field || valueOf(field) === value) continue;
      if (isBox(field)) field.checked = Boolean(value);
      else field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    // With the revision that it was typed for, so that a later one is not overwritten unseen.
    for (const [name, value] of hidden) form.elements[name].value = value;
  }

  const offerAll = () => kept.ready.then(() => [...document.forms].forEach(offer));
  kept.ready.then(() => [...document.forms].filter(hasTyped).forEach(keep));
  document.addEventListener("nexus:put", offerAll);

  // ── Sending ──

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !user || !isOurs(form) || form.enctype === "multipart/form-data") return;
    event.preventDefault();
    if (!form.inert && mayGo(form)) send(form, event.submitter);
  });

  // Signing out deletes what is kept here, whether the server answers or not: nobody else who uses this browser finds it.
  function mayGo(form) {
    if (!form.hasAttribute("data-signs-out")) return true;
    const may = !kept.names("draft:").length || confirm("You have unsaved changes. Signing out deletes them. Sign out?");
    if (may) kept.clear();
    return may;
  }

  async function send(form, submitter) {
    const address = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
    const body = new URLSearchParams(new FormData(form, submitter));
    const focused = document.activeElement;
    for (const said of document.querySelectorAll("[data-form-said]")) said.remove();
    form.inert = true; // what is typed now would not be sent
    form.ariaBusy = "true";
    try {
      const headers = { Accept: "text/html", "Nexus-Form": "1" };
      const answer = await fetch(address, { method: "POST", body, headers });
      settle(form, submitter, answer, await answer.text());
    } catch {
      say(form, submitter, "Nexus did not answer.");
    } finally {
      form.inert = false;
      form.ariaBusy = null;
      if (focused.isConnected) focused.focus({ preventScroll: true });
    }
  }

  function settle(form, submitter, answer, text) {
    const next = answer.headers.get("Nexus-Location");
    if (next !== null) return leaveFor(form, next);
    const page = new DOMParser().parseFromString(text, "text/html");
    const main = page.getElementById("main");
    if (main) return show(form, answer, page.title, main);
    if (answer.status === 401) return say(form, submitter, "You are signed out.", byId("signed-out"));
    say(form, submitter, page.querySelector(".notice")?.textContent.trim() ?? `Nexus had a problem (${answer.status}).`);
  }

  function leaveFor(form, next) {
    forget(keyOf(form));
    leaving = true;
    document.dispatchEvent(new CustomEvent("nexus:leave"));
    const to = new URL(next, location.href);
    if (to.pathname + to.search !== location.pathname + location.search) return location.assign(to);
    history.replaceState(null, "", to);
    location.reload();
  }

  // The page that answers takes the place of this one. If it does not hold what was typed, that is put back.
  function show(form, answer, title, main) {
    const [key, typed] = [keyOf(form), { fields: pairs(form) }];
    if (answer.ok) forget(key);
    document.title = title;
    htmx.swap(byId("main"), main.innerHTML, { swapStyle: "innerHTML", swapDelay: 0, settleDelay: 0 });
    const again = [...document.forms].find((one) => keyOf(one) === key);
    if (again && !answer.ok && !hasTyped(again)) fill(again, typed);
    document.dispatchEvent(new CustomEvent("nexus:put", { detail: { id: "main" } }));
    const wrong = byId("main").querySelector("[role=alert], .shown-once");
    wrong?.scrollIntoView({ block: "nearest" });
    byId("main").querySelector("[aria-invalid=true], [autofocus]")?.focus({ preventScroll: true });
  }

  // Beside the button that was pressed: in the form's own place for words, or else under it.
  function say(form, submitter, what, more = null) {
    const notice = document.createElement("p");
    notice.className = "notice notice-failed";
    notice.setAttribute("role", "alert");
    notice.dataset.formSaid = "";
    const isSafe = isKept(form) ? " Nothing is lost: what you typed is kept in this browser." : "";
    notice.append(`${what}${holdsText(form) ? ` Not saved.${isSafe}` : ""} `, more ? more.content.cloneNode(true) : "Try again in a moment.");
    const isInside = !submitter || form.contains(submitter);
    const place = isInside ? (form.querySelector("[data-says]") ?? form) : submitter.closest(".acts");
    if (place.matches("[data-says]")) place.replaceChildren(notice);
    else place.after(notice);
    notice.scrollIntoView({ block: "nearest" });
  }

  // What htmx sends is saved, too.
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.successful && detail.elt.matches("form")) forget(keyOf(detail.elt));
  });
  document.addEventListener("htmx:afterSwap", offerAll);
  document.addEventListener("htmx:beforeOnLoad", ({ detail }) => {
    if (detail.xhr.getResponseHeader("HX-Redirect")) leaving = true; // it was saved, so nothing is left to ask about
  });

  // ── Leaving ──

  let leaving = false;
  addEventListener("pageshow", () => {
    leaving = false;
    offerAll();
  });
  addEventListener("beforeunload", (event) => {
    if (!leaving && [...document.forms].some((form) => holdsText(form) && hasTyped(form))) event.preventDefault();
  });
})();
