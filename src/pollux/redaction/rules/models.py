"""Keys of services for language models and machine learning."""

from __future__ import annotations

from pollux.redaction.checks import is_wild
from pollux.redaction.rule import ALNUM, HEX, UUID, WORD, just, some, token

ROWS = (
    token("anthropic-key", "Anthropic API key or OAuth token", "sk-ant-", some(WORD, 20)),
    token("openrouter-key", "OpenRouter API key", "sk-or-", some(WORD, 32)),
    token("langfuse-key", "Langfuse secret key", "sk-lf-", UUID),
    token("openai-key", "OpenAI API key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"), some(WORD, 20)),
    token(
        "sk-key",
        "key that begins with sk-, as OpenAI, DeepSeek and many others make them",
        "sk-",
        rf"(?:[a-z]{{2,12}}-)?{ALNUM}{{20,}}{WORD}*",
        is_word=True,
        probe=rf"(?:[a-z]{{2,12}}-)?{ALNUM}{{16}}",
        check=is_wild,
    ),
    token("groq-key", "Groq API key", "gsk_", some(ALNUM, 40)),
    token("xai-key", "xAI API key", "xai-", some(ALNUM, 60)),
    token("replicate-token", "Replicate API token", "r8_", some(ALNUM, 37), is_word=True),
    token("perplexity-key", "Perplexity API key", "pplx-", some(ALNUM, 40)),
    token("fireworks-key", "Fireworks AI API key", "fw_", some(ALNUM, 20), is_word=True),
    token("together-key", "Together AI API key", "tgp_v1_", some(WORD, 40)),
    token("cerebras-key", "Cerebras API key", "csk-", some(ALNUM, 40), is_word=True),
    token("nvidia-key", "NVIDIA API key", "nvapi-", some(WORD, 50)),
    token("huggingface-token", "Hugging Face token", ("hf_", "api_org_"), some(ALNUM, 30), is_word=True),
    token("langsmith-key", "LangSmith API key", ("lsv2_pt_", "lsv2_sk_"), rf"{HEX}{{32}}_{HEX}{{10}}"),
    token("tavily-key", "Tavily API key", "tvly-", some(WORD, 20)),
    token("voyage-key", "Voyage AI API key", "pa-", rf"{WORD}{{43}}(?!{WORD})", is_word=True, probe=just(WORD, 30)),
    token("elevenlabs-key", "ElevenLabs API key", "sk_", just(HEX, 48), is_word=True),
    token("pinecone-key", "Pinecone API key", "pcsk_", rf"{ALNUM}{{4,}}_{ALNUM}{{40,}}"),
    token("firecrawl-key", "Firecrawl API key", "fc-", just(HEX, 32), is_word=True),
    token("brave-search-key", "Brave Search API key", "BSA", rf"{WORD}{{28}}(?!{WORD})", is_word=True),
    token("e2b-key", "E2B API key", "e2b_", just(HEX, 40)),
    token("jina-key", "Jina AI API key", "jina_", some(WORD, 50)),
    token("wandb-key", "Weights & Biases API key", "wandb_v1_", some(WORD, 40)),
    token("apify-token", "Apify API token", "apify_api_", some(ALNUM, 30)),
    token("logfire-token", "Logfire token", "pylf_v1_", rf"[a-z]{{2}}_{ALNUM}{{30,}}"),
)
