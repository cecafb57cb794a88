// Run a query with Ctrl-Enter, and say that it runs.
const form = document.getElementById("ask");
const query = document.getElementById("q");

query?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  }
});
form?.addEventListener("submit", () => {
  form.querySelector("button").textContent = "Running…";
});
addEventListener("pageshow", () => {
  if (form) form.querySelector("button").textContent = "Run";
});
