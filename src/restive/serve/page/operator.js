// Sends files, and results that are tapped in without loading the page anew. All else is forms.
const forgery = document.querySelector("meta[name=forgery]")?.content;
const RESTING = 10_000; // milliseconds between two looks
const now = () => document.querySelector("#now");

function say(text, wrong = false) {
  const output = document.querySelector("output");
  output.textContent = text;
  output.classList.toggle("wrong", wrong);
}

// Shows what the server has now in the place of what was there.
async function show(answer) {
  if (answer.url.endsWith("/login")) return location.assign("/login");
  const text = await answer.text();
  if (!answer.ok) throw new Error(JSON.parse(text).detail);
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of ["h1", "#now"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
}

async function doing(work) {
  try {
    await work();
  } catch (error) {
    say(error.message, true);
  }
}

function received({ text, repeated }) {
  return repeated ? "This very file was recorded before." : `${text[0].toUpperCase()}${text.slice(1)}.`;
}

const record = (file) => doing(async () => {
  const headers = { "Content-Type": "text/csv", "X-Restive-Forgery": forgery };
  const answer = await fetch("/v1/observations", { method: "POST", headers, body: await file.arrayBuffer() });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail);
  await show(await fetch("/"));
  say(received(found));
});

for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) document.addEventListener(kind, (event) => {
  const form = event.target.closest?.(".drop");
  if (!form) return;
  event.preventDefault();
  form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
  if (kind === "drop" && event.dataTransfer.files.length) record(event.dataTransfer.files[0]);
});
document.addEventListener("change", ({ target }) => {
  if (target.matches(".drop input")) record(target.files[0]);
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches(".tap")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  doing(async () => show(await fetch(form.action, { method: "POST", body })));
});

if (now()) setInterval(async () => {
  if (document.hidden || document.activeElement?.matches("input")) return;
  const answer = await fetch("/v1/status").catch(() => null);
  if (answer?.ok && String((await answer.json()).events) !== now().dataset.events) location.reload();
}, RESTING);
