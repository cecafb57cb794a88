// Talk with an agent: send, see the reply as it is written, cancel. A run is in the log from its first moment: a stream
// that breaks is continued by the browser after the last record that it has, and what is shown in the end is the page
// that the server renders.
import { load, say, swap } from "./pages.js";
import { watch } from "./watch.js";

const chat = document.getElementById("chat");
const form = document.getElementById("say");
if (chat && form) start();

/** Return a name as one part of a path of the console: the same as `tilde_names.py` writes. */
export function written(name) {
  const plain = (byte) => /[A-Za-z0-9_-]/.test(String.fromCharCode(byte));
  const bytes = Array.from(new TextEncoder().encode(name));
  return bytes.map((byte) => (plain(byte) ? String.fromCharCode(byte) : `~${byte.toString(16).toUpperCase().padStart(2, "0")}`)).join("");
}

/** Return an id for a message: a UUID of version 7, so that a repeated request is known. */
export function newId(now = Date.now()) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  for (let place = 0; place < 6; place++) bytes[place] = Math.floor(now / 2 ** (8 * (5 - place))) % 256;
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function start() {
  const apiOf = (agent) => `/api/v1/agents/${encodeURIComponent(agent)}`;
  const api = apiOf(chat.dataset.agent);
  const fork = { at: 0, made: "" };
  const words = document.getElementById("words");
  const cancel = document.getElementById("cancel");
  const coming = document.getElementById("coming");
  let id = newId();
  let drawn = null;
  let stream = null;

  async function ask(method, path, body, headers = {}) {
    const answer = await fetch(path, {
      method,
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const said = answer.status === 204 ? null : await answer.json();
    if (!answer.ok) throw new Error(said?.message ?? `The server answered ${answer.status}.`);
    return said;
  }

  function line(kind) {
    let last = coming.lastElementChild;
    if (!last || last.dataset.kind !== kind) {
      last = document.createElement("div");
      last.dataset.kind = kind;
      last.className = kind === "thought" ? "said thinking" : "said";
      last.dir = "auto";
      coming.append(last);
    }
    return last;
  }

  function preview(shape) {
    if (shape.kind === "restart") return coming.replaceChildren();
    coming.hidden = false;
    if (shape.call) line(`call ${shape.call.name}`).textContent = `calls ${shape.call.name}…`;
    else if (shape.kind === "progress") line("progress").textContent = shape.text;
    else if (shape.text) line(shape.kind).append(shape.text);
  }

  /** Return what a person wrote into forms of decisions, and where the focus is: a newer talk must not take it away. */
  function begun() {
    const kept = [];
    for (const form of document.querySelectorAll("[data-decide]")) {
      const fields = Array.from(form.elements, (one) => (one.type === "checkbox" ? one.checked : one.value));
      kept.push({ seq: form.dataset.decide, fields, open: form.querySelector("details").open, at: Array.from(form.elements).indexOf(document.activeElement) });
    }
    return kept;
  }

  function keep(kept) {
    for (const one of kept) {
      const form = document.querySelector(`[data-decide="${one.seq}"]`);
      if (!form) continue;
      form.querySelector("details").open = one.open;
      Array.from(form.elements).forEach((field, place) => {
        if (field.type === "checkbox") field.checked = one.fields[place];
        else if (field.type !== "submit" && field.type !== "hidden") field.value = one.fields[place];
        if (place === one.at) field.focus();
      });
    }
  }

  /** Decide a call that waits, and follow the turn that the decision begins. */
  async function decide(form, decision) {
    const given = new FormData(form);
    const body = { decision, reason: given.get("reason"), wait: false };
    const text = form.querySelector("[name=arguments]");
    try {
      if (decision === "approve" && text.value.trim() !== text.dataset.was.trim()) body.arguments = JSON.parse(text.value);
      if (decision === "approve" && given.get("always")) body.always = true;
      const run = await ask("POST", `${api}/approvals/${form.dataset.decide}`, body);
      await draw().catch(() => {});
      follow(run.run);
    } catch (error) {
      await draw().catch(() => {});
      say("status", error instanceof SyntaxError ? `The arguments are no JSON: ${error.message}. Nothing was decided.` : error.message);
    }
  }

  /** Put the talk that the server renders in place, soon: several records of a commit are drawn once. */
  function draw() {
    drawn ??= new Promise((done) => setTimeout(done, 60)).then(async () => {
      drawn = null;
      const page = await load(location.href);
      const kept = begun();
      swap(page, ["talk"]);
      keep(kept);
      offer();
    });
    return drawn;
  }

  function toEnd() {
    window.scrollTo(0, document.documentElement.scrollHeight);
  }

  /** Show the buttons of forks, which need this script. */
  function offer() {
    for (const button of document.querySelectorAll("[data-edit], [data-again]")) button.hidden = false;
  }

  function beginFork(seq, text) {
    fork.at = seq - 1;
    fork.made = "";
    document.getElementById("fork").hidden = false;
    document.getElementById("fork-at").textContent = String(seq);
    document.getElementById("fork-name").value = `${chat.dataset.agent}-at-${seq}-${newId().slice(-4)}`;
    words.value = text;
    words.focus();
  }

  function endFork() {
    fork.at = 0;
    document.getElementById("fork").hidden = true;
  }

  function follow(run) {
    cancel.hidden = false;
    say("status", "The agent is at work…");
    stream?.close();
    stream = new EventSource(`${api}/runs/${run}/stream`);
    stream.addEventListener("preview", (event) => preview(JSON.parse(event.data)));
    stream.addEventListener("record", (event) => {
      if (JSON.parse(event.data).type === "model_reply") coming.replaceChildren();
      draw().catch(() => {});
    });
    stream.addEventListener("error", (event) => {
      if (event.data) say("status", JSON.parse(event.data).message);
      else if (stream.readyState !== EventSource.CLOSED) say("status", "The connection broke. It comes back by itself, and nothing is missed.");
      else say("status", "The server does not answer. Load the page again: what was said is in the log.");
    });
    stream.addEventListener("open", () => say("status", "The agent is at work…"));
    stream.addEventListener("end", async (event) => {
      stream.close();
      const status = JSON.parse(event.data).status;
      coming.replaceChildren();
      coming.hidden = true;
      cancel.hidden = true;
      say("status", { done: "", cancelled: "Cancelled. What was said before stays.", failed: "The model failed. The turn says why." }[status] ?? status);
      await draw().catch(() => {});
      toEnd();
    });
  }

  async function send() {
    const text = words.value.trim();
    if (!text) return;
    say("status", "Sending…");
    try {
      if (fork.at) return await sendInFork();
      const run = await ask("POST", `${api}/messages`, { text: words.value, wait: false }, { "Idempotency-Key": id });
      id = newId();
      words.value = "";
      await draw().catch(() => {});
      follow(run.run);
    } catch (error) {
      // The same id is sent again: the message counts once, even if the first request arrived.
      say("status", `${error.message} The message was kept: send it again.`);
    }
  }

  // The newest words are at the end, above the form.
  toEnd();
  words.focus({ preventScroll: true });
  async function sendInFork() {
    // If the message fails after the fork was made, sending again goes to the same fork.
    const name = document.getElementById("fork-name").value;
    fork.made ||= (await ask("POST", `${api}/forks`, { name, at: fork.at })).agent;
    await ask("POST", `${apiOf(fork.made)}/messages`, { text: words.value, wait: false }, { "Idempotency-Key": id });
    location.assign(`/console/a/${written(fork.made)}/chat`);
  }

  document.getElementById("chat").addEventListener("click", (event) => {
    const button = event.target.closest("[data-edit], [data-again]");
    if (!button) return;
    const said = button.closest(".entry").querySelector(".said").textContent;
    beginFork(Number(button.dataset.edit ?? button.dataset.again), said);
    if (button.dataset.again) say("status", "The same words, asked again from that moment. Send begins the fork.");
  });
  document.getElementById("chat").addEventListener("submit", (event) => {
    if (!event.target.dataset.decide) return;
    event.preventDefault();
    decide(event.target, event.submitter?.value ?? "approve");
  });
  document.getElementById("fork-off").addEventListener("click", endFork);
  // What other programs and other tabs write.
  watch(chat.dataset.agent, Number(chat.dataset.head), () => draw().catch(() => {}));
  offer();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    }
  });
  cancel.addEventListener("click", () => ask("POST", `${api}/cancel`, {}).catch((error) => say("status", error.message)));
}
