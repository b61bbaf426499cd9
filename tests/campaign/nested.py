"""JSON nested 100,000 levels deep, and values of other types, wherever a file from a stranger is read.

    nested.py TRAINER MPIRUN PREPARE [unittest arguments]
"""
import json, os, shutil, struct

from stranger import PREPARE, Stranger, nested, sets
from tiny import main

DEEP = "nested more than 100 levels deep"


class Nested(Stranger):
    def setUp(self):
        super().setUp()
        self.deck(6)

    def model(self):
        """hf: a Transformers directory, and its JSON files as text."""
        if not os.path.isdir(self.file("hf")):
            self.run_trainer()
            self.run_trainer("--export", "hf")
        return {name: self.read(f"hf/{name}") for name in ("config.json", "tokenizer.json", "tokenizer_config.json")}

    def with_member(self, text, path, value):
        """The JSON text with `value`, itself text, at the path."""
        root = json.loads(text)
        at = root
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = "PLACE"
        return json.dumps(root).replace('"PLACE"', value)

    def test_transformers_config(self):
        files = self.model()
        load = sets("model.load='other'", "output.directory='o'", "data.tokenizer='bytes'")
        for name in ("hidden_act", "rope_scaling", "rope_parameters", "layer_types", "quantization_config",
                     "architectures", "model_type", "other"):
            for objects in (False, True):
                shutil.rmtree(self.file("other"), ignore_errors=True)
                shutil.copytree(self.file("hf"), self.file("other"))
                self.write("other/config.json", self.with_member(files["config.json"], [name], nested(objects=objects)))
                with self.subTest(name, objects=objects):
                    self.refused(*load, naming="other/config.json", why=DEEP)
                    self.assertFalse(os.path.exists(self.file("o/log.txt")))

    def test_weights(self):
        self.model()
        load = sets("generation.checkpoint='other'", "model.load='hf'", "data.tokenizer='bytes'")
        os.makedirs(self.file("other"))
        shutil.copy(self.file("hf/config.json"), self.file("other"))
        for text in ('{"weight_map": %s}' % nested(), '{"weight_map": {"a": %s}}' % nested(objects=True), nested()):
            self.write("other/model.safetensors.index.json", text)
            self.refused(*load, "--export", "new", naming="model.safetensors.index.json", why=DEEP)
        os.remove(self.file("other/model.safetensors.index.json"))
        for text in ('{"a": %s}' % nested(), '{"__metadata__": %s}' % nested(), nested()):
            with open(self.file("other/model.safetensors"), "wb") as f:
                f.write(struct.pack("<Q", len(text)) + text.encode())
            self.refused(*load, "--export", "new", naming="model.safetensors", why=DEEP)

    def test_tokenizer(self):
        text = self.model()["tokenizer.json"]
        load = sets("data.tokenizer='other'") + ("--dry-run",)
        paths = (["normalizer"], ["pre_tokenizer"], ["post_processor"], ["decoder"], ["added_tokens"],
                 ["model", "merges"], ["model", "dropout"], ["model", "vocab"], ["model", "type"], ["other"])
        sequences = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}
        cases = [(path, nested(objects=i % 2)) for i, path in enumerate(paths)]
        for name, parts in sequences.items():
            head = '{"type": "Sequence", "%s": [' % parts
            cases.append(([name], head * 50_000 + "]}" * 50_000))
        for path, value in cases:
            self.write("other/tokenizer.json", self.with_member(text, path, value))
            with self.subTest(path):
                self.refused("--prompt", "a", *load[:2], naming="other/tokenizer.json", why=DEEP)

    def test_gpt2_tokenizer(self):
        prompt = ("--prompt", "a", *sets("data.tokenizer='other'"))
        self.write("other/vocab.json", {"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})
        self.write("other/merges.txt", "#version: 0.2\na b\n")
        for text, why in ((nested(), DEEP), ('{"tokenizer_class": %s}' % nested(), DEEP), ('{"tokenizer_class": 5}',
                                                                                           "not a string"),
                          ('{"tokenizer_class": ["GPT2"]}', "not a string"), ('{"tokenizer_class"', "not JSON")):
            self.write("other/tokenizer_config.json", text)
            self.refused(*prompt, naming="other/tokenizer_config.json", why=why)
        self.write("other/tokenizer_config.json", '{"tokenizer_class": "Llama\x1b[31m"}'.replace("\x1b", "\\u001b"))
        self.refused(*prompt, naming="other", why="Llama\\x1b[31m")
        os.remove(self.file("other/tokenizer_config.json"))
        self.write("other/vocab.json", '{"a": %s}' % nested())
        self.refused(*prompt, naming="other/vocab.json", why=DEEP)

    def test_training_data(self):
        self.problems()
        chats = sets("objective.kind='supervised'", "data.train='data/chats.jsonl'", "data.valid='data/chats.jsonl'",
                     "model.context=48")
        good = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})
        for path in (["messages"], ["messages", 1], ["messages", 1, "content"], ["messages", 0, "role"], ["other"]):
            for objects in (False, True):
                self.write("data/chats.jsonl",
                           good + "\n" + self.with_member(good, path, nested(objects=objects)) + "\n")
                with self.subTest(path):
                    self.refused(*chats, naming="data/chats.jsonl:2", why=DEEP)
        self.write("data/chats.jsonl", good.replace('"user"', '"\\u001b[31m\\nerror: user"'))
        self.refused(*chats, naming="data/chats.jsonl:1", why="\\x1b[31m\\nerror: user")
        problems = sets("objective.kind='block_diffusion'", "objective.block_length=5", "data.train='data/p.jsonl'",
                        "data.valid='data/p.jsonl'", "data.question_tokens=16", "data.plan_tokens=8",
                        "data.execution_tokens=24", "model.context=48")
        for name in ("question", "answer", "plan", "other"):
            self.write(
                "data/p.jsonl",
                json.dumps({"question": "a", "answer": "1\n#### 1"}) + "\n" +
                self.with_member('{"question": "a", "answer": "1\\n#### 1"}', [name], nested()) + "\n")
            with self.subTest(name):
                self.refused(*problems, naming="data/p.jsonl:2", why=DEEP)
        self.write("data/p.jsonl", "[" + nested() + "]")
        self.refused(*problems, naming="data/p.jsonl", why=DEEP)

    def test_requests(self):
        self.model()
        answer = sets("campaign.task='generate'", "model.load='run'", "generation.input='r.jsonl'",
                      "output.directory='answers'")
        for name in ("text", "id", "label", "other"):
            self.write("r.jsonl", '{"text": "a"}\n' + self.with_member('{"text": "a"}', [name], nested()) + "\n")
            with self.subTest(name):
                self.refused(*answer, naming="r.jsonl:2", why=DEEP)

    def test_prepare(self):
        self.write("d.jsonl", '{"text": "a"}\n{"text": "b", "c": %s}\n' % nested())
        self.refused("text", "--input", "d.jsonl", "--output", "o", "--tokenizer", "bytes", program=PREPARE,
                     naming="d.jsonl:2", why=DEEP)
        for line in ('{"text": "a", "label": %s}' % nested(), '{"text": "a", "id": %s}' % nested(objects=True),
                     '{"text": %s}' % nested()):
            self.write("s.jsonl", '{"text": "x"}\n%s\n' % line)
            self.refused("sentences", "--input", "s.jsonl", "--output", "o", program=PREPARE, naming="s.jsonl:2",
                         why=DEEP)
        self.write("p.jsonl", json.dumps({"question": "a", "answer": "1\n#### 1"}) + "\n")
        for line in ('{"id": %s}' % nested(), '{"messages": %s}' % nested(),
                     '{"id": 0, "messages": [{"role": %s}]}' % nested()):
            self.write("a.jsonl", line + "\n")
            self.refused("plans", "--input", "p.jsonl", "--answers", "a.jsonl", "--output", "o", program=PREPARE,
                         naming="a.jsonl:1", why=DEEP)
        self.write("g/train.jsonl", '{"question": "a", "answer": %s}\n' % nested())
        self.refused("gsm8k", "g", "--output", "o", program=PREPARE, naming="train.jsonl:1", why=DEEP)
        self.assertFalse(os.path.exists(self.file("o")))

    def test_files_of_a_run(self):
        """What a run reads back of its own is left out, or the run starts without it: nothing ends it."""
        self.run_trainer()
        lines = self.read("run/metrics.jsonl")
        for text in (nested(), nested(objects=True), '{"host": 5, "process": "a", "step": 6, "a": %s}' % nested(90),
                     '{"process": 1e300}', '{"host": 5}', '{"process": "a"}', '{"exit_code": "x", "findings": 1}', "[]",
                     "null", "\x1b"):
            for name in ("run.json", "verdict.json", "evaluation.json", "rate.json", ".lock",
                         "checkpoints/step_00000006/evaluation.json"):
                self.write(f"run/{name}", text)
            with self.subTest(text=text[:40]):
                self.fine("--resume")
        self.write("run/metrics.jsonl",
                   '{"step": 1, "a": %s}\n{"step": "x"}\n{"step": 18446744073709551615}\n%s' % (nested(), lines))
        self.fine("--resume")
        self.assertEqual(self.read("run/metrics.jsonl").count('"val/loss"'), lines.count('"val/loss"'))


if __name__ == "__main__":
    main()
