"""Configuration of Antiphase models: Transformer, DIFF and DIFF V2 attention under one model type."""

try:
    from transformers import PreTrainedConfig
except ImportError:  # its name before transformers 5
    from transformers import PretrainedConfig as PreTrainedConfig


class AntiphaseConfig(PreTrainedConfig):
    """Sizes in the usual terms, with num_attention_heads counting a head's output: a pair of maps is one head.

    antiphase holds what the attention needs beside them: model (the configuration as Antiphase writes it), queries and keys
    (maps per head, key heads per group), values (width of a value in head_dims), lambda (none, vectors or projection), lambda_init
    (a number per layer), rope_frequencies (angles per position) and rope_factor (on their cosines and sines; 1 when absent).
    """

    model_type = "antiphase"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(
        self,
        vocab_size=256,
        hidden_size=64,
        intermediate_size=176,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=None,
        head_dim=None,
        max_position_embeddings=2048,
        rms_norm_eps=1e-5,
        attention_bias=False,
        initializer_range=0.02,
        use_cache=True,
        tie_word_embeddings=False,
        antiphase=None,
        **kwargs,
    ):
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads or num_attention_heads
        self.head_dim = head_dim or hidden_size // num_attention_heads
        self.max_position_embeddings = max_position_embeddings
        self.rms_norm_eps = rms_norm_eps
        self.attention_bias = attention_bias
        self.initializer_range = initializer_range
        self.use_cache = use_cache
        self.antiphase = antiphase or {}
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)
