// Drops results, decides, acknowledges, and shows what is new. Reading needs none of it.
const forgery = document.querySelector("meta[name=forgery]")?.content;
const output = document.querySelector("output");
const shownEvents = document.querySelector("[data-events]")?.dataset.events;
const RESTING = 10_000; // milliseconds between two looks
const SAID = "restive-said";

function say(text, wrong = false) {
  output.textContent = text;
  output.classList.toggle("wrong", wrong);
}

async function send(path, type, body) {
  const headers = { "Content-Type": type, "X-Restive-Forgery": forgery };
  const answer = await fetch(path, { method: "POST", headers, body });
  const text = await answer.text(), found = text ? JSON.parse(text) : {};
  if (!answer.ok) throw new Error(found.detail);
  return found;
}

function received({ new: fresh, known, late, superseded, closed, repeated }) {
  if (repeated) return "This very file was recorded before.";
  const counts = [[fresh, "new"], [known, "known already"], [late, "late"], [superseded, "too late to be used"]];
  const words = counts.filter(([count]) => count).map(([count, word]) => `${count} ${word}`);
  return `Recorded: ${words.join(", ") || "nothing new"}${closed ? "; every pull has a result" : ""}.`;
}

// Does something, says how it went, and shows the page as it is then.
async function doing(work) {
  try {
    sessionStorage.setItem(SAID, await work());
    location.reload();
  } catch (error) {
    say(error.message, true);
  }
}

const record = (file) => doing(async () => received(await send("/v1/observations", "text/csv", await file.arrayBuffer())));
const each = (selector, run) => document.querySelectorAll(selector).forEach(run);

each(".drop", (form) => {
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) form.addEventListener(kind, (event) => {
    event.preventDefault();
    form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) record(event.dataTransfer.files[0]);
  });
  form.querySelector("input").addEventListener("change", ({ target }) => record(target.files[0]));
});
each(".decide", (form) => form.addEventListener("submit", (event) => {
  event.preventDefault();
  doing(async () => `Tick ${(await send("/v1/decisions", "application/json", "{}")).tick} is decided.`);
}));
each(".acknowledge", (form) => form.addEventListener("submit", (event) => {
  event.preventDefault();
  const note = JSON.stringify({ note: form.elements.note.value });
  doing(async () => {
    await send(`/v1/alarms/${form.dataset.alarm}/acknowledge`, "application/json", note);
    return "Acknowledged.";
  });
}));

if (output) {
  say(sessionStorage.getItem(SAID) ?? "");
  sessionStorage.removeItem(SAID);
}
if (shownEvents) setInterval(async () => {
  if (document.hidden || document.activeElement?.matches("input")) return;
  const answer = await fetch("/v1/status").catch(() => null);
  if (answer?.ok && String((await answer.json()).events) !== shownEvents) location.reload();
}, RESTING);
