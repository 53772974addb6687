// What is typed in the editor is not lost by leaving the page unsaved.
"use strict";

(() => {
  const form = document.querySelector("form[data-guard]");
  let touched = false;
  form?.addEventListener("input", () => (touched = true));
  form?.addEventListener("submit", () => (touched = false));
  addEventListener("beforeunload", (event) => {
    if (touched) event.preventDefault();
  });
})();
