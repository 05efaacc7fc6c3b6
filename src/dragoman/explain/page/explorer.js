// The explorer: which head is open, which token is looked at, which heads are off.

const at = (id) => document.getElementById(id);
const page = {
  data: null, // what is looked at, as explain_json tells it
  whole: null, // the same with all heads on
  view: { kind: "cross", layer: 1, head: 1, words: false },
  focus: null, // {side, index, isFixed} of a token
  off: new Set(), // names of heads
  look: null, // with a server: asks for the data of the sentence with these heads off
};

function element(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (value === true) found.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) found.setAttribute(name, value);
  }
  found.append(...children.filter((child) => child !== null));
  return found;
}

function setData(data) {
  const isFirst = !page.data;
  page.data = data;
  if (!data.off_heads.length) page.whole = data;
  const layers = data.attention[page.view.kind].length;
  if (page.view.layer !== "all") page.view.layer = isFirst && !page.opening ? layers : Math.min(page.view.layer, layers);
  if (isHead(page.view)) page.view.head = Math.min(page.view.head, data.model.n_heads);
  page.focus = null;
  for (const id of ["sentence", "explorer", "decoding"]) at(id).hidden = false;
  showSentence();
  showExplorer();
  showDecoding();
}

function showSentence() {
  const { data, whole } = page, model = data.model;
  at("model-line").textContent = `${document.documentElement.dataset.name ? document.documentElement.dataset.name + ": " : ""}${model.n_encoder_layers} + ${model.n_decoder_layers} layers, ${model.n_heads} heads, width ${model.d_model}`;
  at("src-line").textContent = data.source;
  at("tgt-line").textContent = data.target;
  at("scores").replaceChildren(...data.tgt_tokens.map((token, t) => {
    const share = Math.exp(data.token_log_probs[t]);
    return element("span", { class: "score" + (share < 0.5 ? " low" : ""), role: "listitem", style: `--part: ${(share * 100).toFixed(1)}%`, title: `log-probability ${signed(data.token_log_probs[t], 3)}` },
      label(token), element("small", {}, percent(share)));
  }));
  at("offline-others").replaceChildren(...(page.look || !data.alternatives.length ? [] : [othersList(data.alternatives.map((one) => one.text))]));
  showChanged(whole, data);
}

const othersList = (texts) => element("div", { class: "others" }, element("h3", {}, "Or"), element("ul", { "aria-label": "Alternatives" }, ...texts.map((text) => element("li", {}, text))));

// What switching off did to the translation, and the way back.
function showChanged(whole, data) {
  const names = [...page.off], place = at("changed");
  if (!names.length) return place.replaceChildren();
  const chips = element("div", { class: "chips" }, ...names.map((name) => element("button", { type: "button", "aria-label": `Switch ${name} on again`, onclick: () => toggle(name) }, `${name} ×`)));
  const effect = !page.look && names.length === 1 && (data.effects || []).find((one) => one.head === names[0]);
  let said;
  if (page.look || effect) {
    const text = effect ? effect.text : data.target, before = whole ? whole.target : text;
    const isSame = text === before, number = effect ? effect.log_prob : data.log_prob;
    said = [element("p", {}, "Without ", names.length === 1 ? "this head" : `these ${names.length} heads`, isSame ? " it writes the same" : " it writes", whole && !data.is_forced ? ` (log-probability ${signed(number, 2)} instead of ${signed(whole.log_prob, 2)}):` : ":"),
      element("p", { class: "line", id: "changed-text" }, ...compared(before, text).flatMap(([word, where]) => [/^[.,;:!?)’”]$/.test(word) ? "" : " ", where === "both" ? word : element(where === "new" ? "mark" : "del", {}, word)]))];
    if (effect && data.is_forced) said = [element("p", {}, `Without this head the given translation has a log-probability of ${signed(effect.log_prob_of_target, 2)} instead of ${signed(data.log_prob, 2)}; by itself the model then writes:`), said[1]];
  } else {
    said = [element("p", {}, data.effects ? "This file knows what each head does when it is off alone. To switch several off, use the page of " : "To see what changes, use the page of ", element("code", {}, "dragoman serve"), ".")];
  }
  place.replaceChildren(...said, chips);
}

