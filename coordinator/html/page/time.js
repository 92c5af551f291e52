// Where the time of a step goes, and how long steps took against the plan.
const Time = (() => {
  const {several, named, rowName} = Runs;

  const timeParts = stage => {
    const known =
      stage.forward_seconds +
      stage.backward_seconds +
      stage.waiting_up_seconds +
      stage.waiting_down_seconds +
      stage.commit_seconds;
    return {...stage, known};
  };

  function draw(page, data, group) {
    const staged = data.runs.filter(run => run.stages && run.figures.steps > 0);
    if (!staged.length) return;
    const cards = Elements.cards(
      Elements.section(
        page,
        "Time",
        "Means over the steps. Waiting “from above” is for activations of the stage before, “from below” for " +
          "gradients of the stage after.",
      ),
    );
    const rows = staged.flatMap(run =>
      run.stages.map(stage => ({
        run,
        stage: timeParts(stage),
        step: run.figures.training_seconds / run.figures.steps,
        name: rowName(data, run, "stage " + stage.stage),
      })),
    );
    const part = (label, color, value) => ({label, color: () => Theme.color(color), values: rows.map(value)});
    Bars.stacked({
      parent: cards,
      title: "Where a step's time goes",
      wide: rows.length > 3,
      format: Format.seconds,
      rows: rows.map(row => row.name),
      xTitle: "a step",
      parts: [
        part("forward", "forward", row => row.stage.forward_seconds),
        part("backward", "backward", row => row.stage.backward_seconds),
        part("optimizer step", "commit", row => row.stage.commit_seconds),
        part("waiting from above", "wait-up", row => row.stage.waiting_up_seconds),
        part("waiting from below", "wait-down", row => row.stage.waiting_down_seconds),
        part("other", "other", row => Math.max(0, row.step - row.stage.known)),
      ],
      ends: rows.map(row => Format.percent(row.stage.utilization, 0) + " computing"),
    });
    if (!several(data) && data.runs[0].step_seconds) {
      const run = data.runs[0];
      const lines = [];
      if (run.figures.step_seconds_median !== undefined) {
        lines.push({
          x: run.figures.step_seconds_median,
          label: "median " + Format.seconds(run.figures.step_seconds_median),
          color: () => Theme.color("ink"),
        });
      }
      if (run.figures.planned_step_seconds !== undefined) {
        lines.push({
          x: run.figures.planned_step_seconds,
          label: "planned " + Format.seconds(run.figures.planned_step_seconds),
          color: () => Theme.color("good"),
          row: 1,
          dash: [4, 3],
        });
      }
      const above = run.step_seconds.above;
      Bars.histogram({
        parent: cards,
        title: "Step times",
        histogram: run.step_seconds,
        lines,
        format: Format.seconds,
        note: above > 0 ? Format.plural(above, "step") + " took longer than this shows" : null,
      });
    }
    const curves = Runs.curves(data, "step_seconds");
    if (curves.length) {
      const planned = data.runs.filter(
        run => run.figures.planned_step_seconds !== undefined && run.curves.step_seconds,
      );
      Curves.card({
        parent: cards,
        title: "Step time over the run",
        group,
        format: Format.seconds,
        zero: true,
        canLog: true,
        wide: true,
        height: 200,
        lines: curves.concat(
          planned.map(run => {
            const {steps} = run.curves.step_seconds;
            const y = run.figures.planned_step_seconds;
            return {
              label: named(data, run, "planned"),
              color: () => Theme.color("good"),
              dash: [5, 4],
              data: [
                {x: steps[0], y},
                {x: steps[steps.length - 1], y},
              ],
            };
          }),
        ),
      });
    }
  }

  return {draw};
})();
