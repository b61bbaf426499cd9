"""Whole campaigns whose model is divided over ranks: tensor, pipeline and data together, through the real trainer.

    parallel.py TRAINER MPIRUN [unittest arguments]        each class is one ctest entry
"""
import json, os, random, re, shutil

from tiny import EXPERTS, MUON, Campaign, main

# tensor, pipeline, ranks, further settings; ranks beyond tensor x pipeline are data replicas.
LAYOUTS = ((2, 1, 2, ()), (4, 1, 4, ()), (1, 2, 2, ()), (2, 2, 4, ()), (2, 1, 4, ("parallel.shard='optimizer'",)))

UNTIED = ("model.tie_embeddings=.false.", "model.qk_norm=.true.", "model.dropout=0.1")
GPT2 = ("model.kv_heads=4", "model.activation='gelu'", "model.norm='layernorm'", "model.position='learned'",
        "model.attention_bias=.true.", "model.ffn_bias=.true.", "precision.recompute='block'", "optimizer.ema=0.9")
GREEDY = ("campaign.task='generate'", "generation.temperature=0", "generation.samples=3", "generation.max_tokens=12")


def sets(*settings):
    return tuple(word for setting in settings for word in ("--set", setting))


def layout(tensor, pipeline, *settings):
    return sets(f"parallel.tensor={tensor}", f"parallel.pipeline={pipeline}", *settings)


class Divided(Campaign):
    KEYS = ("train/loss", "train/grad_norm", "val/loss")

    def train(self, name, *options, ranks=1):
        return self.run_trainer("--set", f"output.directory={name}", *options, ranks=ranks)

    def written(self, directory, *options, ranks=1):
        """The texts of a generation, without times and figures."""
        text = self.run_trainer("--set", f"output.directory={directory}", "--prompt", "abc de", *options, ranks=ranks)
        return re.findall(r"---\n(abc de.*?)(?=\n---)", text, re.S)

    def conversations(self):
        """Settings of supervised training on short ones, which it writes."""
        rng = random.Random(5)
        for name, n in (("train", 200), ("valid", 40)):
            with open(self.file(f"data/{name}.jsonl"), "w") as f:
                for _ in range(n):
                    question = rng.choice(("alpha", "left", "day")) + "?" * rng.randint(0, 12)
                    f.write(
                        json.dumps({
                            "messages": [{"role": "user", "content": question},
                                         {"role": "assistant", "content": question[::-1]}]
                        }) + "\n")
        return ("objective.kind='supervised'", "data.train='data/train.jsonl'", "data.valid='data/valid.jsonl'",
                "model.context=48")

    def hierarchical(self):
        """Settings of HDP on problems, which it writes."""
        self.problems()
        return ("objective.kind='block_diffusion'", "data.train='data/train.jsonl'", "data.valid='data/test.jsonl'",
                "data.question_tokens=16", "data.plan_tokens=8", "data.execution_tokens=24", "model.context=48",
                "objective.hierarchy='hdp'", "objective.plan_block=0", "objective.execution_block=4",
                "objective.clip_search=F", "evaluation.problems=6", "generation.temperature=0")

    def drop_newest(self, directory):
        folder = self.file(f"{directory}/checkpoints")
        shutil.rmtree(os.path.join(folder, max(name for name in os.listdir(folder) if name.startswith("step_"))))


class Compared(Divided):
    """Losses and gradient norms are those of one rank, up to the rounding of float32."""
    def check(self, model, layouts=LAYOUTS, bar=1e-5, code=0):
        for name in os.listdir(self.path):
            if name == "one" or name.startswith("tensor"):
                shutil.rmtree(self.file(name))
        self.run_trainer("--set", "output.directory=one", *sets(*model), code=code)
        for tensor, pipeline, ranks, settings in layouts:
            name = f"tensor{tensor}_pipeline{pipeline}_of{ranks}" + re.sub(r"\W+", "_", "".join(settings))
            self.run_trainer("--set", f"output.directory={name}", *sets(*model), *layout(tensor, pipeline, *settings),
                             ranks=ranks, code=code)
            self.compare("one", name, bar, self.KEYS)


