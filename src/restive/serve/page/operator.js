// Sends files, and what is tapped without loading the page anew. All else is forms.
const forgery = document.querySelector("meta[name=forgery]")?.content;
const RESTING = 800; // milliseconds between two looks
const now = () => document.querySelector("#now");
let sending = 0; // requests that wait for an answer

function say(text, wrong = false) {
  const output = document.querySelector("output");
  output.textContent = text;
  output.classList.toggle("wrong", wrong);
}

// Shows what the server has now in the place of what was there.
async function show(answer) {
  if (new URL(answer.url).pathname === "/login") return location.assign("/login?ended");
  const text = await answer.text();
  if (!answer.ok) throw new Error(JSON.parse(text).detail);
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of ["h1", "#now"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
}

async function doing(work, form) {
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  sending += 1;
  const rows = form.querySelector(".rows"); // of a file: too many for the foot of a screen
  rows?.replaceChildren();
  say("Sending …");
  try {
    await work();
  } catch (error) {
    // fetch knows but one error of its own: nothing came back
    const text = error instanceof TypeError ? "No connection: this was not sent. Try again." : error.message;
    const [first, ...more] = rows ? text.split("\n") : [text];
    rows?.append(more.map((row) => row.trim()).join("\n"));
    say(more.length ? `${first}. What is wrong is said where you chose the file.` : first, true);
  }
  sending -= 1;
  for (const button of buttons) button.disabled = false;
}

function received({ text, repeated }) {
  return repeated ? "This very file was recorded before." : `${text[0].toUpperCase()}${text.slice(1)}.`;
}

const record = (file, form) => doing(async () => {
  const headers = { "Content-Type": "text/csv", "X-Restive-Forgery": forgery };
  const answer = await fetch("/v1/observations", { method: "POST", headers, body: await file.arrayBuffer() });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail.replace(/^results:/, `${file.name}:`));
  await show(await fetch("/"));
  say(received(found));
}, form);

for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) document.addEventListener(kind, (event) => {
  const form = event.target.closest?.(".drop");
  if (!form) return;
  event.preventDefault();
  form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
  if (kind === "drop" && event.dataTransfer.files.length) record(event.dataTransfer.files[0], form);
});
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".drop input")) return;
  record(target.files[0], target.form);
  target.value = ""; // so that the same name, mended, can be chosen again
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!now() || !form.matches(".tap, .undo, .acknowledge, .forget")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  doing(async () => show(await fetch(form.action, { method: "POST", body })), form);
});

// Shows what others have recorded: this page's last event is gone then, or not the last one any more.
async function look() {
  const known = now().dataset.events;
  const answer = await fetch(`/v1/events?after=${known - 1}&limit=2`);
  if (!answer.ok || (await answer.json()).events.length === 1) return;
  if (!sending && known === now().dataset.events) await show(await fetch("/"));
}

// After an answer, so that a slow service is not asked twice at once.
const lookLater = () => setTimeout(async () => {
  if (!document.hidden && !sending && !document.activeElement?.matches("input")) await look().catch(() => null);
  lookLater();
}, RESTING);
if (now()) lookLater();
