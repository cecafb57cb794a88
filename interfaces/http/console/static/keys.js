// Keys that work on every page, and the help that lists all keys of the page.
// Single letters act only outside of fields, never with Ctrl, Cmd or Alt, and can be switched off (Theme).

/** Keys of the slider while it has the focus: the jump or "play", and the words of the help. */
export const SLIDER_KEYS = [
  { keys: [" "], shown: ["space"], to: "play", does: "plays the life from here, or pauses" },
  { keys: ["n", "PageDown"], shown: ["n", "Page Down"], to: "next-turn", does: "next turn" },
  { keys: ["p", "PageUp"], shown: ["p", "Page Up"], to: "previous-turn", does: "previous turn" },
  { keys: ["e"], to: "next-edit", does: "next edit of memory" },
  { keys: ["E"], to: "previous-edit", does: "previous edit of memory" },
  { keys: ["s"], to: "next-summary", does: "next summary" },
  { keys: ["S"], to: "previous-summary", does: "previous summary" },
  { keys: ["f"], to: "next-failure", does: "next failure" },
  { keys: ["F"], to: "previous-failure", does: "previous failure" },
  { keys: ["g"], to: "first", does: "first event" },
  { keys: ["G"], to: "last", does: "last event" },
];

/** Keys of the page: each clicks the first link that its selector finds, and exists only with such a link. */
const PAGE_KEYS = [
  { keys: ["1"], click: "nav.tabs a[data-pane=chat]", does: "chat" },
  { keys: ["2"], click: "nav.tabs a[data-pane=overview]", does: "overview of the moment" },
  { keys: ["3"], click: "nav.tabs a[data-pane=records]", does: "records" },
  { keys: ["y"], click: "a[data-copy]", does: "copies the link to this moment" },
];
const HELP = { keys: ["?"], does: "shows or closes this help" };
const FIELDS = "input:not([type=range]), textarea, select, [contenteditable]";

/** Return what a key does in a table; undefined if it does nothing. */
export const meaning = (table, key) => table.find((row) => row.keys.includes(key));

if (document.documentElement.dataset.keys !== "off") {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELDS)) return;
    if (event.key === HELP.keys[0]) help();
    else if (document.querySelector("dialog[open]")) return;
    else {
      const link = document.querySelector(meaning(PAGE_KEYS, event.key)?.click ?? "no-element");
      if (!link) return;
      link.click();
    }
    event.preventDefault();
  });
}

/** Show the keys of this page, or close the help. */
function help() {
  const shown = document.getElementById("keys");
  if (shown?.open) return shown.close();
  shown?.remove(); // closed a moment ago
  const dialog = element("dialog", "", { id: "keys", "aria-labelledby": "keys-title" });
  dialog.append(element("h2", "Keys", { id: "keys-title" }));
  const here = PAGE_KEYS.filter((row) => document.querySelector(row.click));
  dialog.append(table("On this page", [...here, HELP]));
  if (document.getElementById("slider")) dialog.append(table("With the slider in focus", SLIDER_KEYS));
  const form = element("form", "", { method: "dialog" });
  form.append(element("button", "Close"));
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function table(caption, rows) {
  const found = element("table", "");
  found.append(element("caption", caption));
  for (const row of rows) {
    const line = element("tr", "");
    const head = element("th", "", { scope: "row" });
    for (const key of row.shown ?? row.keys) head.append(element("kbd", key), " ");
    line.append(head, element("td", row.does));
    found.append(line);
  }
  return found;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}
