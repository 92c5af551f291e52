// The job, the versions, and every figure there is.
const Settings = (() => {
  const {make} = Elements;
  const {several, rowName} = Runs;

  function draw(page, data) {
    const cards = Elements.cards(Elements.section(page, "Settings"));
    for (const run of data.runs) {
      const box = Elements.card(cards, {title: rowName(data, run, "job.textproto"), wide: !several(data), long: true});
      box.append(make("pre", {}, run.job.trim()));
    }
    const rows = data.runs.flatMap(run =>
      (run.stages || [])
        .filter(stage => stage.server && Object.keys(stage.server).length)
        .map(stage => [
          rowName(data, run, "stage " + stage.stage),
          stage.device,
          stage.server.device_name || "–",
          stage.server.version || "–",
          stage.server.libtorch_version || "–",
          stage.server.cpu_capability || "–",
        ]),
    );
    if (rows.length) {
      Elements.card(cards, {title: "Versions", note: "What bit-equal results depend on.", wide: true}).append(
        Elements.table(
          [
            {title: "stage"},
            {title: "device", text: true},
            {title: "name", text: true},
            {title: "stage_server", text: true},
            {title: "LibTorch", text: true},
            {title: "instructions", text: true},
          ],
          rows,
        ),
      );
    }
    if (several(data)) return;
    const figures = Object.entries(data.runs[0].figures);
    const box = Elements.card(cards, {title: "Every figure", wide: true, long: true});
    box.append(
      make(
        "details",
        {},
        make("summary", {}, figures.length + " figures, by their names in summary.json"),
        Elements.table(
          [{title: "name"}, {title: "value"}],
          figures.map(([name, value]) => [name, Format.number(value, 6)]),
        ),
      ),
    );
  }

  return {draw};
})();
