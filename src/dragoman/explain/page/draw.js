// Pictures as SVG text, with every colour written out, so that what is saved is what is seen.

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const colours = (kind) => ({ paper: colour("card"), ink: colour("ink"), muted: colour("muted"), line: colour("line"), accent: colour(kind) });

const FONT = 14, measurer = document.createElement("canvas").getContext("2d");
measurer.font = `${FONT}px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif`;
const widthOf = (text) => measurer.measureText(text).width;
function fitted(text, most) {
  if (widthOf(text) <= most) return text;
  let cut = text;
  while (cut.length > 1 && widthOf(cut + "…") > most) cut = cut.slice(0, -1);
  return cut + "…";
}

// Strong enough to be seen when small, never stronger than a larger weight.
const strength = (weight) => Math.pow(Math.min(1, Math.max(0, weight)), 0.65);

// Two columns of tokens with a line for each weight: the left looks at the right. `focus` is {side, index} or null.
function linesPicture({ weights, rows, columns }, { width, focus, paint }) {
  const step = 27, most = Math.min(130, width * 0.36);
  const left = Math.min(most, Math.max(...rows.map(widthOf))) + 14, right = Math.min(most, Math.max(...columns.map(widthOf))) + 14;
  const height = Math.max(rows.length, columns.length) * step + 4, from = left + 2, to = width - right - 2;
  const y = (i) => i * step + step / 2 + 2;
  const out = [];
  weights.forEach((row, r) => row.forEach((weight, c) => {
    const isOn = !focus || (focus.side === "row" ? focus.index === r : focus.index === c);
    if (weight < 0.02 || (!isOn && weight < 0.1)) return;
    const bend = (to - from) * 0.45;
    out.push([weight, `<path d="M${from} ${y(r)}C${from + bend} ${y(r)} ${to - bend} ${y(c)} ${to} ${y(c)}" fill="none" stroke="${isOn ? paint.accent : paint.muted}" stroke-width="${(0.6 + 4.4 * weight).toFixed(2)}" opacity="${(isOn ? 0.12 + 0.88 * strength(weight) * (focus ? 1 : 0.8) : 0.07).toFixed(3)}" stroke-linecap="round"/>`]);
  }));
  const seen = (side, i) => {
    if (!focus) return 0;
    if (focus.side === side) return focus.index === i ? 1 : 0;
    return side === "column" ? weights[focus.index][i] : weights[i][focus.index];
  };
  const token = (side, text, i) => {
    const isRow = side === "row", w = (isRow ? left : right) - 2, x = isRow ? 1 : width - w - 1, share = seen(side, i);
    const about = isRow ? `${text} looks at ${told(weights[i], columns)}` : `${text} is looked at by ${told(weights.map((row) => row[i]), rows)}`;
    return `<g class="token" data-side="${side}" data-index="${i}" role="button" tabindex="-1" aria-label="${escaped(about)}" aria-pressed="${Boolean(focus && focus.side === side && focus.index === i)}">` +
      `<rect x="${x}" y="${y(i) - 11.5}" width="${w}" height="23" rx="6" fill="${paint.accent}" fill-opacity="${(0.28 * strength(share)).toFixed(3)}"/>` +
      `<text x="${isRow ? left - 7 : width - right + 7}" y="${y(i) + 5}" font-size="${FONT}" text-anchor="${isRow ? "end" : "start"}" fill="${paint.ink}"${share >= 0.3 ? ' font-weight="650"' : ""} opacity="${focus && share < 0.03 ? 0.5 : 1}">${escaped(fitted(text, most))}</text></g>`;
  };
  out.sort((a, b) => a[0] - b[0]);
  const body = out.map((one) => one[1]).join("") + rows.map((text, i) => token("row", text, i)).join("") + columns.map((text, i) => token("column", text, i)).join("");
  return { width, height, body };
}

