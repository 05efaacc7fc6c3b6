// Colours, then either the data in this file or the server it came from.

(() => {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)"), choice = at("theme");
  const paint = () => {
    root.dataset.theme = choice.value || (system.matches ? "dark" : "light");
    if (page.data) showExplorer();
  };
  try { choice.value = localStorage.getItem("dragoman-theme") || ""; } catch { /* a file may have no storage */ }
  choice.addEventListener("change", () => { try { localStorage.setItem("dragoman-theme", choice.value); } catch { /* the same */ } paint(); });
  system.addEventListener("change", paint);
  paint();
  startExplorer();
  startDecoding();
  const given = JSON.parse(at("data").textContent);
  if (given.name) root.dataset.name = given.name;
  if (given.view) { Object.assign(page.view, given.view); page.opening = true; }
  if (given.data) setData(given.data);
  else startTranslate();
})();
