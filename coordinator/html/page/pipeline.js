// The timeline of a typical step of each run that was traced.
const Pipeline = (() => {
  const {make} = Elements;
  const {several} = Runs;

  const firstOfArm = (run, runs) => run.arm === undefined || run === runs.find(other => other.arm === run.arm);

  function draw(page, data) {
    // Runs that differ in the seed only look alike.
    const traced = data.runs.filter(run => run.timeline).filter((run, i, all) => firstOfArm(run, all));
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
          several(data) ? "No step of these runs was traced. " : "No step of this run was traced. ",
          make("code", {}, "resbm train"),
          " writes trace.json; ",
          make("code", {}, "run.trace_steps"),
          " in the job says of how many of the first steps (0: none).",
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
