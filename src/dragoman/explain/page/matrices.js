// What is shown, out of the data: which matrix, between which labels. Nothing here touches the page.

const KINDS = {
  encoder: { name: "Encoder", long: "Encoder self-attention", note: "Each token of the source looks at all tokens of the source." },
  decoder: { name: "Decoder", long: "Decoder self-attention", note: "While a token is written, the decoder looks at the tokens written before it." },
  cross: { name: "Cross", long: "Cross-attention", note: "While a token is written, the decoder looks at the source." },
};

// Two figures, and never 100 for less.
function percent(weight) {
  const x = weight * 100;
  if (x >= 99.95) return "100 %";
  return (x >= 99 ? x.toFixed(1) : x >= 9.95 ? x.toFixed(0) : x >= 0.995 ? x.toFixed(1) : x >= 0.0095 ? x.toFixed(2) : x > 0 ? "<0.01" : "0") + " %";
}

// "▁Haus" begins a word, "tür" goes on with one.
function label(token) {
  if (token === "<s>" || token === "</s>") return token;
  if (/^<0x..>$/.test(token)) return "·" + token.slice(1, -1);
  if (token.startsWith("▁")) return token.replace(/▁/g, " ").trim() || "␣";
  return "·" + token.replace(/▁/g, " ");
}

// The text of tokens, bytes that spell a character together among them.
function written(tokens) {
  const bytes = tokens.flatMap((token) => (/^<0x..>$/.test(token) ? [Number(token.slice(1, -1))] : [...new TextEncoder().encode(token.replace(/▁/g, " "))]));
  return new TextDecoder().decode(new Uint8Array(bytes));
}

const signed = (number, n) => number.toFixed(n).replace("-", "−");
const SHORT = { "aligned word": "aligned", "previous token": "previous", "next token": "next" };

function mean(matrices) {
  return matrices[0].map((row, r) => row.map((_, c) => matrices.reduce((sum, one) => sum + one[r][c], 0) / matrices.length));
}

// A word is looked at as much as its pieces together, and looks as they do on average.
function merged(matrix, rowWords, columnWords) {
  const n = [Math.max(...rowWords) + 1, Math.max(...columnWords) + 1];
  const found = Array.from({ length: n[0] }, () => new Array(n[1]).fill(0)), counts = new Array(n[0]).fill(0);
  matrix.forEach((row, r) => {
    counts[rowWords[r]] += 1;
    row.forEach((weight, c) => { found[rowWords[r]][columnWords[c]] += weight; });
  });
  return found.map((row, r) => row.map((weight) => weight / counts[r]));
}

// The sides of a kind: which of the data's tokens stand at the rows and at the columns.
const SIDES = { encoder: ["src", "src"], decoder: ["tgt", "tgt_in"], cross: ["tgt", "src"] };

// `layer` is a number from 1 or "all", `head` a number from 1, "mean" or "rollout".
function weightsOf(data, { kind, layer, head }) {
  const layers = data.attention[kind];
  if (head === "rollout") return data.rollout[kind][(layer === "all" ? layers.length : layer) - 1];
  if (layer === "all") return mean(layers.flat());
  return head === "mean" ? mean(layers[layer - 1]) : layers[layer - 1][head - 1];
}

function shown(data, view) {
  const [rows, columns] = SIDES[view.kind], weights = weightsOf(data, view);
  if (!view.words) return { weights, rows: data[rows + "_tokens"].map(label), columns: data[columns + "_tokens"].map(label) };
  return { weights: merged(weights, data[rows + "_words"], data[columns + "_words"]), rows: data[rows + "_word_texts"], columns: data[columns + "_word_texts"] };
}

function titleOf({ kind, layer, head }) {
  const where = layer === "all" ? "all layers" : `layer ${layer}`;
  const what = head === "mean" ? (layer === "all" ? "mean of all heads" : "mean of its heads") : head === "rollout" ? "rollout up to here" : `head ${head}`;
  return `${KINDS[kind].long}, ${where}, ${head === "rollout" && layer === "all" ? "rollout" : what}`;
}

const isHead = (view) => typeof view.head === "number";
const nameOf = (view) => `${view.kind}.${view.layer}.${view.head}`;

// What a row looks at most, for people.
function told(weights, labels) {
  const order = weights.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).filter(([weight], k) => k < 4 && weight >= 0.03);
  return order.map(([weight, i]) => `${labels[i]} ${percent(weight)}`).join(", ");
}

// The words and signs of both, each with whether it is of both, new or gone (longest common subsequence).
function compared(before, after) {
  const parts = (text) => text.match(/[^\s\p{P}]+|\p{P}/gu) || [];
  const a = parts(before), b = parts(after);
  const best = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
    best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const words = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { words.push([b[j], "both"]); i++; j++; }
    else if (i < a.length && (j === b.length || best[i + 1][j] >= best[i][j + 1])) words.push([a[i++], "gone"]);
    else words.push([b[j++], "new"]);
  }
  return words;
}
