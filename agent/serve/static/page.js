// What plain links and forms cannot do. The page works without it.
"use strict";
const root = document.documentElement;
const find = (selector) => document.querySelector(selector);

root.classList.add("scripted");
root.dataset.theme = localStorage.getItem("theme") || "";
history.scrollRestoration = "manual"; // a conversation opens at its latest turn

function isDark() {
  return (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
}

function switchTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function switchDrawer() {
  const open = root.classList.toggle("drawer");
  find("#menu").setAttribute("aria-expanded", String(open));
}

function openSource(id) {
  const source = document.getElementById(id).closest("details");
  source.open = true;
  for (const other of document.querySelectorAll(".shown")) other.classList.remove("shown");
  source.classList.add("shown");
  source.scrollIntoView({ block: "nearest" });
  source.querySelector("summary").focus({ preventScroll: true });
}

function focusQuestion() {
  const question = find("#question");
  question?.focus({ preventScroll: true });
  question?.setSelectionRange(question.value.length, question.value.length);
}

function showLatest(spoken) {
  const turns = document.querySelectorAll(".turn");
  const named = spoken ? null : document.getElementById(location.hash.slice(1));
  if (named) named.scrollIntoView();
  else if (turns.length > 1) turns[turns.length - 1].scrollIntoView();
  if (spoken || !turns.length) focusQuestion();
  if (spoken) find("#spoken").textContent = find("[data-working]") ? "" : 
    [...document.querySelectorAll("#latest .unsure, #latest .answer, #problem")].map((part) => part.textContent).join(" ");
}

// An answer as plain text: what is shown, without the numbers of its sources.
function copyAnswer(button) {
  const answer = button.closest(".said").querySelector(".answer").cloneNode(true);
  for (const cite of answer.querySelectorAll(".cite")) cite.remove();
  const text = [...answer.childNodes].map((node) => node.textContent.replace(/\s+/g, " ").trim()).filter(Boolean).join("\n");
  navigator.clipboard.writeText(text).then(() => {
    button.textContent = "Copied";
  });
}

document.addEventListener("click", (event) => {
  const cite = event.target.closest("a.cite");
  if (event.target.closest("#theme")) switchTheme();
  else if (event.target.closest(".copy")) copyAnswer(event.target);
  else if (event.target.closest("#menu")) switchDrawer();
  else if (cite && document.getElementById(cite.hash.slice(1))) {
    event.preventDefault();
    openSource(cite.hash.slice(1));
  }
});

document.addEventListener("keydown", (event) => {
  if (event.target.id === "question" && event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
});

function showCited() {
  (find("#cited mark, #cited .taken") ?? find("#cited"))?.scrollIntoView({ block: "center" });
}

function hasFiles(event) {
  return find("#upload") && event.dataTransfer?.types.includes("Files");
}

document.addEventListener("dragover", (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  root.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) root.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  root.classList.remove("dropping");
  if (!hasFiles(event)) return;
  event.preventDefault();
  find("#files").files = event.dataTransfer.files;
  find("#upload").requestSubmit();
});

document.addEventListener("DOMContentLoaded", () => (find(".document") ? showCited() : showLatest(false)));
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target.id === "app" || event.detail.elt.id === "app") {
    root.classList.remove("drawer");
    showLatest(true);
  } else if (event.detail.target.id === "received") {
    find("#upload").reset();
    find(".source")?.removeAttribute("open");
  } else if (event.detail.elt.id === "about") find("#statement").focus();
});
