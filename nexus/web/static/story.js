// The editor of a story: the evidence follows the claim being edited, and claims come and go.
// The page works without it.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  const inEditor = (event) => Boolean(event.target.closest?.("#editor"));
  const typed = () => byId("editor").dispatchEvent(new CustomEvent("nexus:typed", { bubbles: true }));

  document.addEventListener("keydown", (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (byId("save")) byId("editor").requestSubmit(byId("save"));
  });

  // ── The evidence of the claim with the focus is highlighted, and scrolled into view ──

  document.addEventListener("focusin", (event) => {
    if (inEditor(event)) show(event.target.closest(".claim")?.dataset.claim);
  });

  function show(number) {
    const article = byId("article");
    for (const mark of article.querySelectorAll("mark")) {
      mark.classList.toggle("is-shown", mark.dataset.claims.split(" ").includes(number));
    }
    const first = article.querySelector("mark.is-shown");
    if (!first) return;
    // Only within the article: if it is below the editor, nothing moves.
    const far = first.getBoundingClientRect().top - article.getBoundingClientRect().top;
    article.scrollBy({ top: far - article.clientHeight / 3 });
  }

  // ── Claims come and go ──

  document.addEventListener("click", (event) => {
    if (!inEditor(event) || !event.target.matches("[data-remove]")) return;
    // Disabled fields are not sent, and can be put back.
    const fields = event.target.closest(".claim").querySelector("fieldset");
    fields.disabled = !fields.disabled;
    event.target.textContent = fields.disabled ? "Undo" : "Remove";
    typed();
  });

  document.addEventListener("input", (event) => {
    // Its quote was not found for these words.
    event.target.closest(".claim")?.classList.add("is-changed");
    const filled = event.target.closest(".claim.is-blank");
    if (!filled) return;
    filled.classList.remove("is-blank");
    const list = filled.parentElement;
    if (list.children.length < Number(list.dataset.most)) list.append(blankLike(filled));
  });

  function blankLike(claim) {
    const next = claim.cloneNode(true);
    next.classList.add("is-blank");
    next.classList.remove("is-changed");
    const number = claim.parentElement.children.length;
    const raised = (text) => text.replace(String(number), String(number + 1));
    for (const field of next.querySelectorAll("textarea")) {
      field.value = "";
      field.id = raised(field.id);
    }
    for (const label of next.querySelectorAll("label")) {
      label.htmlFor = raised(label.htmlFor);
      label.innerHTML = raised(label.innerHTML);
    }
    return next;
  }
})();
