// Follow a job that runs: the page is loaded again until nothing runs any more.
import { load } from "./pages.js";

const EVERY_MS = 1000;

async function renew() {
  if (!document.hidden) {
    try {
      const page = await load(location.href);
      const fresh = page.getElementById("main");
      const runs = page.querySelector("script[src*='/job.js']");
      if (fresh) document.getElementById("main").replaceWith(document.adoptNode(fresh));
      if (!runs) return;
    } catch {
      // The server may be restarting; the next attempt follows.
    }
  }
  setTimeout(renew, EVERY_MS);
}

setTimeout(renew, EVERY_MS);