function toggle(name) {
  page.off.has(name) ? page.off.delete(name) : page.off.add(name);
  if (page.look) page.look([...page.off]);
  showGrid();
  showHead();
  showChanged(page.whole, page.data);
}

function showExplorer() {
  const { data, view } = page, root = document.documentElement;
  root.dataset.kind = view.kind;
  at("kinds").replaceChildren(...Object.entries(KINDS).map(([kind, { name, long }]) => element("button", {
    type: "button", role: "radio", "aria-checked": String(kind === view.kind), tabindex: kind === view.kind ? 0 : -1, "data-kind": kind, "aria-label": long, onclick: () => openKind(kind),
  }, name)));
  at("kind-note").textContent = KINDS[view.kind].note + (data.is_forced ? " The translation was given, not found." : "");
  at("words").checked = view.words;
  showGrid();
  showHead();
}

function openKind(kind) {
  const { data, view } = page;
  view.kind = kind;
  if (view.layer !== "all") view.layer = Math.min(view.layer, data.attention[kind].length);
  page.focus = null;
  showExplorer();
}

// All heads of the kind, a row for each layer, with their means; and what the layers amount to.
function gridRows() {
  const { data, view } = page, n = data.model.n_heads;
  const rows = data.attention[view.kind].map((_, l) => ({ name: `Layer ${l + 1}`, layer: l + 1, heads: [...Array.from({ length: n }, (_, h) => h + 1), "mean"] }));
  return [...rows, { name: "All", layer: "all", heads: ["mean", "rollout"] }];
}

function showGrid() {
  const { data, view } = page, paint = colours(view.kind), hadFocus = at("grid").contains(document.activeElement);
  const n = data.model.n_heads + 1, open = { layer: view.layer, head: view.head };
  at("grid").replaceChildren(...gridRows().map((row) => element("div", { class: "layer" }, element("b", {}, row.name),
    element("div", { class: "cells", style: `grid-template-columns: repeat(${Math.min(n, 9)}, minmax(0, 1fr))` }, ...row.heads.map((head) => {
      const one = { kind: view.kind, layer: row.layer, head }, name = nameOf(one), isOff = page.off.has(name), isOpen = row.layer === open.layer && head === open.head;
      const habits = isHead(one) ? data.heads[view.kind][row.layer - 1][head - 1] : null, canvas = element("canvas", { "aria-hidden": "true" });
      thumbnail(canvas, weightsOf(data, one), paint);
      const effect = (data.effects || []).find((each) => each.head === name);
      const about = habits ? `, tends to ${habits.tendency}, entropy ${habits.entropy.toFixed(1)} bits${isOff ? ", off" : ""}` : "";
      return element("div", { class: "cell" + (isOff ? " off" : "") }, element("button", {
        type: "button", "data-head": name, "aria-label": titleOf(one) + about, "aria-current": isOpen ? "true" : null, tabindex: isOpen ? 0 : -1,
        title: (habits ? `head ${head}: ${habits.tendency}` : titleOf(one)) + (effect ? `; without it the log-probability is ${signed(effect.log_prob_of_target, 2)}` : ""), onclick: () => openHead(row.layer, head),
      }, canvas, element("small", {}, String(head)), n <= 6 ? element("small", { class: "habit" }, habits ? SHORT[habits.tendency] || habits.tendency : "\u00a0") : null));
    })))));
  if (hadFocus) at("grid").querySelector('[tabindex="0"]').focus();
}

function openHead(layer, head) {
  Object.assign(page.view, { layer, head });
  page.focus = null;
  showGrid();
  showHead();
}

