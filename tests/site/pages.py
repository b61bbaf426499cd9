"""The documents make a site (docs/conf.py) without a broken link, which loads nothing from the network; figures are those of their points."""
import os, pathlib, re, runpy, shutil, subprocess, sys, tempfile, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import limited

# What a page loads: scripts, styles, images, frames. Links that a reader follows may lead anywhere.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>|\burl\([\"']?(?:https?:)?//|@import"
)


def build(root, out):
    """Exit code and output of a build of the documents of a directory."""
    command = [
        sys.executable, "-B", "-m", "sphinx", "-W", "--keep-going", "-q", "-c",
        str(root / "docs"),
        str(root),
        str(out)
    ]
    done = limited.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, silent=120)
    return done.returncode, done.stdout


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.code, cls.output = build(ROOT, cls.work / "site")

    def test_no_link_is_broken(self):
        self.assertEqual(self.code, 0, self.output)

    def test_every_document_is_a_page(self):
        for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
            page = self.work / "site" / document.relative_to(ROOT).with_suffix(".html")
            self.assertTrue(page.exists(), f"{page} is missing\n{self.output}")

    def test_pages_load_nothing_from_the_network(self):
        files = [f for f in (self.work / "site").rglob("*") if f.suffix in (".html", ".css")]
        self.assertGreater(len(files), 20)
        for file in files:
            loaded = LOADED.search(file.read_text())
            self.assertIsNone(loaded, f"{file}: {loaded and loaded.group()}")


class Faults(unittest.TestCase):
    """A few documents, and the same with faults."""
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        (self.work / "docs").mkdir()
        shutil.copy(ROOT / "docs/conf.py", self.work / "docs")
        shutil.copytree(ROOT / "docs/style", self.work / "docs/style")
        for lists in runpy.run_path(str(ROOT / "docs/conf.py"))["NAVIGATION"].values():
            for name in sum(lists.values(), []):
                self.write(f"{name.replace('*', 'another')}.md", "# A page\n\n## A heading\n")
        self.write("README.md", "# Home\n\n[page](docs/usage.md#a-heading), [source](input/a.in), [directory](input)\n")
        self.write("input/a.in", "&campaign\n/\n")

    def write(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_without_faults(self):
        code, output = build(self.work, self.work / "build")
        self.assertEqual((code, output), (0, ""))

    def test_faults_are_reported(self):
        self.write(
            "docs/faq.md",
            "# FAQ\n\n[a](no_page.md) [b](usage.md#no-heading) [c](../input/no_deck.in)\n\n![d](no_figure.svg)\n")
        self.write("docs/forgotten.md", "# Not in the navigation\n")
        code, output = build(self.work, self.work / "build")
        self.assertNotEqual(code, 0)
        for fault in ("no_page.md", "no-heading", "no_deck.in", "no_figure.svg", "forgotten.md"):
            self.assertRegex(output, rf"(?m)WARNING.*{fault}|{fault}.*WARNING")
        self.assertEqual(output.count("WARNING"), 5, output)


class Figures(unittest.TestCase):
    def test_a_figure_of_points_has_their_curves(self):
        files = sorted((ROOT / "docs/curves").glob("*.csv"))
        self.assertGreater(len(files), 5)
        with tempfile.TemporaryDirectory() as work:
            os.mkdir(f"{work}/curves")
            for file in files:
                shutil.copy(file, f"{work}/curves")
            limited.run([
                sys.executable, "-B", ROOT / "docs/curves_figure.py", *sorted(pathlib.Path(work).glob("curves/*.csv"))
            ], check=True)
            for file in files:
                drawn, kept = (pathlib.Path(d) / f"{file.stem}.svg" for d in (work, ROOT / "docs"))
                self.assertEqual(self.curves(drawn), self.curves(kept), f"{kept} is not that of {file}")

    def curves(self, figure):
        """Title and names of curves, and numbers of points; where these are depends on gnuplot's version."""
        text = figure.read_text()
        return re.findall(r"<title>(.*?)</title>", text), text.count("xlink:href='#gpPt6'")


if __name__ == "__main__":
    unittest.main(verbosity=2)
