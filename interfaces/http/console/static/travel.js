// Travel in the life of an agent: slider, keys, play, and links that name the moment.
// The server renders each moment. While the hand moves, only the number changes; when it rests, the page of that moment
// is loaded and its parts are put in place.
import { meaning, SLIDER_KEYS } from "./keys.js";
import { load, say, swap } from "./pages.js";
import { watch } from "./watch.js";

const REST_MS = 80;
const STEP_MS = 500;
const HISTORY_MS = 400;

const time = document.getElementById("time");
const slider = document.getElementById("slider");
if (time && slider) start();

/** Return the number of the last element of an ascending list that is at most `value`. */
export function place(list, value) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Return the seq that a jump leads to from `seq`; `seq` if there is no such landmark. */
export function landing(life, seq, to) {
  if (to === "first") return 1;
  if (to === "last") return life.head;
  const [direction, kind] = to.split("-");
  if (kind === "event") return Math.max(1, Math.min(life.head, seq + (direction === "next" ? 1 : -1)));
  const points = life[kind];
  const at = place(points, direction === "next" ? seq : seq - 1);
  return (direction === "next" ? points[at + 1] : points[at]) ?? seq;
}

function start() {
  const path = time.dataset.path;
  const page = time.dataset.page;
  const state = { clock: null, shown: Number(slider.value), wanted: Number(slider.value), loading: null, rest: 0, playing: 0, life: null, written: 0 };

  const address = (seq) => `${path}${page ? `/${page}` : ""}?as_of=${seq}`;

  async function life() {
    state.life ??= fetch(`${path}/life.json`).then((answer) => {
      if (!answer.ok) throw new Error("no outline");
      return answer.json();
    });
    try {
      return await state.life;
    } catch {
      state.life = null;
      return null;
    }
  }

  function number() {
    const where = document.getElementById("where");
    if (where) where.textContent = state.wanted.toLocaleString("en");
  }

  /** Return the seq at a place of the slider. By time, the slider has equal steps of the clock. */
  const seqAt = (value) => (state.clock ? state.clock[value] : value);

  /** Return the place of the slider for a seq: by time, the first step of the clock at which the event had happened. */
  const placeOf = (seq) => (state.clock ? Math.min(place(state.clock, seq - 1) + 1, state.clock.length - 1) : seq);

  /** Let the slider go by events or by time. The moment stays. */
  async function scale(wanted) {
    stop();
    const known = wanted === "time" ? await life() : null;
    state.clock = known ? known.clock : null;
    const by = state.clock ? "time" : "events";
    document.getElementById("scale").value = by;
    slider.min = state.clock ? "0" : "1";
    slider.max = String(state.clock ? state.clock.length - 1 : Number(time.dataset.head));
    slider.value = String(placeOf(state.wanted));
    const density = document.getElementById("density");
    density.src = `${path}/life.svg?head=${time.dataset.head}&scale=${by}`;
    remember(by);
  }

  /** Show the page of the moment that is wanted. One request runs; an older one is ended. */
  async function visit() {
    state.loading?.abort();
    const loading = (state.loading = new AbortController());
    const seq = state.wanted;
    const late = setTimeout(() => document.getElementById("moment")?.classList.add("waits"), 250);
    try {
      const fresh = await load(address(seq), loading.signal);
      if (loading.signal.aborted) return;
      swap(fresh, ["agent-head", "moment-line", "moment"]);
      document.title = fresh.title;
      state.shown = seq;
      const spoken = fresh.getElementById("slider")?.getAttribute("aria-valuetext");
      if (spoken) slider.setAttribute("aria-valuetext", spoken);
      if (Date.now() - state.written > HISTORY_MS) {
        history.replaceState(null, "", address(seq));
        state.written = Date.now();
      } else setTimeout(() => state.shown === seq && history.replaceState(null, "", address(seq)), HISTORY_MS);
    } catch (error) {
      if (error.message !== "aborted") {
        document.getElementById("moment")?.classList.remove("waits");
        const where = document.querySelector(".where");
        if (where) where.textContent = `The server does not answer. Shown is event ${state.shown.toLocaleString("en")}.`;
      }
    } finally {
      clearTimeout(late);
    }
  }

  /** Go to an event. `at`: where the slider is, if it is somewhere between the places of events. */
  function go(seq, at = placeOf(seq)) {
    state.wanted = seq;
    slider.value = String(at);
    number();
    clearTimeout(state.rest);
    state.rest = setTimeout(visit, REST_MS);
  }

  function stop() {
    clearInterval(state.playing);
    state.playing = 0;
    const button = document.getElementById("play-button");
    button.textContent = "Play";
    button.setAttribute("aria-pressed", "false");
  }

  function play() {
    if (state.playing) return stop();
    const speed = Number(document.getElementById("speed").value) || 1;
    const button = document.getElementById("play-button");
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    state.playing = setInterval(() => {
      const end = Number(slider.max);
      let next = Math.min(end, Math.round(Number(slider.value) + Math.max(1, speed / 4)));
      while (next < end && seqAt(next) === state.wanted) next += 1; // time in which nothing happened
      if (next <= Number(slider.value)) return stop();
      if (state.wanted === state.shown) go(seqAt(next), next);
    }, Math.max(120, STEP_MS / speed));
  }

  async function jump(to) {
    stop();
    const known = await life();
    if (known) go(landing(known, state.wanted, to));
  }

  slider.addEventListener("input", () => {
    stop();
    const seq = seqAt(Number(slider.value));
    if (seq !== state.wanted) go(seq, Number(slider.value)); // by time, nothing happens between some steps
  });
  slider.form.addEventListener("submit", (event) => event.preventDefault()); // by time its value is no event
  time.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== slider) return;
    const to = meaning(SLIDER_KEYS, event.key)?.to;
    if (!to) return;
    if (to === "play") play();
    else jump(to);
    event.preventDefault();
  });
  time.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-jump], a[data-copy]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.dataset.jump) {
      const to = link.dataset.jump;
      jump(to).then(() => time.querySelector(`a[data-jump="${to}"]`)?.focus());
    } else copy(link);
  });
  document.getElementById("play").hidden = false;
  document.getElementById("play-button").addEventListener("click", play);
  document.getElementById("speed").addEventListener("change", stop);
  document.getElementById("scale").addEventListener("change", (event) => scale(event.target.value));

  // Count what is written while the page is looked at.
  watch(time.dataset.agent, Number(time.dataset.head), (seq) => {
    const count = seq - Number(time.dataset.head);
    document.getElementById("new").hidden = false;
    say("new-count", `${count.toLocaleString("en")} new ${count === 1 ? "event" : "events"}.`);
  });

  // The slider keeps its place when the browser restores a page.
  if (Number(slider.value) !== Number(slider.getAttribute("value"))) slider.value = slider.getAttribute("value");
  if (remembered() === "time") scale("time");
  else document.getElementById("scale").value = "events";
}

/** Keep the scale of the slider for the other pages of this tab. A browser may refuse to keep anything. */
function remember(scale) {
  try {
    sessionStorage.setItem("scale", scale);
  } catch {
    // The next page goes by events again.
  }
}

function remembered() {
  try {
    return sessionStorage.getItem("scale");
  } catch {
    return null;
  }
}

async function copy(link) {
  try {
    await navigator.clipboard.writeText(link.href);
    const before = link.textContent;
    link.textContent = "Link copied";
    setTimeout(() => { link.textContent = before; }, 2000);
  } catch {
    location.assign(link.href);
  }
}