function showHead() {
  const { data, view } = page, button = at("switch"), isOff = page.off.has(nameOf(view));
  at("head-title").textContent = titleOf(view);
  button.hidden = !isHead(view);
  button.setAttribute("aria-checked", String(!isOff));
  button.textContent = isOff ? "Head is off" : "Head is on";
  const habits = isHead(view) ? data.heads[view.kind][view.layer - 1][view.head - 1] : null;
  const item = (name, ...value) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value));
  at("habits").replaceChildren(...(habits ? [
    item("Tends to look at", element("strong", {}, habits.tendency)),
    item("Entropy", `${habits.entropy.toFixed(2)} bits`),
    item(view.kind === "cross" ? "Mean distance from the diagonal" : "Mean distance", `${habits.distance.toFixed(1)} tokens`),
    ...Object.entries(habits.shares).map(([name, share]) => item(name[0].toUpperCase() + name.slice(1), element("i", { style: `--part: ${share * 100}%`, "aria-hidden": "true" }), percent(share))),
  ] : []));
  showPictures();
}

function showPictures() {
  const { data, view } = page, what = shown(data, view), paint = colours(view.kind);
  const isOff = page.off.has(nameOf(view)) && page.look;
  const linesAt = at("lines"), matrixAt = at("matrix");
  const active = document.activeElement && linesAt.contains(document.activeElement) ? document.activeElement.dataset : null;
  const lines = linesPicture(what, { width: Math.max(250, Math.min(460, linesAt.clientWidth - 4)), focus: page.focus, paint });
  const matrix = matrixPicture(what, { width: matrixAt.clientWidth - 4, focus: page.focus, paint });
  linesAt.innerHTML = svg(lines, `role="group" aria-label="${escaped(titleOf(view))}, as lines"`);
  matrixAt.innerHTML = svg(matrix, `role="img" aria-label="${escaped(titleOf(view))}, as a matrix of ${what.rows.length} by ${what.columns.length} weights"`);
  const [looker, target] = { encoder: ["source", "source"], decoder: ["written", "written before"], cross: ["written", "source"] }[view.kind];
  at("lines-caption").textContent = `${looker} (left) → ${target} (right)`;
  at("matrix-caption").textContent = `rows: ${looker}; columns: ${target}; numbers in per cent`;
  linesAt.querySelectorAll(".token").forEach((token) => { if (tokenIs(token, active || page.focus || { side: "row", index: 0 })) token.setAttribute("tabindex", "0"); });
  if (active) [...linesAt.querySelectorAll(".token")].find((token) => tokenIs(token, active))?.focus();
  showReadout(what, isOff);
  page.pictures = { lines, matrix, what, paint };
}

const tokenIs = (token, { side, index }) => token.dataset.side === side && Number(token.dataset.index) === Number(index);

function showReadout({ weights, rows, columns }, isOff) {
  const { focus } = page, off = isOff ? "This head is off: nothing of what it finds is passed on. " : "";
  if (!focus) at("readout").textContent = off + "Point at a token, or move to it with the arrow keys, to see what it looks at.";
  else if (focus.column !== undefined) at("readout").textContent = `“${rows[focus.index]}” looks at “${columns[focus.column]}” with ${percent(weights[focus.index][focus.column])}`;
  else if (focus.side === "row") at("readout").textContent = `${off}“${rows[focus.index]}” looks at: ${told(weights[focus.index], columns)}`;
  else at("readout").textContent = `${off}“${columns[focus.index]}” is looked at by: ${told(weights.map((row) => row[focus.index]), rows) || "nothing much"}`;
}

let leaving = 0;
// A moment later: what is pointed at next may be a token too, and the pictures need not be drawn twice.
function leave() {
  leaving = setTimeout(() => setFocus(null), 40);
}

function setFocus(focus) {
  clearTimeout(leaving);
  if (JSON.stringify(focus) === JSON.stringify(page.focus)) return;
  page.focus = focus;
  showPictures();
}

