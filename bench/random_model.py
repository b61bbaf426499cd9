"""Writes a Transformers directory of a Qwen3 model with random weights, for measurements that need no trained ones.

    python3 bench/random_model.py models/random30b [--device cuda] [name=value ...]

Names and values are those of config.json; the default is Qwen3-30B-A3B. Weights are normal with standard deviation
initializer_range, norms are 1, all bf16, in shards of 4 GB. It has no tokenizer: give the deck one of at most vocab_size
tokens. Needs torch.
"""
import argparse, json, os, sys, time
import torch

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("directory")
p.add_argument("settings", nargs="*", help="name=value")
p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="where numbers are drawn")
a = p.parse_args()
c = dict(model_type="qwen3_moe", vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=48,
         num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8,
         moe_intermediate_size=768, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
         router_aux_loss_coef=0.001, hidden_act="silu", attention_bias=False, max_position_embeddings=262144,
         rope_theta=1e7, rms_norm_eps=1e-6, tie_word_embeddings=False, initializer_range=0.02)
for item in a.settings:
    name, _, value = item.partition("=")
    if name not in c:
        sys.exit(f"'{item}': the names are {', '.join(c)}")
    c[name] = value if isinstance(c[name], str) else json.loads(value.lower())
if c["num_experts"] == 0:
    c["model_type"] = "qwen3"
c.update(architectures=["Qwen3MoeForCausalLM" if c["num_experts"] else "Qwen3ForCausalLM"], torch_dtype="bfloat16")
if os.path.exists(os.path.join(a.directory, "config.json")):
    sys.exit(f"{a.directory} holds a model already: remove it or name another")
os.makedirs(a.directory, exist_ok=True)


def tensors():
    """Name and shape of each tensor."""
    D, E, V = c["hidden_size"], c["head_dim"], c["vocab_size"]
    H, K = c["num_attention_heads"] * E, c["num_key_value_heads"] * E

    def swiglu(prefix, F):
        return [(prefix + "gate_proj.weight", (F, D)), (prefix + "up_proj.weight", (F, D)),
                (prefix + "down_proj.weight", (D, F))]

    yield "model.embed_tokens.weight", (V, D)
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield from ((at + "input_layernorm.weight", (D,)), (at + "post_attention_layernorm.weight", (D,)))
        yield from (
            (at + f"self_attn.{n}_proj.weight", s) for n, s in dict(q=(H, D), k=(K, D), v=(K, D), o=(D, H)).items())
        yield from ((at + "self_attn.q_norm.weight", (E,)), (at + "self_attn.k_norm.weight", (E,)))
        if c["num_experts"]:
            yield at + "mlp.gate.weight", (c["num_experts"], D)
            for expert in range(c["num_experts"]):
                yield from swiglu(f"{at}mlp.experts.{expert}.", c["moe_intermediate_size"])
        else:
            yield from swiglu(at + "mlp.", c["intermediate_size"])
    yield "model.norm.weight", (D,)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (V, D)


def count(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def write(path, shard):
    """A safetensors file: the length of its header, the header, the numbers in sequence."""
    numbers = torch.empty(sum(count(s) for _, s in shard), dtype=torch.bfloat16,
                          device=a.device).normal_(0, c["initializer_range"])
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shard:
        end = at + count(shape)
        if "norm" in name:
            numbers[at:end] = 1
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [2 * at, 2 * end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        numbers.cpu().view(torch.uint8).numpy().tofile(f)


shards, size = [[]], 0
for tensor in tensors():
    if shards[-1] and size + 2 * count(tensor[1]) > 4e9:
        shards, size = shards + [[]], 0
    shards[-1].append(tensor)
    size += 2 * count(tensor[1])
begin, index = time.time(), {}
torch.manual_seed(1)
for i, shard in enumerate(shards):
    name = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
    write(os.path.join(a.directory, name), shard)
    index.update((tensor, name) for tensor, _ in shard)
total = 2 * sum(count(s) for shard in shards for _, s in shard)
with open(os.path.join(a.directory, "model.safetensors.index.json"), "w") as f:
    json.dump({"metadata": {"total_size": total}, "weight_map": index}, f)
with open(os.path.join(a.directory, "config.json"), "w") as f:
    json.dump(c, f, indent=1)
print(f"{a.directory}: {total / 1e9:.1f} GB in {len(shards)} files, {len(index)} tensors, {time.time() - begin:.0f} s")
