"""The reader of pages notices what it is there to notice."""

import pathlib
import sys
import tempfile
import unittest

import pages
import run_page

PAGE = """# A page

<!-- not run: needs another machine -->
```sh
ssh elsewhere
```

```sh
echo "3 steps, 2.5 samples/s"
echo end
false || true
```

<!-- output -->
```text
7 steps, 11.25 samples/s
...
```

<!-- slow: waits -->
```sh
sleep 0
```

<!-- errors: 2 -->
| command | message |
|---|---|
| `bash -c 'echo no such thing; exit 2'` | `no such thing` |
"""


def page_of(text):
    with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
        file.write(text)
        file.flush()
        return pages.Page(pathlib.Path(file.name))


class Mismatch(unittest.TestCase):
    PRINTED = "starting\nstep 1/30  loss 4.83\nstep 2/30  loss 4.01\n\ndone in 0:08\n"

    def test_numbers_and_spaces_may_differ(self):
        self.assertIsNone(run_page.mismatch("step 7/99   loss 0.5\nstep 8/99 loss 0.25", self.PRINTED))

    def test_words_may_not(self):
        self.assertEqual(run_page.mismatch("starting\nstep 1/30  gain 4.83", self.PRINTED), "step 1/30  gain 4.83")

    def test_lines_between_must_be_shown_or_left_out_by_dots(self):
        self.assertIn("but after", run_page.mismatch("starting\ndone in 0:08", self.PRINTED))
        self.assertIsNone(run_page.mismatch("starting\n...\ndone in 0:08", self.PRINTED))

    def test_order_counts(self):
        self.assertIsNotNone(run_page.mismatch("done in 0:08\n...\nstarting", self.PRINTED))


class Script(unittest.TestCase):
    def test_a_page_is_read_with_what_is_said_about_its_blocks(self):
        page = page_of(PAGE)
        self.assertEqual([b.kind for b in page.commands()], ["not run", "run", "slow"])
        self.assertEqual(page.commands()[0].reason, "needs another machine")
        self.assertEqual([b.note for b in page.blocks if b.language == "text"], ["output"])
        self.assertEqual(page.tables[0][1:], (2, [("bash -c 'echo no such thing; exit 2'", "no such thing")]))

    def test_the_fast_test_leaves_out_the_slow_blocks(self):
        fast, slow = (run_page.script_of(page_of(PAGE), pace) for pace in ("fast", "slow"))
        self.assertNotIn("sleep", fast)
        self.assertIn("sleep", slow)
        self.assertNotIn("ssh", slow)

    def test_a_comment_that_no_block_follows_is_an_error(self):
        with self.assertRaisesRegex(AssertionError, "no block follows"):
            page_of("<!-- slow: because -->\ntext\n")

    def test_ports_become_free_ones_the_same_everywhere(self):
        text = run_page.free_ports("--listen 127.0.0.1:50051 & --stages 127.0.0.1:50051,127.0.0.1:50052 in 2:50")
        first, again = text.split(":")[1].split()[0], text.split(":")[2].split(",")[0]
        self.assertEqual(first, again)
        self.assertNotEqual(first, "50051")
        self.assertTrue(text.endswith("2:50"))


class Run(unittest.TestCase):
    def run_page(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(text)
            file.flush()
            return run_page.check(pages.Page(pathlib.Path(file.name)), "page", "/bin/true", "/bin/false", "slow")

    def test_a_page_that_is_right_passes(self):
        failures, _ = self.run_page(PAGE)
        self.assertEqual(failures, [])

    def test_a_command_that_fails_fails_the_page(self):
        failures, _ = self.run_page(PAGE.replace("echo end", "false"))
        self.assertIn("exit code 1", failures[0])

    def test_output_that_is_not_printed_fails_the_page(self):
        failures, _ = self.run_page(PAGE.replace("7 steps", "7 epochs"))
        self.assertIn("not printed: 7 epochs", failures[0])

    def test_another_message_or_exit_code_fails_the_page(self):
        failures, _ = self.run_page(PAGE.replace("| `no such thing`", "| `no other thing`"))
        self.assertIn("expected: no other thing", failures[0])
        failures, _ = self.run_page(PAGE.replace("exit 2", "exit 3"))
        self.assertIn("WRONG EXIT CODE 3", failures[0])

    def test_a_server_that_is_left_running_fails_the_page(self):
        failures, _ = self.run_page("```sh\nsleep 600 &\n```\n")
        self.assertIn("left running", failures[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
