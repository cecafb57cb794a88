// Learn of what is written to an agent while its page is looked at. The log is the buffer: a page that was hidden, asleep
// or cut off asks for what came after the last record that it has.

const RETRY_MS = 3000;

/** Call `saw` with the seq of each record that is written to an agent after the seq `last`. */
export function watch(agent, last, saw) {
  let live = null;
  let later = 0;
  function listen() {
    clearTimeout(later);
    if (document.hidden) {
      live?.close();
      live = null;
      return;
    }
    if (live && live.readyState !== EventSource.CLOSED) return;
    live = new EventSource(`/api/v1/agents/${encodeURIComponent(agent)}/stream?after=${last}`);
    live.addEventListener("record", (event) => saw((last = Number(event.lastEventId))));
    // A browser repairs a broken connection itself. It gives up one that was refused, as by a proxy whose server restarts.
    live.addEventListener("error", (event) => {
      if (event.target.readyState === EventSource.CLOSED) later = setTimeout(listen, RETRY_MS);
    });
  }
  document.addEventListener("visibilitychange", listen);
  window.addEventListener("online", listen);
  listen();
}