// Rows look at columns: darker is more, with the per cent where there is room.
function matrixPicture({ weights, rows, columns }, { width, focus, paint }) {
  const most = 110, left = Math.min(most, Math.max(...rows.map(widthOf))) + 10;
  const cell = Math.max(14, Math.min(34, (width - left - 30) / columns.length));
  const size = Math.min(FONT, Math.max(10.5, cell * 0.78)), slope = Math.min(most, Math.max(...columns.map(widthOf))) * size / FONT, top = slope * 0.82 + 16;
  const spill = Math.max(0, ...columns.map((text, c) => (c + 0.5) * cell + Math.min(most, widthOf(text)) * size / FONT * 0.57 + 14)) - columns.length * cell;
  const full = { width: Math.ceil(left + columns.length * cell + Math.max(2, spill)), height: Math.ceil(top + rows.length * cell + 2) };
  const on = (side, i) => focus && focus.side === side && focus.index === i;
  const out = [`<rect x="${left}" y="${top}" width="${columns.length * cell}" height="${rows.length * cell}" fill="none" stroke="${paint.line}"/>`];
  for (let r = 1; r < rows.length; r++) out.push(`<path d="M${left} ${top + r * cell}h${columns.length * cell}" stroke="${paint.line}" stroke-width=".5"/>`);
  rows.forEach((text, r) => {
    const isOn = on("row", r);
    out.push(`<text x="${left - 6}" y="${top + (r + 0.5) * cell + 4.6}" font-size="${size}" text-anchor="end" fill="${paint.ink}"${isOn ? ' font-weight="700"' : ""}>${escaped(fitted(text, most))}</text>`);
  });
  columns.forEach((text, c) => {
    const x = left + (c + 0.5) * cell + 4, isOn = on("column", c);
    out.push(`<text transform="translate(${x.toFixed(1)} ${(top - 6).toFixed(1)}) rotate(-55)" font-size="${size}" fill="${paint.ink}"${isOn ? ' font-weight="700"' : ""}>${escaped(fitted(text, most))}</text>`);
  });
  weights.forEach((row, r) => row.forEach((weight, c) => {
    const x = left + c * cell, y = top + r * cell;
    const dim = focus && !on("row", r) && !on("column", c) ? 0.45 : 1;
    const shade = strength(weight);
    out.push(`<rect class="weight" data-row="${r}" data-column="${c}" x="${(x + 0.5).toFixed(1)}" y="${(y + 0.5).toFixed(1)}" width="${(cell - 1).toFixed(1)}" height="${(cell - 1).toFixed(1)}" rx="2" fill="${paint.accent}" fill-opacity="${(shade * dim).toFixed(3)}"/>`);
    if (cell >= 19 && weight >= 0.095) out.push(`<text pointer-events="none" x="${x + cell / 2}" y="${y + cell * 0.64}" font-size="${(cell * 0.43).toFixed(1)}" text-anchor="middle" fill="${shade * dim > 0.55 ? paint.paper : paint.ink}" opacity="${dim}">${Math.round(weight * 100)}</text>`);
  }));
  if (focus) {
    const n = [rows.length, columns.length];
    out.push(focus.side === "row"
      ? `<rect x="${left}" y="${top + focus.index * cell}" width="${n[1] * cell}" height="${cell}" fill="none" stroke="${paint.ink}" stroke-width="1.5" rx="2"/>`
      : `<rect x="${left + focus.index * cell}" y="${top}" width="${cell}" height="${n[0] * cell}" fill="none" stroke="${paint.ink}" stroke-width="1.5" rx="2"/>`);
  }
  return { ...full, body: out.join("") };
}

const svg = ({ width, height, body }, attributes = "") =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif" ${attributes}>${body}</svg>`;

// A small picture of a whole head.
function thumbnail(canvas, weights, paint) {
  const n = Math.max(weights.length, weights[0].length);
  canvas.width = canvas.height = n;
  const pen = canvas.getContext("2d"), [dy, dx] = [(n - weights.length) / 2, (n - weights[0].length) / 2].map(Math.floor);
  pen.fillStyle = paint.accent;
  weights.forEach((row, r) => row.forEach((weight, c) => { pen.globalAlpha = strength(weight); pen.fillRect(c + dx, r + dy, 1, 1); }));
}

// What is on screen as one picture: all heads at the left, the open one as lines and as a matrix.
function wholePicture({ title, notes, grid, lines, matrix, paint }) {
  const side = 64, gap = 10, columns = Math.max(...grid.map((row) => row.cells.length)), overview = 34 + columns * (side + gap);
  const top = 92, pad = 24, out = [];
  const text = (x, y, words, size, fill, more = "") => out.push(`<text x="${x}" y="${y}" font-size="${size}" fill="${fill}" ${more}>${escaped(words)}</text>`);
  grid.forEach((row, r) => {
    const y = top + r * (side + 26);
    text(pad - 4, y + side / 2, row.name, 12, paint.muted, `transform="rotate(-90 ${pad - 4} ${y + side / 2})" text-anchor="middle"`);
    row.cells.forEach((cell, c) => {
      const x = pad + 10 + c * (side + gap);
      out.push(`<rect x="${x - 2}" y="${y - 2}" width="${side + 4}" height="${side + 4}" rx="5" fill="none" stroke="${cell.isOpen ? paint.accent : paint.line}" stroke-width="${cell.isOpen ? 2 : 1}"/>`);
      out.push(`<image x="${x}" y="${y}" width="${side}" height="${side}" href="${cell.image}" style="image-rendering:pixelated" opacity="${cell.isOff ? 0.2 : 1}"/>`);
      text(x + side / 2, y + side + 15, cell.isOff ? `${cell.name} off` : cell.name, 11, paint.muted, 'text-anchor="middle"');
    });
  });
  const x = pad + overview + 16, x2 = x + lines.width + 36;
  out.push(`<g transform="translate(${x} ${top - 4})">${lines.body}</g><g transform="translate(${x2} ${top - 4})">${matrix.body}</g>`);
  const width = Math.ceil(x2 + matrix.width + pad), height = Math.ceil(Math.max(top + grid.length * (side + 26), top + lines.height, top + matrix.height) + pad);
  text(pad, 38, title, 20, paint.ink, 'font-weight="650"');
  text(pad, 62, fittedTo(notes, width - 2 * pad), 13.5, paint.muted);
  return { width, height, body: `<rect width="${width}" height="${height}" fill="${paint.paper}"/>${out.join("")}` };
}
const fittedTo = (text, most) => fitted(text, most * FONT / 13.5);

async function pngOf(picture) {
  const image = new Image(), scale = 2, url = URL.createObjectURL(new Blob([svg(picture)], { type: "image/svg+xml" }));
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = picture.width * scale;
  canvas.height = picture.height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
