// Puts the report together.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  // All curves go over the same steps.
  const last = Math.max(0, ...data.runs.flatMap(run => Object.values(run.curves).map(curve => curve.steps.at(-1))));
  const steps = Zoom.group({min: 0, max: last || undefined});
  Charts.setDefaults();

  Header.draw(page, data);
  Comparison.draw(page, data);
  Learning.draw(page, data, steps);
  Pipeline.draw(page, data);
  Time.draw(page, data, steps);
  Links.draw(page, data);
  Stages.draw(page, data);
  Signals.draw(page, data, steps);
  Settings.draw(page, data);
  document.getElementById("made-by").textContent =
    "Written by resbm " + data.version + " on " + Format.date(data.generated) + ". This file needs no network.";

  Theme.onChange(Charts.redraw);
  // On paper: light, in one column.
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    Theme.force("light");
    Charts.resize();
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    Theme.force(null);
    Charts.resize();
  });
})();
