"use strict";
(() => {
  const items = [...document.querySelectorAll(".item")];
  const form = document.getElementById("filter");
  const count = document.getElementById("count");
  const unfold = form.elements.unfold;
  const texts = new Map();
  const text = (item) => texts.get(item) ?? texts.set(item, item.textContent.toLowerCase()).get(item);
  const shown = () => items.filter((item) => !item.hidden);

  const filter = () => {
    const states = new Set([...form.querySelectorAll("[name=state]:checked")].map((box) => box.value));
    const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of items) {
      item.hidden = !(states.has(item.dataset.state)
        && chosen.every((select) => item.dataset[select.name] === select.value)
        && words.every((word) => text(item).includes(word)));
    }
    count.textContent = `${shown().length} of ${items.length} shown`;
    label();
  };

  const label = () => {
    unfold.textContent = shown().some((item) => !item.open) ? "Unfold all" : "Fold all";
    unfold.disabled = !shown().length;
  };

  const step = (by) => {
    const list = shown();
    const here = list.findIndex((item) => item.contains(document.activeElement));
    const next = list[here < 0 ? 0 : Math.min(list.length - 1, Math.max(0, here + by))];
    next?.querySelector("summary").focus();
    next?.scrollIntoView({ block: "nearest" });
  };

  let waiting;
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  form.addEventListener("submit", (event) => event.preventDefault());
  unfold.addEventListener("click", () => {
    const open = shown().some((item) => !item.open);
    for (const item of shown()) item.open = open;
  });
  let toggled;
  document.addEventListener("toggle", () => { clearTimeout(toggled); toggled = setTimeout(label, 50); }, true);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") {
      if (event.key === "Escape") { event.preventDefault(); event.target.blur(); }
      return;
    }
    const act = { "/": () => form.elements.text.focus(), j: () => step(1), k: () => step(-1) }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  form.hidden = false;
  filter();
})();
