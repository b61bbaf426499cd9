"""Models in Transformers directories through the real trainer: planned, loaded, trained, exported.

    directories.py TRAINER MPIRUN GOLDEN [unittest arguments]        GOLDEN: the folder tests/golden
"""
import json, os, re, shutil, struct, sys

GOLDEN = os.path.abspath(sys.argv.pop(3))

from tiny import Campaign, main, write_shard

DECK = """
&campaign name = 'dir' max_steps = 6 /
&model load = 'model' context = 16 /
&data train = 'data/train_*.bin' valid = 'data/valid_*.bin' tokenizer = 'model' threads = 1 /
&batch per_rank = 2 /
&optimizer lr = 3e-3 /
&evaluation every = 6 rows = 8 /
&generation samples = 0 /
&output directory = 'run' log_every = 1 /
"""


def tensors(folder):
    """Name -> (type, shape, bytes) of all files of a folder."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        (length,) = struct.unpack_from("<Q", data)
        for tensor, entry in json.loads(data[8:8 + length]).items():
            if tensor != "__metadata__":
                first, last = entry["data_offsets"]
                found[tensor] = entry["dtype"], entry["shape"], data[8 + length + first:8 + length + last]
    return found


class Directories(Campaign):
    def setUp(self):
        super().setUp()
        self.take("qwen3_bf16")

    def deck(self, steps):
        with open(self.file("tiny.in"), "w") as f:
            f.write(DECK)

    def take(self, name):
        shutil.rmtree(self.file("model"), ignore_errors=True)
        shutil.copytree(os.path.join(GOLDEN, name), self.file("model"))

    def same_files(self, name):
        with open(self.file(f"model/{name}"), "rb") as a, open(self.file(f"out/{name}"), "rb") as b:
            self.assertEqual(a.read(), b.read(), name)

    def test_untrained_weights_come_back_bit_for_bit(self):
        for model, tokenizer in (("qwen3_bf16", "model"), ("qwen3", "nowhere"), ("moe_shards", "nowhere")):
            self.take(model)
            for compute in ("fp32", "bf16"):
                shutil.rmtree(self.file("out"), ignore_errors=True)
                text = self.run_trainer("--export", "out", "--set", f"precision.compute='{compute}'", "--set",
                                        f"data.tokenizer='{tokenizer}'")
                self.assertIn("exported to out", text)
                self.assertEqual(tensors(self.file("model")), tensors(self.file("out")))
                for name in os.listdir(self.file("model")):
                    if "safetensors" not in name:  # the copy is one file
                        self.same_files(name)

    def test_trained_weights_keep_type_and_files(self):
        self.run_trainer("--set", "precision.compute='bf16'")
        last = self.steps("run", "val/loss")[6]
        self.run_trainer("--export", "out")
        before, after = tensors(self.file("model")), tensors(self.file("out"))
        self.assertEqual({n: t[:2] for n, t in before.items()}, {n: t[:2] for n, t in after.items()})
        changed = [n for n in before if before[n] != after[n]]
        self.assertGreater(len(changed), len(before) // 2)
        self.same_files("config.json")
        self.same_files("chat_template.jinja")
        # The export evaluates to what the run reached, in every precision.
        for options in ((), ("--set", "precision.compute='bf16'")):
            text = self.run_trainer("--set", "campaign.task='evaluate'", "--set", "generation.checkpoint='out'",
                                    *options)
            loss = float(text.split("validation loss ")[1].split()[0])
            self.assertLess(abs(loss - last), 0.02 * last)

    def test_experts_fused_or_not(self):
        write_shard(self.file("data/small.bin"), [i * i % 79 for i in range(4000)])
        options = ("--set", "data.train='data/small.bin'", "--set", "data.valid='data/small.bin'", "--set",
                   "data.tokenizer='nowhere'")
        losses = []
        for name in ("moe_shards", "moe_fused"):
            self.take(name)
            text = self.run_trainer("--set", "campaign.task='evaluate'", *options)
            losses.append(text.split("validation loss ")[1].split()[0])
        self.assertEqual(losses[0], losses[1])
        self.run_trainer("--set", "precision.compute='bf16'", *options)
        self.run_trainer("--export", "out", *options)
        self.take("moe_shards")  # trained: the same tensors hold other values
        before, after = tensors(self.file("model")), tensors(self.file("out"))
        self.assertEqual({n: t[:2] for n, t in before.items()}, {n: t[:2] for n, t in after.items()})
        self.assertGreater(sum(before[n] != after[n] for n in before), len(before) // 2)

    def test_training_starts_from_what_matches(self):
        """The golden model with biases, which begin at 0: the losses are the same as without."""
        sizes = ("--set", "model.hidden=32", "--set", "model.heads=4", "--set", "model.kv_heads=2", "--set",
                 "model.head_dim=16", "--set", "model.ffn_hidden=56", "--set", "model.layers=2", "--set",
                 "model.vocabulary=288", "--set", "model.qk_norm=T", "--set", "model.norm_eps=1e-6", "--set",
                 "model.rope_base=1e6")
        matching = ("--set", "model.load_rule=matching", "--set")
        self.run_trainer("--set", "output.directory=same")
        text = self.run_trainer(*matching, "model.attention_bias=T", "--set", "output.directory=biased")
        self.assertIn("keeps its initial values: /model/layers/*/self_attn/q_proj/bias (64), 2 of them", text)
        self.assertEqual(self.steps("same", "val/loss")[0], self.steps("biased", "val/loss")[0])
        # From there back: a checkpoint with tensors that the model lacks.
        text = self.run_trainer(*sizes, *matching, "model.load=biased", "--set", "output.directory=back", "--set",
                                "model.rope_base=1e5")
        self.assertIn("not taken: /model/layers/*/self_attn/q_proj/bias (64), 2 of them", text)
        for name in ("attention_bias", "rope_base"):
            self.assertRegex(text, rf"weights of a different &model:\n(.*\n)*.*{name}")
        text = self.run_trainer(*sizes, *matching, "model.load=back", "--set", "model.head_dim=12", "--set",
                                "model.hidden=24", "--set", "model.ffn_hidden=40", "--set", "model.vocabulary=304",
                                "--set", "output.directory=none", code=1)
        self.assertIn("no tensor with the name and shape", text)

    def test_ranks_load_the_same(self):
        texts = [
            self.run_trainer("--set", "campaign.task='evaluate'", "--set", "batch.per_rank=2", ranks=r) for r in (1, 2)
        ]
        losses = [t.split("validation loss ")[1].split()[0] for t in texts]
        self.assertEqual(losses[0], losses[1])

    def test_inference_plans_two_bytes_a_parameter(self):
        options = ("--dry-run", "--without-data", "--set", "precision.compute='bf16'", "--set", "model.load=''",
                   "--set")
        size = {}
        for task in ("train", "evaluate"):
            text = self.run_trainer(*options, f"campaign.task='{task}'")
            millions = float(re.search(r"\n  parameter count +([\d.]+) M\n", text).group(1))
            size[task] = float(re.search(r"\n  parameter memory +([\d.]+) MiB\n", text).group(1))
        self.assertAlmostEqual(size["evaluate"], 2e6 * millions / 2**20, delta=0.3)
        self.assertAlmostEqual(size["train"], 6e6 * millions / 2**20, delta=0.3)

    def plan(self, *options):
        lines = self.run_trainer("--dry-run", "--without-data", "--device", "h200", *options).splitlines()
        return [line for line in lines if "free on device" not in line]

    def test_config_alone_is_enough_for_a_plan(self):
        whole = self.plan()
        os.remove(self.file("model/model.safetensors"))
        self.assertEqual(whole, self.plan())
        for options in ((), ("--dry-run",)):
            text = self.run_trainer(*options, code=1)
            self.assertIn("model.safetensors", text)
        shutil.rmtree(self.file("model"))
        given = ("--set", "model.hidden=32", "--set", "model.heads=4", "--set", "model.kv_heads=2", "--set",
                 "model.head_dim=16", "--set", "model.ffn_hidden=56", "--set", "model.layers=2", "--set",
                 "model.vocabulary=288", "--set", "model.qk_norm=T")
        self.assertEqual(whole, self.plan(*given))

    def test_a_tokenizer_that_is_not_named_is_the_directorys(self):
        self.deck(6)
        samples = ("--set", "generation.samples=1", "--set", "generation.max_tokens=4")
        named = self.run_trainer("--print-deck")
        with open(self.file("tiny.in"), "w") as f:
            f.write(DECK.replace(" tokenizer = 'model'", ""))
        self.assertEqual(self.run_trainer("--print-deck"), named)
        self.assertNotIn("no samples will be written", self.run_trainer(*samples))
        self.assertTrue(os.path.getsize(self.file("run/samples.txt")))
        os.remove(self.file("model/tokenizer.json"))
        self.assertIn("tokenizer 'gpt2'", self.run_trainer(code=1))

    def config(self, name, **values):
        path = self.file(f"model/{name}")
        with open(path) as f:
            config = json.load(f)
        with open(path, "w") as f:
            json.dump(dict(config, **values), f)

    def test_texts_end_at_the_end_tokens_of_the_directory(self):
        greedy = ("--set", "generation.samples=1", "--set", "generation.temperature=0", "--set",
                  "generation.max_tokens=8", "--prompt", "ab c")

        def continuation():
            return self.run_trainer(*greedy).split("---\nab c")[1].split("\n---\n1 sample,")[0]

        def ids(text):  # in the tokenizer's vocabulary
            with open(self.file("model/tokenizer.json")) as f:
                root = json.load(f)
            return dict(root["model"]["vocab"], **{t["content"]: t["id"] for t in root["added_tokens"]})[text]

        for name in ("config.json", "generation_config.json"):
            self.config(name, eos_token_id=None)
        whole = continuation()
        for end in (c for c in dict.fromkeys(whole) if "!" <= c <= "~"):  # until one is a token of its own there
            self.config("generation_config.json", eos_token_id=ids(end))
            cut, other = continuation(), ids("<think>")
            if cut != whole:
                break
        self.assertNotIn(end, cut)
        self.assertTrue(whole.startswith(cut + end), (whole, cut, end))
        for generation, plain, expected in ((ids(end), None, cut), ([other, ids(end)], None, cut),
                                            (None, ids(end), whole), (other, ids(end), whole), ("gone", ids(end), cut),
                                            ("gone", [other, ids(end)], cut), ("gone", None, whole)):
            self.take("qwen3_bf16")
            self.config("config.json", eos_token_id=plain)
            if generation == "gone":
                os.remove(self.file("model/generation_config.json"))
            else:
                self.config("generation_config.json", eos_token_id=generation)
            self.assertEqual(continuation(), expected, (generation, plain))
        self.config("config.json", eos_token_id="272")
        self.assertIn('config.json: eos_token_id = "272" is not a token id', self.run_trainer(*greedy, code=1))

    def test_conversations_are_exported_as_they_were_learned(self):
        with open(self.file("data/chats.jsonl"), "w") as f:
            for _ in range(60):
                f.write(
                    json.dumps({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"}]})
                    + "\n")
        self.config("tokenizer_config.json", chat_template="theirs, too", eos_token={"content": "<|im_start|>"})
        self.config("generation_config.json", eos_token_id=[273, 274])
        self.config("config.json", eos_token_id=273)
        chats = ("--set", "objective.kind=supervised", "--set", "model.context=32", "--set",
                 "data.train=data/chats.jsonl", "--set", "data.valid=data/chats.jsonl", "--set")
        for template, end, ends, words in (("plain", 272, [272, 273, 274], "eos_token if message.role == 'assistant'"),
                                           ("chatml", 274, [274, 272, 273], "<|im_start|>")):
            shutil.rmtree(self.file("out"), ignore_errors=True)
            self.run_trainer(*chats, f"data.chat_template={template}", "--fresh")
            if template == "plain":
                text = self.run_trainer(*chats, "data.chat_template=chatml", "--export", "out", code=1)
                self.assertIn("data.chat_template = 'chatml', not 'plain'", text)
            text = self.run_trainer(*chats, f"data.chat_template={template}", "--export", "out")
            self.assertIn(
                f"chat template and end token are those of training, chat_template = '{template}', not of model\n",
                text)
            with open(self.file("out/config.json")) as f:
                self.assertEqual(json.load(f)["eos_token_id"], end)
            with open(self.file("out/generation_config.json")) as f:
                generation = json.load(f)
            self.assertEqual((generation["eos_token_id"], generation["top_k"]), (ends, 20))
            with open(self.file("out/tokenizer_config.json")) as f:
                config = json.load(f)
            self.assertEqual(config["eos_token"], {272: "<|endoftext|>", 274: "<|im_end|>"}[end])
            self.assertNotIn("chat_template", config)
            with open(self.file("out/chat_template.jinja")) as f:
                self.assertIn(words, f.read())
            self.same_files("tokenizer.json")

    def test_mistakes(self):
        text = self.run_trainer("--set", "model.hidden=64", code=1)
        self.assertIn("model.hidden: 64, but model/config.json has 32", text)
        name = self.file("model/config.json")
        with open(name) as f:
            config = json.load(f)
        with open(name, "w") as f:
            json.dump(dict(config, intermediate_size=64, num_hidden_layers=3), f)
        text = self.run_trainer(code=1)
        for part in ("model.layers.0.mlp.up_proj.weight' has shape (56, 32), and config.json requires (64, 32)",
                     "no tensor 'model.layers.2.", "and "):
            self.assertIn(part, text)
        with open(name, "w") as f:
            json.dump(dict(config, use_sliding_window=True), f)
        self.assertIn("use_sliding_window = true", self.run_trainer(code=1))


if __name__ == "__main__":
    main()
