"""Opens reports in a real browser: browser_test.py DIRECTORY, with what write_reports wrote there."""

import json
import os
import re
import sys
import tempfile
import unittest

from browser import Browser

DIRECTORY = None

# What the page has drawn: by chart its label, legend, marks of each legend entry, and how many of its pixels are not
# the background's.
CHARTS = """
Object.values(Chart.instances).map(chart => {
  const {width, height} = chart.canvas;
  const pixels = chart.canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let drawn = 0;
  for (let i = 3; i < pixels.length; i += 4) drawn += pixels[i] > 0;
  return {
    label: chart.canvas.getAttribute("aria-label"),
    legend: chart.options.plugins.legend.display ? chart.legend.legendItems.map(item => item.text) : [],
    marks: Object.fromEntries(
      chart.data.datasets.map((dataset, i) => [dataset.label, chart.getDatasetMeta(i).data.length])),
    drawn: drawn / (width * height),
    inside: chart.data.datasets.every((dataset, d) => chart.getDatasetMeta(d).data.every(
      mark => Number.isFinite(mark.x) && Number.isFinite(mark.y))),
  };
})
"""


TIMELINE = "Timeline of the pipeline"


def chart(label):
    """An expression that gives the chart of that label."""
    return f"Object.values(Chart.instances).find(c => c.canvas.getAttribute('aria-label') === {json.dumps(label)})"


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def setUp(self):
        self.browser.prefer("light")
        self.browser.resize(1280, 1000)

    def open(self, name):
        path = os.path.join(DIRECTORY, name + ".html")
        self.browser.open(path)
        charts = {chart["label"]: chart for chart in self.browser.evaluate(CHARTS)}
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(self.browser.requests, ["file://" + os.path.abspath(path)])
        for label, chart in charts.items():
            self.assertGreater(chart["drawn"], 0.004, f"{name}: {label} is empty")
            self.assertTrue(chart["inside"], f"{name}: {label} has marks nowhere")
        return charts

    def text(self):
        return self.browser.evaluate("document.getElementById('page').innerText")

    def headings(self):
        return self.browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")

    def canvas(self, label):
        """Where the plot of a chart is in the window, after scrolling there."""
        return self.browser.evaluate(f"""(() => {{
          const chart = {chart(label)};
          chart.canvas.scrollIntoView({{block: "center"}});
          const box = chart.canvas.getBoundingClientRect();
          const {{left, right, top, bottom}} = chart.chartArea;
          return {{left: box.left + left, right: box.left + right, top: box.top + top, bottom: box.top + bottom}};
        }})()""")

    def scale(self, label):
        return self.browser.evaluate(f"[{chart(label)}.scales.x.min, {chart(label)}.scales.x.max]")

    def drag(self, label, begin, end):
        box = self.canvas(label)
        x = [box["left"] + share * (box["right"] - box["left"]) for share in (begin, end)]
        y = (box["top"] + box["bottom"]) / 2
        self.browser.mouse("mousePressed", x[0], y, button="left", clickCount=1)
        self.browser.mouse("mouseMoved", sum(x) / 2, y, button="left")
        self.browser.mouse("mouseMoved", x[1], y, button="left")
        self.browser.mouse("mouseReleased", x[1], y, button="left", clickCount=1)

    def test_a_run_shows_all_its_parts(self):
        charts = self.open("run")
        self.assertEqual(
            self.headings(),
            ["Learning", "Pipeline", "Time", "Links", "Stages", "Signals at the cut points", "Settings"],
        )
        loss = charts["Loss over the steps"]
        self.assertEqual(loss["legend"][:3], ["training", "mean of 9 steps", "test"])
        self.assertEqual(loss["marks"]["training"], 498)
        self.assertEqual(loss["marks"]["test"], 2)
        self.assertEqual(loss["marks"]["2 skipped steps"], 2)
        self.assertEqual(charts["Top-1 accuracy on the test set over the steps"]["marks"], {"a-1": 2})
        self.assertEqual(charts["Learning rate over the steps"]["marks"], {"a-1": 500})
        timeline = charts["Timeline of the pipeline"]
        self.assertEqual(
            timeline["legend"],
            ["forward", "backward", "waiting for a tensor", "sending", "receiving", "optimizer step"],
        )
        # Three steps of two stages.
        self.assertEqual(
            timeline["marks"],
            {
                "forward": 24,
                "backward": 24,
                "waiting for a tensor": 3,
                "sending": 24,
                "receiving": 24,
                "optimizer step": 6,
            },
        )
        self.assertEqual(
            charts["Where a step's time goes"]["legend"],
            ["forward", "backward", "optimizer step", "waiting from above", "waiting from below", "other"],
        )
        self.assertGreater(charts["Step times"]["marks"]["steps"], 10)
        self.assertEqual(charts["Bytes a step"]["legend"], ["payload", "metadata", "not sent: rest of fp16"])
        self.assertEqual(charts["Peak memory"]["marks"], {"weights": 2, "optimizer": 2, "activations": 2, "buffers": 2})
        self.assertEqual(sum(label.endswith("over the steps") for label in charts), 9)
        text = self.text()
        for expected in [
            "0.541",
            "3.94×",
            "stage 0 → stage 1",
            "2.13.0",
            "AVX512",
            "2 January 2026, 03:04 UTC",
            'cut_point { after: "group0.0" }',
            "2 steps were skipped",
        ]:
            self.assertIn(expected, text)

    def test_planned_time_stands_beside_the_measured_one(self):
        self.open("run")
        lines = self.browser.evaluate(
            f"{chart('Step times')}.options.plugins.verticalLines.lines.map(line => line.label)"
        )
        self.assertEqual(lines, ["median 100 ms", "planned 120 ms"])

    def test_without_a_trace_the_report_says_how_to_get_one(self):
        charts = self.open("without_trace")
        self.assertNotIn("Timeline of the pipeline", charts)
        self.assertIn("run.trace_steps", self.text())
        self.assertNotIn("Transfers, as traced", self.text())

    def test_what_an_old_run_does_not_know_is_left_out(self):
        charts = self.open("old")
        self.assertEqual(self.headings(), ["Learning", "Pipeline", "Time", "Stages", "Settings"])
        self.assertEqual(set(charts), {"Loss over the steps", "Where a step's time goes", "Peak memory"})
        text = self.text()
        for absent in ["NaN", "undefined", "null", "compression", "planned", "Versions", "GPU"]:
            self.assertNotIn(absent, text)

    def test_a_language_model_has_bits_a_byte(self):
        self.open("text")
        text = self.text()
        self.assertIn("bits per byte", text)
        self.assertIn("perplexity", text)
        self.assertIn("6,400", text)

    def test_several_runs_stand_side_by_side(self):
        charts = self.open("several")
        self.assertEqual(self.headings()[0], "Side by side")
        # One entry an arm, which hides all its lines.
        loss = charts["Loss over the steps"]
        self.assertEqual(loss["legend"], ["r4-1", "skipped step", "r16, 2 runs"])
        self.assertEqual(loss["marks"]["r16-2"], 398)
        self.assertEqual(loss["marks"]["r16-2, test"], 2)
        hidden = self.browser.evaluate(f"""(() => {{
          const chart = {chart("Loss over the steps")};
          chart.options.plugins.legend.onClick({{}}, chart.legend.legendItems[2], {{chart}});
          return chart.data.datasets.filter((_, i) => !chart.isDatasetVisible(i)).map(dataset => dataset.label);
        }})()""")
        self.assertEqual(hidden, ["r16-1", "r16-1, test", "r16-2", "r16-2, test"])
        timelines = "[...document.querySelectorAll('h3')].map(h => h.textContent).filter(t => t.startsWith('Timeline'))"
        self.assertEqual(self.browser.evaluate(timelines), ["Timeline of r4-1", "Timeline of r16-1"])
        self.assertEqual(charts["Bytes a step"]["marks"]["payload"], 6)
        text = self.text()
        for expected in ["What may be said", "Beware", "Where the jobs differ", "ratio", "−1.20 pt", "−73.9 %"]:
            self.assertIn(expected, text)

    def test_a_difference_is_colored_only_where_it_is_sure(self):
        colored = """[...document.querySelectorAll("td small.good, td small.bad")].map(
          small => small.closest("tr").cells[0].textContent + " " + small.className)"""
        self.open("several")  # one run of the first
        self.assertEqual(self.browser.evaluate(colored), ["at the cuts, a step good"])
        self.open("arms")  # three of each
        sure = self.browser.evaluate(colored)
        self.assertIn("top-1 accuracy bad", sure)
        self.assertIn("at the cuts, a step good", sure)
        self.assertNotIn("samples a second good", sure)

    def test_runs_of_several_seeds_have_a_mean_and_a_spread(self):
        self.open("seeds")
        text = self.text()
        self.assertIn("differ in the seed only", text)
        self.assertRegex(text, r"89\.62 % ± 0\.01 %")

    def test_a_hundred_thousand_steps_are_drawn_in_full_width(self):
        charts = self.open("long")
        self.assertLess(charts["Loss over the steps"]["marks"]["training"], 2001)
        self.assertEqual(self.scale("Loss over the steps")[1], 100000)
        self.assertLess(os.path.getsize(os.path.join(DIRECTORY, "long.html")), 1_500_000)

    def test_a_name_that_is_html_is_text(self):
        self.open("evil")
        self.assertIn(
            "</script><script>window.evil = 1</script>",
            self.browser.evaluate("document.querySelector('h1').textContent"),
        )
        self.assertTrue(self.browser.evaluate("window.evil === undefined && document.images.length === 0"))

    def test_dragging_zooms_all_curves_and_a_double_click_goes_back(self):
        self.open("run")
        whole = self.scale("Loss over the steps")
        self.drag("Loss over the steps", 0.2, 0.4)
        for label in [
            "Loss over the steps",
            "Gradient norm over the steps",
            "Effective rank of what crosses over the steps",
        ]:
            low, high = self.scale(label)
            self.assertAlmostEqual(low, 0.2 * whole[1], delta=0.02 * whole[1])
            self.assertAlmostEqual(high, 0.4 * whole[1], delta=0.02 * whole[1])
        box = self.canvas("Gradient norm over the steps")
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.browser.mouse(kind, box["left"] + 30, box["top"] + 30, button="left", clickCount=count)
        self.assertEqual(self.scale("Loss over the steps"), whole)
        self.assertEqual(self.browser.errors, [])

    def test_the_timeline_zooms_and_names_what_is_pointed_at(self):
        self.open("run")
        whole = self.scale(TIMELINE)
        self.assertEqual(whole[0], 0)
        self.drag(TIMELINE, 0.0, 0.2)
        self.assertAlmostEqual(self.scale(TIMELINE)[1], whole[1] / 5, delta=whole[1] / 50)
        # The first tensor that stage 0 sends in what is shown.
        place = self.browser.evaluate(f"""(() => {{
          const chart = {chart(TIMELINE)};
          const sending = chart.data.datasets.findIndex(d => d.label === "sending");
          const first = chart.data.datasets[sending].data.findIndex(d => d.x[0] > 0);
          const bar = chart.getDatasetMeta(sending).data[first];
          chart.canvas.scrollIntoView({{block: "center"}});
          const box = chart.canvas.getBoundingClientRect();
          return {{x: box.left + (bar.x + bar.base) / 2, y: box.top + bar.y}};
        }})()""")
        self.browser.mouse("mouseMoved", place["x"], place["y"])
        opacity, title, footer = self.browser.evaluate(f"""(() => {{
          const {{tooltip}} = {chart(TIMELINE)};
          return [tooltip.opacity, tooltip.title[0], tooltip.footer.join("|")];
        }})()""")
        self.assertEqual(opacity, 1)
        self.assertEqual(title, "to stage 1 at stage 0")
        self.assertRegex(footer, r"^step \d, micro-batch \d\|784 B$")

    def test_the_timeline_goes_from_step_to_step_and_hides_its_links(self):
        self.open("run")
        click = "[...document.querySelectorAll('button')].find(b => b.textContent === '%s').click()"
        lanes = chart(TIMELINE) + ".scales.y.ticks.length"
        one = self.scale(TIMELINE)[1]
        self.browser.evaluate(click % "all 3")
        self.assertGreater(self.scale(TIMELINE)[1], 2.5 * one)
        self.assertEqual(self.browser.evaluate(lanes), 6)
        self.browser.evaluate(click % "links")
        self.assertEqual(self.browser.evaluate(lanes), 2)
        self.assertEqual(self.browser.errors, [])

    def test_it_is_dark_where_the_system_is_and_can_be_told_otherwise(self):
        background = "getComputedStyle(document.body).backgroundColor"
        self.browser.prefer("dark")
        self.open("run")
        self.assertEqual(self.browser.evaluate(background), "rgb(18, 22, 28)")
        dark = self.browser.evaluate("Chart.defaults.color")
        self.browser.evaluate("document.querySelector('button.theme').click()")
        self.assertEqual(self.browser.evaluate(background), "rgb(246, 247, 249)")
        self.assertNotEqual(self.browser.evaluate("Chart.defaults.color"), dark)
        self.assertEqual(self.browser.errors, [])

    def test_it_fits_a_narrow_window(self):
        self.browser.resize(390, 800)
        for name in ["run", "several", "evil"]:
            self.open(name)
            self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 390, name)

    def test_it_prints_light_and_leaves_the_screen_as_it_was(self):
        self.browser.prefer("dark")
        self.open("run")
        with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
            self.browser.pdf(file.name)
            pages = len(re.findall(rb"/Type\s*/Page\b", file.read()))
        self.assertIn(pages, range(3, 14))
        self.assertEqual(self.browser.evaluate("document.documentElement.dataset.theme"), "dark")
        self.assertEqual(self.browser.evaluate("document.documentElement.className"), "")
        self.assertEqual(self.browser.errors, [])


if __name__ == "__main__":
    DIRECTORY = sys.argv.pop(1)
    unittest.main(verbosity=2)
