// Load another page of this server as a document, and put its parts in place of those that are shown.
// A document that a request parsed runs no script, and no text of it passes through a string of markup.

/** Return the document at an address. `signal` ends the request. */
export function load(address, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => (request.response ? resolve(request.response) : reject(new Error("no page")));
    request.onerror = () => reject(new Error("offline"));
    request.onabort = () => reject(new Error("aborted"));
    signal?.addEventListener("abort", () => request.abort());
    request.send();
  });
}

/** Replace the elements with these ids by those of another document. Elements that it lacks stay. */
export function swap(page, ids) {
  for (const id of ids) {
    const fresh = page.getElementById(id);
    const old = document.getElementById(id);
    if (fresh && old) old.replaceWith(document.adoptNode(fresh));
  }
}

/** Write a sentence into an element. */
export function say(id, text) {
  const place = document.getElementById(id);
  if (place && place.textContent !== text) place.textContent = text;
}
