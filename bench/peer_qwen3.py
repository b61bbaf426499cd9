"""The deck's model as Transformers has it: Qwen3ForCausalLM. Several conversations of a row are distinguished by their
positions, as Transformers does for packed rows; rows of one conversation are plain causal."""
import torch, torch.nn as nn


class Qwen3(nn.Module):
    def __init__(self, m, device, attention):
        super().__init__()
        from transformers import Qwen3Config, Qwen3ForCausalLM
        config = Qwen3Config(vocab_size=m.vocabulary, hidden_size=m.hidden, intermediate_size=m.ffn_hidden,
                             num_hidden_layers=m.layers, num_attention_heads=m.heads, num_key_value_heads=m.kv_heads,
                             head_dim=m.head_dim, max_position_embeddings=m.context, rms_norm_eps=m.norm_eps,
                             rope_theta=m.rope_base, tie_word_embeddings=m.tie_embeddings, initializer_range=m.init_std,
                             use_cache=False, bos_token_id=None, eos_token_id=None, pad_token_id=None)
        config._attn_implementation = attention
        with torch.device(device):
            self.model = Qwen3ForCausalLM(config)
        self.blocks = []  # used by Muon only

    def forward(self, tokens, targets, positions, count):
        """Sum of the losses divided by `count`."""
        return self.model(input_ids=tokens, position_ids=positions, labels=targets, shift_labels=targets,
                          num_items_in_batch=count).loss

    @torch.no_grad()
    def load(self, checkpoint):
        """Loads the weights of Tern's checkpoint.h5."""
        import h5py
        with h5py.File(checkpoint) as f:
            for name, p in self.model.named_parameters():
                p.copy_(torch.from_numpy(f[name.replace(".", "/")][()]))