class Layouts(Compared):
    def test_tied_embeddings(self):  # 2 key-value heads, which 4 tensor ranks share
        self.check(())

    def test_untied_embeddings_with_dropout_and_norms_of_heads(self):
        self.check(UNTIED, LAYOUTS[1:4])

    def test_biases_and_learned_positions(self):
        self.check(GPT2, LAYOUTS[1:4])

    def test_uneven_stages_and_more_micro_steps_than_stages(self):
        more = ("model.layers=5", "batch.per_rank=1")
        self.train("one", *sets(*more))
        for pipeline, ranks in ((3, 3), (4, 4)):
            self.train(f"stages{pipeline}", *sets(*more), *layout(1, pipeline), ranks=ranks)
            self.compare("one", f"stages{pipeline}", 1e-5, self.KEYS)

    def test_one_micro_step(self):
        self.check(("batch.per_rank=8",), LAYOUTS[2:4])

    def test_muon_over_stages(self):
        self.train("one", *MUON)
        self.train("two", *MUON, *layout(1, 2), ranks=2)
        self.compare("one", "two", 1e-4, self.KEYS)

    def test_bf16_trains_alike(self):
        self.train("one", *sets("precision.compute='bf16'"))
        self.train("four", *sets("precision.compute='bf16'"), *layout(2, 2), ranks=4)
        self.compare("one", "four", 1e-2)

    def test_experts(self):
        experts = EXPERTS[1::2]
        self.check(experts, LAYOUTS[1:2] + LAYOUTS[4:])
        self.check(experts + ("model.router_loss=0",), LAYOUTS[2:4])

    def test_supervised(
            self):  # several conversations per row, so that positions and pattern change with each micro-batch
        self.check(self.conversations(), LAYOUTS[1:])

    def test_refinement(self):
        model = ("objective.kind='refinement'", "objective.supervision_steps=3", "objective.reward=4",
                 "model.inner_steps=1")
        for kind, options in (("stack", ()), ("block", ("model.recursion='block'", "objective.detach_from=1"))):
            with self.subTest(kind):
                self.check(model + options, ((2, 1, 2, ()), (2, 1, 4, ())), 1e-4,
                           code=77)  # no verdict is good after 40 steps

    def test_block_diffusion(self):
        self.check(self.hierarchical(), LAYOUTS[1:])
        solved = [
            self.steps(name, "val/well_formed") for name in ("one", "tensor4_pipeline1_of4", "tensor2_pipeline2_of4")
        ]
        self.assertEqual(solved[0], solved[1])
        self.assertEqual(solved[0], solved[2])


class Eight(Compared):
    """The campaigns' layouts on eight ranks: data replicas, tensor 8, tensor 4 with two replicas or stages."""

    DATA = ((1, 1, 8, ("parallel.shard='optimizer'",)), (1, 1, 8, ("parallel.shard='full'",)))
    TENSOR = ((8, 1, 8, ()), (4, 1, 8, ()), (4, 2, 8, ()))
    HEADS = ("model.heads=8", "model.head_dim=8")  # 2 key-value heads, each held by 4 of 8 tensor ranks

    def test_gpt(self):
        self.check(("batch.per_rank=1", *UNTIED), self.DATA)
        self.check(self.HEADS + ("model.layers=4", *UNTIED), self.TENSOR)

    def test_refinement(self):
        self.check(("objective.kind='refinement'", "objective.supervision_steps=3", "model.inner_steps=1",
                    "batch.per_rank=1", *MUON[1::2]), self.DATA[:1], 1e-4, code=77)

    def test_block_diffusion(self):
        self.check(self.hierarchical() + ("batch.per_rank=1",), self.DATA[:1])

    def test_student(self):
        self.check(self.conversations() + ("batch.per_rank=1",), self.DATA[1:])

    def test_texts_of_a_teacher_with_experts(self):
        model = self.HEADS + EXPERTS[1::2] + ("model.router_loss=0",)
        self.train("run", *sets(*model))
        one = self.written("run", *sets(*model, *GREEDY))
        self.assertEqual(len(one), 3)
        for tensor, pipeline, ranks, _ in self.TENSOR:
            self.assertEqual(one, self.written("run", *sets(*model, *GREEDY), *layout(tensor, pipeline), ranks=ranks))


class Texts(Divided):
    """Greedy text of a model is the same on all layouts, and so are samples, whatever layout the model was saved on."""
    def check(self, model, saved_on):
        tensor, pipeline, ranks, settings = saved_on
        self.train("run", *sets(*model, "generation.samples=2", "generation.max_tokens=8"),
                   *layout(tensor, pipeline, *settings), ranks=ranks)
        for choice in (GREEDY, GREEDY[:1] + GREEDY[2:]):
            one = self.written("run", *sets(*model, *choice))
            self.assertEqual(len(one), 3)
            for tensor, pipeline, ranks, settings in LAYOUTS:
                self.assertEqual(
                    one, self.written("run", *sets(*model, *choice), *layout(tensor, pipeline, *settings), ranks=ranks))

    def test_saved_by_one(self):
        self.check((), (1, 1, 1, ()))

    def test_saved_by_tensor_and_pipeline_ranks(self):
        self.check(UNTIED, (2, 2, 4, ()))

    def test_average_saved_by_tensor_ranks(self):
        self.check(GPT2, (4, 1, 4, ()))

    def test_experts(self):
        self.check(EXPERTS[1::2] + ("model.router_loss=0",), (2, 2, 4, ()))

    def test_samples_beside_training(self):
        options = sets("generation.samples=2", "generation.max_tokens=8", "generation.temperature=0")
        self.train("one", *options)
        self.train("four", *options, *layout(2, 1), ranks=4)
        pages = []
        for name in ("one", "four"):
            with open(self.file(f"{name}/samples.txt")) as f:
                pages.append(f.read())
        self.assertIn("step 40", pages[0])
        self.assertEqual(*pages)


