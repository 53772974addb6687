// Marks the passage that an address names, as search results do (?from=3&mark=120-180#mark), and goes there.
// Offsets count characters of the fragment's text, which is exactly the text content of its section.
(() => {
  "use strict";

  const asked = new URLSearchParams(location.search);
  const section = document.getElementById(`f${asked.get("from")}`);
  const [, start, end] = /^(\d{1,9})-(\d{1,9})$/.exec(asked.get("mark") ?? "") ?? [];
  if (!section || end === undefined) return;

  // The server counts characters as Python does, where an emoji is one; here it is two.
  function unitsOf(text, characters) {
    let units = 0;
    for (const one of text) {
      if (!characters--) break;
      units += one.length;
    }
    return units;
  }

  function markPassage(first, last) {
    const whole = section.textContent;
    const [from, until] = [unitsOf(whole, first), unitsOf(whole, last)];
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    const parts = [];
    let at = 0;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const [begins, ends] = [Math.max(from - at, 0), Math.min(until - at, node.length)];
      if (begins < ends && node.data.slice(begins, ends).trim()) parts.push([node, begins, ends]);
      at += node.length;
    }
    return parts.map(([node, begins, ends]) => {
      const mark = document.createElement("mark");
      const text = node.splitText(begins);
      text.splitText(ends - begins);
      text.replaceWith(mark);
      mark.append(text);
      return mark;
    });
  }

  const [first] = markPassage(Number(start), Number(end));
  if (!first) return;
  first.id = "mark";
  const go = () => first.scrollIntoView({ block: "center" });
  go();
  // Pictures above it may move it until they are there.
  if (document.readyState !== "complete") addEventListener("load", go, { once: true });
})();
