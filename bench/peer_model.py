"""The deck's GPT as torch.compile likes it: Llama's or nanochat's blocks, run once or recursively."""
import torch, torch.nn as nn, torch.nn.functional as F


def rms_norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight.to(x.dtype), eps)


class Block(nn.Module):
    def __init__(self, m):
        super().__init__()
        D, self.H, self.K, self.E, self.eps = m.hidden, m.heads, m.kv_heads, m.head_dim, m.norm_eps
        self.swiglu, self.qk_norm, ffn = m.activation == "swiglu", m.qk_norm, m.ffn_hidden
        self.n1, self.n2 = nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D))
        self.qkv, self.o = nn.Linear(D, (self.H + 2 * self.K) * self.E,
                                     bias=False), nn.Linear(self.H * self.E, D, bias=False)
        self.up, self.down = nn.Linear(D, (1 + self.swiglu) * ffn, bias=False), nn.Linear(ffn, D, bias=False)
        if self.qk_norm:
            self.q_norm, self.k_norm = nn.Parameter(torch.ones(self.E)), nn.Parameter(torch.ones(self.E))

    def projections(self):
        """Each matrix with Tern's names, and rows, of the projections it holds."""
        H, K, E, ffn, D = self.H, self.K, self.E, self.down.in_features, self.down.out_features
        yield self.qkv.weight, {"self_attn/q_proj": H * E, "self_attn/k_proj": K * E, "self_attn/v_proj": K * E}
        yield self.o.weight, {"self_attn/o_proj": D}
        yield self.up.weight, {**({"mlp/gate_proj": ffn} if self.swiglu else {}), "mlp/up_proj": ffn}
        yield self.down.weight, {"mlp/down_proj": D}

    def norms(self):
        yield self.n1, "input_layernorm"
        yield self.n2, "post_attention_layernorm"
        if self.qk_norm:
            yield self.q_norm, "self_attn/q_norm"
            yield self.k_norm, "self_attn/k_norm"

    def forward(self, x, cos, sin):
        B, T, _ = x.shape
        qkv = self.qkv(rms_norm(x, self.n1, self.eps)).view(B, T, -1, self.E).transpose(1, 2)
        q, k, v = qkv.split([self.H, self.K, self.K], 1)
        if self.qk_norm:
            q, k = rms_norm(q, self.q_norm, self.eps), rms_norm(k, self.k_norm, self.eps)

        def rotate(t):
            a, b = t.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=self.K != self.H)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, -1))
        up = self.up(rms_norm(x, self.n2, self.eps))
        if self.swiglu:
            gate, up = up.chunk(2, -1)
            return x + self.down(F.silu(gate) * up)
        up = F.relu(up)  # squared by a product: autocast makes powers in float32
        return x + self.down(up * up)


class GPT(nn.Module):
    def __init__(self, m, dtype, device):
        super().__init__()
        self.inner_steps, self.V, self.eps, self.cap, self.dtype = m.inner_steps, m.vocabulary, m.norm_eps, m.logit_cap, dtype
        D, E = m.hidden, m.head_dim
        self.embed = nn.Embedding(self.V, D)
        self.blocks = nn.ModuleList([Block(m) for _ in range(m.layers)])
        self.norm = nn.Parameter(torch.ones(D))
        self.head = self.embed.weight if m.tie_embeddings else nn.Parameter(torch.empty(self.V, D))
        if self.inner_steps:
            self.answer, self.latent = nn.Parameter(torch.zeros(D)), nn.Parameter(torch.zeros(D))
        angle = torch.outer(torch.arange(m.context).float(), m.rope_base**(-torch.arange(0, E, 2).float() / E))
        self.register_buffer("cos", angle.cos().to(dtype))
        self.register_buffer("sin", angle.sin().to(dtype))
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=m.init_std)
        for block in self.blocks if m.init_scaled_residual else ():
            for p in (block.o.weight, block.down.weight):
                nn.init.normal_(p, std=m.init_std / (2 * m.layers)**0.5)
        self.to(device)

    def embedded(self, tokens):
        return self.embed(tokens).to(self.dtype)  # (B, T, D)

    def stack(self, x):
        """f: all blocks and the final norm. (B, T, D) to the same."""
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return rms_norm(x, self.norm, self.eps)

    def advance(self, x, y=None, z=None):
        """One step of a recursive model from answer y and latent z; the first starts from the learned vectors."""
        if y is None:
            y, z = self.answer.to(x.dtype), self.latent.to(x.dtype)
        for _ in range(self.inner_steps):
            z = self.stack(x + y + z)
        return self.stack(y + z), z

    def token_losses(self, y, targets):
        logits = F.linear(y, self.head.to(y.dtype)).float()
        if self.cap:
            logits = self.cap * torch.tanh(logits / self.cap)
        return F.cross_entropy(logits.view(-1, self.V), targets.view(-1), reduction="none").view_as(targets)  # (B, T)

    def forward(self, tokens, targets):
        """Mean loss of the plain transformer, or of one step."""
        x = self.embedded(tokens)
        return self.token_losses(self.advance(x)[0] if self.inner_steps else self.stack(x), targets).mean()

    @torch.no_grad()
    def load(self, checkpoint):
        """Loads the weights of Tern's checkpoint.h5."""
        import h5py
        with h5py.File(checkpoint) as f:
            read = lambda name: torch.from_numpy(f[name][()])
            self.embed.weight.copy_(read("model/embed_tokens/weight"))
            self.norm.copy_(read("model/norm/weight"))
            if self.head is not self.embed.weight:
                self.head.copy_(read("lm_head/weight"))
            if self.inner_steps:
                self.answer.copy_(read("model/initial_answer"))
                self.latent.copy_(read("model/initial_latent"))
            for i, block in enumerate(self.blocks):
                at = lambda name: read(f"model/layers/{i}/{name}/weight")
                for matrix, parts in block.projections():
                    matrix.copy_(torch.cat([at(name) for name in parts]))
                for vector, name in block.norms():
                    vector.copy_(at(name))