function startExplorer() {
  const grid = at("grid"), lines = at("lines"), matrix = at("matrix");
  at("words").addEventListener("change", (event) => { page.view.words = event.target.checked; page.focus = null; showPictures(); });
  at("switch").addEventListener("click", () => toggle(nameOf(page.view)));
  at("kinds").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key], names = Object.keys(KINDS);
    if (!by) return;
    event.preventDefault();
    openKind(names[(names.indexOf(page.view.kind) + by + names.length) % names.length]);
    at("kinds").querySelector('[tabindex="0"]').focus();
  });
  grid.addEventListener("keydown", (event) => {
    const cells = [...grid.querySelectorAll(".layer")].map((row) => [...row.querySelectorAll(".cell > button")]);
    const r = cells.findIndex((row) => row.includes(event.target)), c = r < 0 ? -1 : cells[r].indexOf(event.target);
    if (r < 0) return;
    if (event.key === "o" && /\.\d+$/.test(event.target.dataset.head)) return toggle(event.target.dataset.head);
    const [dr, dc] = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key] || [0, 0];
    const row = cells[r + dr];
    if ((!dr && !dc) || !row) return;
    const next = row[Math.min(c + dc, row.length - 1)];
    event.preventDefault();
    if (next) { event.target.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });
  const tokenAt = (event) => event.target.closest?.(".token");
  const focusOf = (token) => ({ side: token.dataset.side, index: Number(token.dataset.index) });
  lines.addEventListener("pointerover", (event) => { if (tokenAt(event)) setFocus(focusOf(tokenAt(event))); });
  lines.addEventListener("pointerleave", () => { if (!lines.contains(document.activeElement)) leave(); });
  lines.addEventListener("focusin", (event) => { if (tokenAt(event)) setFocus(focusOf(tokenAt(event))); });
  lines.addEventListener("keydown", (event) => {
    const token = tokenAt(event);
    if (!token) return;
    const { side, index } = focusOf(token), { rows, columns } = page.pictures.what;
    const n = (each) => (each === "row" ? rows : columns).length;
    const next = { ArrowDown: { side, index: index + 1 }, ArrowUp: { side, index: index - 1 }, ArrowLeft: { side: "row", index }, ArrowRight: { side: "column", index } }[event.key];
    if (event.key === "Escape") { token.blur(); setFocus(null); }
    if (!next) return;
    event.preventDefault();
    next.index = Math.max(0, Math.min(n(next.side) - 1, next.index));
    [...lines.querySelectorAll(".token")].find((each) => tokenIs(each, next)).focus();
  });
  matrix.addEventListener("pointerover", (event) => {
    const { row, column } = event.target.dataset || {};
    if (row !== undefined) setFocus({ side: "row", index: Number(row), column: Number(column) });
  });
  matrix.addEventListener("pointerleave", leave);
  for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => save(button.dataset.export));
  let width = 0;
  new ResizeObserver(() => { if (page.data && at("explorer").clientWidth !== width) { width = at("explorer").clientWidth; showPictures(); } }).observe(at("explorer"));
}

function screenPicture() {
  const { data, view, pictures } = page, cells = at("grid");
  const grid = gridRows().map((row) => ({ name: row.name, cells: row.heads.map((head) => {
    const name = nameOf({ kind: view.kind, layer: row.layer, head });
    return { name: String(head), image: cells.querySelector(`[data-head="${name}"] canvas`).toDataURL(), isOff: page.off.has(name), isOpen: row.layer === view.layer && head === view.head };
  }) }));
  return wholePicture({ title: titleOf(view), notes: `${data.source}  →  ${data.target}`, grid, lines: pictures.lines, matrix: pictures.matrix, paint: pictures.paint });
}

async function save(format) {
  const { data, view, pictures } = page;
  let blob;
  if (format === "json") {
    const { weights, rows, columns } = pictures.what;
    const told = { source: data.source, target: data.target, off_heads: data.off_heads, view, rows, columns, weights, habits: isHead(view) ? data.heads[view.kind][view.layer - 1][view.head - 1] : null };
    blob = new Blob([JSON.stringify(told, null, 1)], { type: "application/json" });
  } else {
    const picture = screenPicture();
    blob = format === "svg" ? new Blob([svg(picture)], { type: "image/svg+xml" }) : await pngOf(picture);
  }
  const link = element("a", { href: URL.createObjectURL(blob), download: `dragoman-${nameOf(view)}.${format}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
