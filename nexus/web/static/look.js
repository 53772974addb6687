// The reading settings of this browser, applied before anything is painted. Kept in "nexus:look" by static/reader.js.
"use strict";

(() => {
  const root = document.documentElement;

  function kept() {
    try {
      return JSON.parse(localStorage.getItem("nexus:look")) ?? {};
    } catch {
      return {}; // storage is disabled
    }
  }

  function putOn() {
    const look = kept();
    for (const part of ["theme", "face", "width"]) {
      if (look[part]) root.dataset[part] = look[part];
      else delete root.dataset[part];
    }
    root.style.setProperty("--text-size", Number(look.size) || 1);
  }

  addEventListener("storage", putOn);
  document.addEventListener("nexus:look", putOn);
  putOn();
})();