class Reload(Divided):
    """A checkpoint holds the whole model, and a run resumes from it on another layout."""
    def check(self, before, after, *model):
        self.train("one", *sets(*model))
        name = "parts"
        self.train(name, *sets(*model), *layout(*before[:2], *before[3]), ranks=before[2])
        self.drop_newest(name)
        text = self.train(name, "--resume", *sets(*model), *layout(*after[:2], *after[3]), ranks=after[2])
        self.assertRegex(text, r"resumed from \S*step_00000030")
        self.compare("one", name, 1e-5, self.KEYS)

    def test_from_one_to_tensor(self):
        self.check((1, 1, 1, ()), (2, 1, 2, ()))

    def test_from_tensor_to_one(self):
        self.check((2, 1, 2, ()), (1, 1, 1, ()))

    def test_from_tensor_to_pipeline_with_an_average(self):
        self.check((4, 1, 4, ()), (2, 2, 4, ()), *GPT2)

    def test_from_pipeline_to_sharded_data(self):
        self.check((2, 2, 4, ()), (2, 1, 4, ("parallel.shard='optimizer'",)), *UNTIED)

    def test_from_a_transformers_directory(self):
        self.train("run", *sets(*UNTIED), *layout(2, 2), ranks=4)
        self.train("run", *sets(*UNTIED), "--export", "hf")
        for tensor, pipeline, ranks, _ in ((1, 1, 1, ()),) + LAYOUTS:
            text = self.run_trainer(*sets(*UNTIED, "campaign.task='evaluate'", "model.load='hf'"),
                                    *layout(tensor, pipeline), ranks=ranks)
            self.assertIn(f"validation loss {self.steps('run', 'val/loss')[40]:.4f}", text)

    def test_another_model_is_refused_by_all_stages(self):
        self.train("run")
        for layers, words in ((1, "/model/layers/1/[^ ]+ is not in the deck's"), (3,
                                                                                  "/model/layers/2/[^ ]+ is missing")):
            text = self.run_trainer(*sets(f"model.layers={layers}", "campaign.task='evaluate'"), *layout(2, 1), ranks=2,
                                    code=1)
            self.assertRegex(text, f"contains another model: {words}")
        text = self.run_trainer(*sets("model.layers=3", "campaign.task='evaluate'"), *layout(1, 2), ranks=2, code=1)
        self.assertRegex(text, "contains another model: /model/layers/2/[^ ]+ is missing")


class Plans(Divided):
    """Impossible layouts are refused in one message; the plan of a layout is what its run takes."""
    def refused(self, ranks, *words, options):
        text = self.run_trainer(*options, ranks=ranks, code=1)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)

    def test_refusals(self):
        self.refused(3, "tensor = 3: &model heads = 4", "kv_heads = 2", "set tensor to one of 1, 2, 4",
                     options=layout(3, 1))
        self.refused(2, "ffn_hidden = 63 is not a multiple of it (nearest: 62 or 64)",
                     options=layout(2, 1, "model.ffn_hidden=63"))
        self.refused(2, "vocabulary = 273 is not a multiple of it (nearest: 272 or 274)",
                     options=layout(2, 1, "model.vocabulary=273"))
        self.refused(3, "pipeline = 3 is more than the model's 2 layers; set pipeline = 2 or less",
                     options=layout(1, 3))
        self.refused(3, "start 2 or 4 ranks", options=layout(2, 1))
        self.refused(4, "1 x 2 x 1 = 2, but the job has 4 ranks", "data = 2", options=layout(2, 1, "parallel.data=1"))
        self.refused(2, "Muon needs whole ones", options=MUON + layout(2, 1))
        self.refused(2, "passes over all layers several times", options=layout(1, 2, "objective.kind='refinement'",
                                                                               "model.inner_steps=1"))

    def test_plan_equals_run(self):
        options = layout(2, 2) + sets("generation.samples=2")
        plan = self.run_trainer("--dry-run", *options, ranks=4)
        self.assertRegex(plan, r"mesh +1 x 2 x 2")
        self.assertRegex(plan, r"batch +8 = 2 x 1 x 4")
        planned = re.search(r"memory per rank +([\d.]+ .iB)", plan).group(1)
        self.assertIn(f"memory planned {planned} per rank", self.train("run", *options, ranks=4))
        whole = self.run_trainer("--dry-run")
        for line in ("parameter count", "checkpoint"):
            figure = re.compile(rf"  {line} +([\d.]+ \w+)")
            self.assertEqual(figure.search(plan).group(1), figure.search(whole).group(1))


if __name__ == "__main__":
    main()
