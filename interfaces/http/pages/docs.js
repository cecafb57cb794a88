"use strict";
// Shows only what has all words of the search. The page is complete without this script.
const query = document.getElementById("query");
const count = document.getElementById("count");
const sections = [...document.querySelectorAll("section")].map((element) => ({
  element,
  text: element.textContent.toLowerCase(),
  link: document.querySelector(`nav li[data-for="${CSS.escape(element.id)}"]`),
}));
const show = () => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  let routes = 0;
  for (const { element, text, link } of sections) {
    element.hidden = !words.every((word) => text.includes(word));
    if (link) {
      link.hidden = element.hidden;
      routes += element.hidden ? 0 : 1;
    }
  }
  for (const list of document.querySelectorAll("nav ul")) {
    const empty = !list.querySelector("li:not([hidden])");
    list.hidden = empty;
    list.previousElementSibling.hidden = empty;
  }
  count.textContent = words.length ? `${routes} routes` : "";
};
// A link to what the search hides ends the search.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.hidden) {
    query.value = "";
    show();
    target.scrollIntoView();
  }
});
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== query) {
    event.preventDefault();
    query.focus();
  }
});
query.addEventListener("input", show);
document.getElementById("find").hidden = false;
show();
