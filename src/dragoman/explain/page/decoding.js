// Step by step through the decoding, with what the beam had to choose from.

function showDecoding() {
  const { data } = page, slider = at("step");
  slider.max = data.tgt_tokens.length;
  slider.value = Math.min(Number(slider.value), data.tgt_tokens.length);
  at("decoding-note").textContent = data.is_forced
    ? "The translation was given. At each token: what the model would have written, with the probability of each."
    : `Beam search keeps the ${data.model.beam} likeliest beginnings. At each token: those beginnings, how each could go on, and what became of it. Bars and per cents are the probability of the next token.`;
  showStep();
}

function showStep() {
  const { data } = page, t = Number(at("step").value) - 1, tokens = data.tgt_tokens, n = tokens.length;
  at("back").disabled = t === 0;
  at("forth").disabled = t === n - 1;
  at("step-text").textContent = `token ${t + 1} of ${n}: ${label(tokens[t])}`;
  at("step").setAttribute("aria-valuetext", at("step-text").textContent);
  const rest = tokens.slice(t + 1, -1);
  at("so-far").replaceChildren(written(tokens.slice(0, t)), tokens[t].startsWith("▁") ? " " : "",
    element("b", {}, label(tokens[t]).replace(/^·/, "")), element("i", {}, written(rest)));
  at("beam").replaceChildren(...(data.steps[t] || []).map((row, k) => element("div", { class: "hyp" + (row.is_best ? " best" : "") },
    element("h3", {}, element("span", {}, data.is_forced ? "Given" : row.is_best ? `Beginning ${k + 1}, on the way to the translation` : `Beginning ${k + 1}`), element("span", { title: "log-probability of the beginning" }, signed(row.log_prob, 2))),
    element("p", {}, written(row.tokens).trim() || "(nothing yet)", " …"),
    element("table", {}, element("caption", { class: "unseen" }, "Next tokens with their probability"), element("tbody", {}, ...row.candidates.map((one) =>
      element("tr", { class: `${one.fate}${one.is_best ? " best" : ""}` }, element("th", { scope: "row", title: label(one.token) }, label(one.token)),
        element("td", {}, element("span", { style: `--part: ${(one.probability * 100).toFixed(2)}%`, "aria-hidden": "true" })),
        element("td", { class: "p" }, percent(one.probability)), element("td", { class: "f" }, (one.is_best ? "★ " : "") + one.fate))))))));
}

function startDecoding() {
  const slider = at("step");
  const to = (t) => { slider.value = t; slider.dispatchEvent(new Event("input")); };
  slider.addEventListener("input", () => {
    showStep();
    if (page.view.kind !== "encoder") setFocus({ side: "row", index: page.view.words ? page.data.tgt_words[slider.value - 1] : slider.value - 1 });
  });
  at("back").addEventListener("click", () => to(Number(slider.value) - 1));
  at("forth").addEventListener("click", () => to(Number(slider.value) + 1));
}
