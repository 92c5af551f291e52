// What the parts of the report have in common: how the runs are told apart.
const Runs = (() => {
  const several = data => data.runs.length > 1;
  // Runs of one arm share a color; where all are one arm each has its own.
  const seriesOf = (data, run) =>
    data.comparison && data.comparison.arms.length > 1 ? run.arm : data.runs.indexOf(run);
  const colorOf = (data, run) => () => Theme.series(seriesOf(data, run));
  const named = (data, run, text) => (several(data) ? run.name + ", " + text : text);
  // "stage 0", or of several runs "NAME: stage 0".
  const rowName = (data, run, text) => (several(data) ? run.name + " · " + text : text);

  // What a legend says of a curve of the run: of an arm of several runs its name, once; "" for the others.
  function legend(data, run) {
    const arm =
      data.comparison && data.comparison.arms.length > 1 ? data.runs.filter(other => other.arm === run.arm) : [run];
    if (arm.length === 1) return run.name;
    return run === arm[0] ? data.comparison.arms[run.arm].name + ", " + Format.plural(arm.length, "run") : "";
  }

  // By name, the curve of each run that has it.
  const curves = (data, name) =>
    data.runs
      .filter(run => run.curves[name])
      .map(run => ({
        label: run.name,
        legend: legend(data, run),
        key: seriesOf(data, run),
        color: colorOf(data, run),
        data: Curves.points(run.curves[name]),
      }));

  return {several, seriesOf, colorOf, named, rowName, legend, curves};
})();
