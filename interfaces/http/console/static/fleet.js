// Keep the list of agents fresh while it is looked at: the page is loaded again, and its parts are put in place.
import { load } from "./pages.js";

const EVERY_MS = 10000;

async function renew() {
  const chosen = document.activeElement;
  const busy = chosen && chosen !== document.body && chosen.closest("form, table");
  if (document.hidden || busy || String(getSelection())) return;
  try {
    const page = await load(location.href);
    const fresh = page.getElementById("main");
    if (fresh && page.querySelector("table.fleet")) document.getElementById("main").replaceWith(document.adoptNode(fresh));
  } catch {
    // The page says how old it is; the next attempt follows.
  }
}

setInterval(renew, EVERY_MS);
