// Puts the report together.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  const steps = Zoom.group();
  Charts.setDefaults();

  Header.draw(page, data);
  Comparison.draw(page, data);
  Sections.learning(page, data, steps);
  Sections.pipeline(page, data);
  Sections.time(page, data, steps);
  Sections.links(page, data);
  Sections.memory(page, data);
  Sections.signals(page, data, steps);
  Sections.settings(page, data);
  document.getElementById("made-by").textContent =
    "Written by resbm " + data.version + " on " + Format.date(data.generated) + ". This file needs no network.";

  Theme.onChange(Charts.redraw);
  // On paper: light, one column, everything open.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    for (const details of page.querySelectorAll("details")) details.open = true;
    Theme.force("light");
    Charts.resize();
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    Theme.force(null);
    Charts.resize();
  });
})();
