"""Antiphase models in plain PyTorch: one attention that is a Transformer's, DIFF's or DIFF V2's, as config.antiphase says.

A head has `queries` maps. With two of them its output is (A1 - lam * A2) V, where lam is one number per layer (DIFF: made of
four vectors) or one per token and head (DIFF V2: the sigmoid of a projection). The maps of a head are neighbours among the query
heads; a group has `keys` key heads and one value of `values` head widths; the heads of a group are neighbours too.
Shapes: B sequences, T new and S all positions, H heads, G groups, D head_dim.
"""

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast

from .configuration_antiphase import AntiphaseConfig


class AntiphaseRMSNorm(nn.Module):
    """x / rms(x) * weight over the last dimension, in float32; without a weight the gain is 1."""

    def __init__(self, width, eps, affine=True):
        super().__init__()
        self.eps = eps
        if affine:
            self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        if hasattr(self, "weight"):
            y = y * self.weight.float()
        return y.to(x.dtype)


class Rotation:
    """Cosines and sines [B, 1, T, D/2] of the positions at hand, and how they turn the heads of x [B, n, T, D]."""

    def __init__(self, config, position_ids, dtype):
        wide = torch.float32 if position_ids.device.type == "mps" else torch.float64
        frequencies = torch.tensor(config.antiphase["rope_frequencies"], dtype=wide, device=position_ids.device)
        angles = position_ids[:, None, :, None].to(wide) * frequencies
        factor = config.antiphase.get("rope_factor", 1.0)
        self.cos, self.sin = (factor * angles.cos()).to(dtype), (factor * angles.sin()).to(dtype)
        self.interleaved = config.antiphase["model"]["rope_interleaved"]

    def __call__(self, x):
        if self.interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
        else:
            a, b = x.chunk(2, dim=-1)
        turned = (a * self.cos - b * self.sin, a * self.sin + b * self.cos)
        return torch.stack(turned, dim=-1).flatten(-2) if self.interleaved else torch.cat(turned, dim=-1)


class AntiphaseAttention(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        a, own = config.antiphase, config.antiphase["model"]
        self.layer_idx = layer_idx
        self.heads, self.groups, self.width = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.queries, self.keys, value = a["queries"], a["keys"], a["values"] * config.head_dim
        self.kind, self.lambda_init = a["lambda"], a["lambda_init"][layer_idx]

        def linear(inner, outer):
            return nn.Linear(inner, outer, bias=config.attention_bias)

        self.q_proj = linear(config.hidden_size, self.heads * self.queries * self.width)
        self.k_proj = linear(config.hidden_size, self.groups * self.keys * self.width)
        self.v_proj = linear(config.hidden_size, self.groups * value)
        self.o_proj = linear(self.heads * value, config.hidden_size)
        if self.kind == "vectors":
            for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
                self.register_parameter(name, nn.Parameter(own["lambda_std"] * torch.randn(self.width)))
        elif self.kind == "projection":
            self.lambda_proj = nn.Linear(config.hidden_size, self.heads, bias=False)
        self.subln = None
        if own["head_norm"] != "off":
            self.subln = AntiphaseRMSNorm(value, own["head_norm_eps"], affine=own["head_norm"] == "affine")

    def lam(self, x):
        """DIFF: a number. DIFF V2: [B, H, T, 1]."""
        if self.kind == "vectors":
            dot1 = (self.lambda_q1.float() * self.lambda_k1.float()).sum()
            dot2 = (self.lambda_q2.float() * self.lambda_k2.float()).sum()
            return (dot1.exp() - dot2.exp() + self.lambda_init).to(x.dtype)
        return torch.sigmoid(self.lambda_proj(x).float()).to(x.dtype).transpose(1, 2).unsqueeze(-1)

    def forward(self, x, turn, mask, past):
        batch, length, _ = x.shape

        def split(y, n):
            return y.view(batch, length, n, -1).transpose(1, 2)

        q = turn(split(self.q_proj(x), self.heads * self.queries))
        k = turn(split(self.k_proj(x), self.groups * self.keys))
        v = split(self.v_proj(x), self.groups)
        if past is not None:
            k, v = past.update(k, v, self.layer_idx)
        each = self.heads // self.groups
        q = q.unflatten(1, (self.heads, self.queries))  # [B, H, maps, T, D]
        k = k.unflatten(1, (self.groups, self.keys)).repeat_interleave(each, dim=1)  # [B, H, maps or 1, S, D]
        v = v.repeat_interleave(each, dim=1).unsqueeze(2)
        scores = q @ k.transpose(-1, -2) * self.width**-0.5 + mask.unsqueeze(2)
        y = scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype) @ v
        y = y[:, :, 0] if self.queries == 1 else y[:, :, 0] - self.lam(x) * y[:, :, 1]
        if self.subln is not None:
            y = self.subln(y)
            if self.kind == "vectors":
                y = (1 - self.lambda_init) * y
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))


class AntiphaseMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class AntiphaseBlock(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.input_layernorm = AntiphaseRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = AntiphaseAttention(config, layer_idx)
        self.post_attention_layernorm = AntiphaseRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = AntiphaseMLP(config)

    def forward(self, x, turn, mask, past):
        x = x + self.self_attn(self.input_layernorm(x), turn, mask, past)
        return x + self.mlp(self.post_attention_layernorm(x))


class AntiphasePreTrainedModel(PreTrainedModel):
    config_class = AntiphaseConfig
    base_model_prefix = "model"
    _no_split_modules = ["AntiphaseBlock"]


class AntiphaseModel(AntiphasePreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([AntiphaseBlock(config, i) for i in range(config.num_hidden_layers)])
        self.norm = AntiphaseRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_init()

    def get_input_embeddings(self):
        return self.embed_tokens

    def set_input_embeddings(self, value):
        self.embed_tokens = value

    def forward(self, input_ids=None, inputs_embeds=None, attention_mask=None, position_ids=None, past_key_values=None):
        x = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        done = past_key_values.get_seq_length() if past_key_values is not None else 0
        length, device = x.shape[1], x.device
        at = done + torch.arange(length, device=device)
        allowed = (torch.arange(done + length, device=device) <= at[:, None])[None]  # [B or 1, T, S]
        if attention_mask is not None:
            if attention_mask.dim() != 2:
                raise ValueError(f"attention_mask has {attention_mask.dim()} dimensions, must be [batch, positions]")
            allowed = allowed & attention_mask[:, None, : done + length].bool()
            if position_ids is None:
                position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, done : done + length]
        if position_ids is None:
            position_ids = at[None]
        mask = torch.zeros(allowed.shape, dtype=x.dtype, device=device)
        mask = mask.masked_fill(~allowed, torch.finfo(x.dtype).min)[:, None]
        turn = Rotation(self.config, position_ids, x.dtype)
        for layer in self.layers:
            x = layer(x, turn, mask, past_key_values)
        return self.norm(x)


class AntiphaseForCausalLM(AntiphasePreTrainedModel, GenerationMixin):
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.model = AntiphaseModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def set_input_embeddings(self, value):
        self.model.embed_tokens = value

    def get_output_embeddings(self):
        return self.lm_head

    def set_output_embeddings(self, value):
        self.lm_head = value

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, inputs_embeds=None,
                labels=None, use_cache=None, logits_to_keep=0, **kwargs):
        if use_cache is None:
            use_cache = self.config.use_cache and not self.training
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache()
        x = self.model(input_ids, inputs_embeds, attention_mask, position_ids, past_key_values)
        rows = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(x[:, rows])
        loss = None
        if labels is not None:
            flat = logits[:, :-1].reshape(-1, logits.shape[-1]).float()
            loss = nn.functional.cross_entropy(flat, labels[:, 1:].reshape(-1).to(logits.device), ignore_index=-100)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past_key_values)
