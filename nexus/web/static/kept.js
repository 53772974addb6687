// What this browser keeps for its user: text that is not saved yet, recent searches, places in texts, the last list.
// It is sealed with a key that each page brings along and that is nowhere in the browser's files, so nobody can read it
// there. Signing out deletes it. Where a browser can't seal, because the connection is open, nothing is kept.
"use strict";

window.nexusKept = (() => {
  const { user, seal } = document.body.dataset;
  const PREFIX = `nexus:kept:${user}:`;
  // As Nexus kept them once, for anybody to read.
  const OPEN = /^nexus:(draft:|recent:|place:|list$)/;
  const NONCE = 12;
  const known = new Map();
  let key = null;
  let writing = Promise.resolve();

  // What begins with `tab:` goes with its tab.
  const storageOf = (name) => (name.startsWith("tab:") ? sessionStorage : localStorage);
  const bytesOf = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  const textOf = (bytes) => btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
  const sealing = (name, nonce) => ({ name: "AES-GCM", iv: nonce, additionalData: new TextEncoder().encode(PREFIX + name) });

  function removeFrom(storage, isMeant) {
    Object.keys(storage).filter(isMeant).forEach((one) => storage.removeItem(one));
  }

  async function start() {
    try {
      for (const storage of [localStorage, sessionStorage]) removeFrom(storage, (one) => OPEN.test(one));
      key = await crypto.subtle.importKey("raw", bytesOf(seal), "AES-GCM", false, ["encrypt", "decrypt"]);
      await look();
    } catch {
      key = null; // storage is disabled, or nothing can be sealed
    }
  }

  const look = () => Promise.all([localStorage, sessionStorage].flatMap((storage) => Object.keys(storage)).filter((one) => one.startsWith(PREFIX)).map((one) => read(one.slice(PREFIX.length))));

  async function read(name) {
    const sealed = storageOf(name).getItem(PREFIX + name);
    if (sealed === null) return known.delete(name);
    try {
      const bytes = bytesOf(sealed);
      const opened = await crypto.subtle.decrypt(sealing(name, bytes.subarray(0, NONCE)), key, bytes.subarray(NONCE));
      known.set(name, JSON.parse(new TextDecoder().decode(opened)));
    } catch {
      storageOf(name).removeItem(PREFIX + name); // sealed with an earlier key
    }
  }

  async function write(name) {
    if (!key || !known.has(name)) return storageOf(name).removeItem(PREFIX + name);
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE));
    const words = new TextEncoder().encode(JSON.stringify(known.get(name)));
    const sealed = new Uint8Array(await crypto.subtle.encrypt(sealing(name, nonce), key, words));
    if (key && known.has(name)) storageOf(name).setItem(PREFIX + name, textOf([...nonce, ...sealed]));
  }

  function set(name, value) {
    if (!key) return;
    if (value === null) known.delete(name);
    else known.set(name, value);
    writing = writing.then(() => write(name)).catch(() => known.delete(name)); // storage is full
  }

  // For good: what is still being written is not kept either.
  function clear() {
    key = null;
    known.clear();
    try {
      for (const storage of [localStorage, sessionStorage]) removeFrom(storage, (one) => one.startsWith(PREFIX));
    } catch {
      // storage is disabled
    }
  }

  // Other windows write, too.
  addEventListener("storage", ({ key: one }) => key && one?.startsWith(PREFIX) && read(one.slice(PREFIX.length)));
  addEventListener("pageshow", ({ persisted }) => persisted && key && look());

  const names = (begin) => [...known.keys()].filter((one) => one.startsWith(begin));
  return { ready: start(), get: (name) => known.get(name), set, names, clear };
})();
