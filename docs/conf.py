"""The documentation as a site of static pages that needs no network, by Sphinx from README.md and docs/:

    pip install sphinx myst-parser furo
    python3 -m sphinx -W --keep-going -c docs . build/site      # then open build/site/README.html

With -W a link to a page, heading or file that does not exist is an error, and so is a page that no list below has. Pages link each
other as they do in the repository; a link to a source, such as ../input/quickstart.in, becomes a download of that file.
"""
import pathlib, re

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

ROOT = pathlib.Path(__file__).resolve().parent.parent

project, author, html_title = "Tern", "the Tern project", "Tern"
extensions = ["myst_parser"]
root_doc = "README"
exclude_patterns = [
    f.name for f in ROOT.iterdir() if f.name not in ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # as GitHub names them
highlight_language = "none"  # of indented commands
lexers["mermaid"] = TextLexer()  # diagrams are shown as text: the program that draws them is not part of the site
html_theme = "furo"
html_static_path, html_css_files = ["style"], ["site.css"]
html_copy_source = False
html_show_sphinx = False

# Document -> what stands below it in the navigation: captions (None: no caption) and documents; *: those of the directory that are not named.
NAVIGATION = {
    "README": {
        "Start": ["docs/tutorials/README", "docs/campaigns/README", "docs/hdp", "docs/faq"],
        "Use": ["docs/usage", "docs/deck", "docs/clusters", "docs/troubleshooting", "docs/checkpoint", "docs/glossary"],
        "Measured": ["docs/measurements"],
        "Project": ["docs/architecture", "CONTRIBUTING", "CHANGELOG"],
    },
    "docs/tutorials/README": {
        None: [
            f"docs/tutorials/{name}" for name in ("own_text", "reading_a_run", "chats", "word_problems",
                                                  "prompt_distillation", "cluster_job", "checkpoint_h5py", "*")
        ]
    },
    "docs/campaigns/README": {None: ["docs/campaigns/quickstart", "docs/campaigns/*"]},
    "docs/measurements": {
        None: [
            f"docs/measurements/{name}" for name in ("pretraining", "precisions", "several_gpus", "block_diffusion",
                                                     "recursive_models", "inference", "agreement")
        ], "Archive": ["docs/measurements/archive/*"]
    },
}
DIRECTORY = re.compile(r"\[([^]]+)\]\(([^):#\s]+)\)")  # a link that may lead to one


def expanded(names):
    """Names, with * replaced by the documents of that directory that are not named."""
    for name in names:
        found = sorted(str(path.relative_to(ROOT).with_suffix("")) for path in ROOT.glob(f"{name}.md"))
        yield from [document for document in found if document not in names and "README" not in document
                   ] if "*" in name else [name]


def prepared(app, document, text):
    """A document's text without links to directories, and with its part of the navigation, hidden, at its end."""
    here = (ROOT / document).parent
    text[0] = DIRECTORY.sub(lambda link: link[1] if (here / link[2]).is_dir() else link[0], text[0])
    for caption, below in NAVIGATION.get(document, {}).items():
        options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
        text[0] += "\n\n" + "\n".join(["```{toctree}", *options, "", *(f"/{name}" for name in expanded(below)), "```"
                                      ]) + "\n"


def with_index(app, exception):
    """index.html leads to the first page."""
    if app.builder.name == "html" and exception is None:
        (pathlib.Path(app.outdir) /
         "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={root_doc}.html">\n')


def setup(app):
    app.connect("source-read", prepared)
    app.connect("build-finished", with_index)
    return {"parallel_read_safe": True}
