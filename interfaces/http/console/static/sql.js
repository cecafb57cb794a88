// Run a query with Ctrl-Enter without leaving the page, stop it, and keep a history of queries in this browser.
import { load, say } from "./pages.js";

const KEY = "everlog-queries";
const KEPT = 30;
let running = null;

/** Return the queries that were run in this browser, the newest first. A browser may refuse to keep anything. */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

function keep(queries) {
  try {
    localStorage.setItem(KEY, JSON.stringify(queries.slice(0, KEPT)));
  } catch {
    // There is no history then.
  }
}

function showHistory() {
  const place = document.getElementById("history");
  const queries = kept();
  place.hidden = queries.length === 0;
  place.querySelector("ul").replaceChildren(...queries.map((query) => {
    const link = document.createElement("a");
    link.href = `/console/sql?${new URLSearchParams({ q: query })}`;
    link.textContent = query.length > 160 ? `${query.slice(0, 160)}…` : query;
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
}

/** Load the page of a query, and put it in place. The server stops a query that nobody waits for. */
async function run(address) {
  running?.abort();
  const mine = (running = new AbortController());
  const button = document.querySelector("#ask button:not([type])");
  const stop = document.getElementById("stop");
  button.textContent = "Running…";
  stop.hidden = false;
  say("sql-status", "The query runs.");
  try {
    const page = await load(address, mine.signal);
    if (page.getElementById("answer") === null) return location.assign(address); // signed out, or refused
    history.pushState(null, "", address);
    document.title = page.title;
    document.getElementById("answer").replaceWith(document.adoptNode(page.getElementById("answer")));
    say("sql-status", "");
  } catch (error) {
    say("sql-status", error.message === "aborted" ? "Stopped." : "The server does not answer. The query is still here.");
  } finally {
    if (running === mine) {
      running = null;
      button.textContent = "Run";
      stop.hidden = true;
    }
  }
}

function start(form) {
  const query = document.getElementById("q");
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = query.value.trim();
    if (!text) return;
    keep([text, ...kept().filter((one) => one !== text)]);
    showHistory();
    run(`${form.getAttribute("action")}?${new URLSearchParams({ q: text })}`);
  });
  document.getElementById("stop").addEventListener("click", () => {
    running?.abort();
    query.focus();
  });
  document.getElementById("forget").addEventListener("click", () => {
    keep([]);
    showHistory();
    query.focus();
  });
  addEventListener("popstate", () => location.reload());
  showHistory();
}

const form = document.getElementById("ask");
if (form) start(form);
