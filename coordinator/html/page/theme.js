// Light or dark: as the system says, until the reader chooses.
const Theme = (() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const modes = ["auto", "light", "dark"];
  const listeners = [];
  let mode = "auto";
  let forced = null; // while it is printed

  function apply() {
    const dark = forced ? forced === "dark" : mode === "dark" || (mode === "auto" && system.matches);
    root.dataset.theme = dark ? "dark" : "light";
    for (const listener of listeners) listener();
  }

  system.addEventListener("change", apply);
  apply();

  return {
    // The value of a CSS variable.
    color: name =>
      getComputedStyle(root)
        .getPropertyValue("--" + name)
        .trim(),
    series: index => Theme.color("series-" + (index % 8)),
    // With an opacity from 0 to 1; of a color as #rrggbb.
    faded: (color, opacity) =>
      color +
      Math.round(255 * opacity)
        .toString(16)
        .padStart(2, "0"),
    onChange: listener => listeners.push(listener),
    mode: () => mode,
    next() {
      mode = modes[(modes.indexOf(mode) + 1) % modes.length];
      apply();
    },
    force(theme) {
      forced = theme;
      apply();
    },
  };
})();
