// With a server: translation as one types, files, and the data of the sentence at the caret.

const PAUSE_MS = 250;

function startTranslate() {
  const source = at("source"), output = at("output");
  let languages = [], waiting = 0, translating = null, looking = null, sentence = "";

  const problems = {}; // by what was asked for: one answer that is well does not hide that another is not
  const problem = (what, text) => {
    problems[what] = text;
    const told = [...new Set(Object.values(problems).filter(Boolean))].join(" ");
    at("problem").hidden = !told;
    at("problem").textContent = told;
  };
  const keyed = (body) => (at("key").value ? { ...body, api_key: at("key").value } : body);
  async function ask(path, body, signal) {
    const isForm = body instanceof FormData;
    const answer = await fetch(path, { method: "POST", signal, body: isForm ? body : JSON.stringify(keyed(body)), headers: isForm ? {} : { "Content-Type": "application/json" } });
    // A refusal may come without a reason; an answer that was given up half-way is none.
    const found = answer.ok ? await answer.json() : await answer.json().catch(() => ({}));
    if (answer.status === 401 || answer.status === 403) at("key-field").hidden = false;
    if (!answer.ok) throw new Error(found.error || `the server answered ${answer.status}`);
    return found;
  }
  const pair = () => ({ source: at("from").value, target: at("into").value });

  // The sentence that the caret is in: the explorer shows one at a time.
  function current() {
    const text = source.value, caret = source.selectionStart ?? 0;
    const from = text.lastIndexOf("\n", caret - 1) + 1, end = text.indexOf("\n", caret), line = text.slice(from, end < 0 ? undefined : end);
    if (!window.Intl?.Segmenter) return line.trim();
    const parts = [...new Intl.Segmenter(at("from").value || undefined, { granularity: "sentence" }).segment(line)];
    const found = parts.find((part) => caret - from < part.index + part.segment.length) || parts[parts.length - 1];
    return found ? found.segment.trim() : "";
  }

  async function translate() {
    translating?.abort();
    translating = new AbortController();
    const { signal } = translating, q = source.value;
    if (!q.trim()) { output.textContent = ""; at("others").replaceChildren(); return; }
    output.classList.add("waiting");
    try {
      const found = await ask("translate", { q, ...pair(), format: "text", alternatives: 3 }, signal);
      output.textContent = found.translatedText;
      at("others").replaceChildren(...(found.alternatives?.length ? [othersList(found.alternatives)] : []));
      problem("translate", "");
    } catch (error) { if (error.name !== "AbortError") problem("translate", error.message); }
    if (!signal.aborted) output.classList.remove("waiting");
  }

  async function look(off = [...page.off]) {
    const now = current();
    if (!now) return;
    looking?.abort();
    looking = new AbortController();
    const { signal } = looking, isNew = now !== sentence;
    sentence = now;
    at("explorer").setAttribute("aria-busy", "true");
    try {
      if (off.length && (isNew || !page.whole)) page.whole = await ask("v1/attention", { q: now, ...pair() }, signal);
      setData(await ask("v1/attention", { q: now, ...pair(), off_heads: off }, signal));
      problem("look", "");
    } catch (error) { if (error.name !== "AbortError") problem("look", error.message); }
    if (!signal.aborted) at("explorer").removeAttribute("aria-busy");
  }
  page.look = look;

  const both = () => { translate(); look(); };
  const soon = (work) => { clearTimeout(waiting); waiting = setTimeout(work, PAUSE_MS); };
  source.addEventListener("input", () => soon(both));
  for (const event of ["keyup", "click"]) source.addEventListener(event, () => { if (page.data && current() && current() !== sentence) soon(both); });
  at("copy").addEventListener("click", async () => {
    const text = output.textContent;
    try { await navigator.clipboard.writeText(text); } catch {
      const range = document.createRange(); // pages without TLS have no clipboard: select the text, and ask the old way
      range.selectNodeContents(output);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    at("copy").textContent = "Copied";
    setTimeout(() => { at("copy").textContent = "Copy"; }, 1500);
  });

  function offer() {
    const from = at("from").value, chosen = at("into").value;
    const targets = (languages.find((one) => one.code === from)?.targets || []).filter((code) => code !== from);
    at("into").replaceChildren(...targets.map((code) => element("option", { value: code }, languages.find((one) => one.code === code)?.name || code)));
    if (targets.includes(chosen)) at("into").value = chosen;
    const back = languages.find((one) => one.code === at("into").value)?.targets || [];
    at("swap").disabled = !back.includes(from);
  }
  // Another model: heads of the same name are others.
  for (const id of ["from", "into"]) at(id).addEventListener("change", () => { offer(); page.off.clear(); both(); });
  at("swap").addEventListener("click", () => {
    const from = at("from").value, into = at("into").value;
    at("from").value = into;
    offer();
    at("into").value = from;
    offer();
    source.value = output.textContent;
    page.off.clear();
    both();
  });

  at("file").addEventListener("change", async (event) => {
    const [file] = event.target.files, state = at("file-state");
    if (!file) return;
    const form = new FormData();
    form.append("file", file);
    for (const [name, value] of Object.entries(keyed(pair()))) form.append(name, value);
    state.textContent = `Translating ${file.name} …`;
    problem("file", "");
    try {
      const { translatedFileUrl } = await ask("translate_file", form);
      const { pathname, search } = new URL(translatedFileUrl, location.href); // on this server, however it names itself
      state.replaceChildren(`${file.name} is translated: `, element("a", { href: pathname + search, download: true }, "save the translation"));
    } catch (error) { state.textContent = ""; problem("file", error.message); }
    event.target.value = "";
  });

  (async () => {
    at("translate").hidden = false;
    try {
      const settings = await (await fetch("frontend/settings")).json();
      at("key-field").hidden = !(settings.keyRequired || settings.apiKeys);
      languages = await (await fetch("languages")).json();
    } catch { return problem("start", "The server does not answer. Is it still running?"); }
    const sources = languages.filter((one) => one.targets?.some((code) => code !== one.code));
    at("from").replaceChildren(...sources.map((one) => element("option", { value: one.code }, one.name)));
    offer();
    if (source.value.trim()) both();
    source.focus();
  })();
}
