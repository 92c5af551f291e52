// The timeline of a typical step of each run that was traced.
const Pipeline = (() => {
  const {make} = Elements;
  const {several} = Runs;

  function draw(page, data) {
    const traced = data.runs.filter(run => run.timeline);
    const section = Elements.section(
      page,
      "Pipeline",
      traced.length
        ? "From trace.json, which Perfetto (ui.perfetto.dev) and chrome://tracing open too. Of steps " +
            traced[0].timeline.traced.join(" to ") +
            " the one of median duration is shown."
        : null,
    );
    const cards = Elements.cards(section);
    if (!traced.length) {
      const box = Elements.card(cards, {title: "Timeline", wide: true});
      box.append(
        make(
          "p",
          {class: "note no-trace"},
          "No trace.json in this run" +
            (several(data) ? " or the others" : "") +
            ". `resbm train` writes one of the first steps; run.trace_steps in the job says of how many (0: none).",
        ),
      );
      return;
    }
    for (const run of traced) {
      Timeline.card({parent: cards, run, title: several(data) ? "Timeline of " + run.name : "Timeline"});
    }
  }

  return {draw};
})();
