// Let the search work on a page that was opened from a folder: browsers start no worker for file:// addresses.
// The script of the worker runs in a hidden frame instead. The frame has the origin of the page, so the page and
// the frame call each other directly.
(() => {
  "use strict";
  if (location.protocol !== "file:") return;

  const load = (frame, address) =>
    new Promise((resolve, reject) => {
      const script = frame.document.createElement("script");
      script.src = address;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`could not load ${address}`));
      frame.document.body.append(script);
    });

  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.element = document.createElement("iframe");
      this.element.hidden = true;
      document.body.append(this.element);
      this.frame = this.element.contentWindow;
      this.frame.postMessage = (data) => this.report(new MessageEvent("message", { data }));
      this.frame.importScripts = (...addresses) =>
        addresses.reduce((earlier, each) => earlier.then(() => load(this.frame, each)), Promise.resolve());
      this.ready = load(this.frame, String(address));
      this.ready.catch((error) => this.report(new ErrorEvent("error", { error, message: error.message })));
    }

    report(event) {
      this.dispatchEvent(event);
      this[`on${event.type}`]?.(event);
    }

    postMessage(data) {
      const copy = structuredClone(data);
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data: copy })), () => {});
    }

    terminate() {
      this.element.remove();
    }
  }

  window.Worker = FrameWorker;
})();
