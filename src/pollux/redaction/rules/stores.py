"""Keys of databases, data platforms and stores of secrets."""

from __future__ import annotations

from pollux.redaction.checks import is_random
from pollux.redaction.rule import ALNUM, BASE64, HEX, SEP, WORD, after, just, some, token

_UNSEAL = rf"{BASE64}{{40,90}}(?:={{1,2}}(?!=)|(?![A-Za-z0-9+/=]))"

ROWS = (
    token("vault-token", "HashiCorp Vault token", ("hvs.", "hvb.", "hvr."), some(WORD, 20)),
    after(
        "vault-legacy-token",
        "HashiCorp Vault token of old releases, by the name before it",
        ("vault_token", "x-vault-token", "client_token"),
        rf"{SEP}(?P<secret>[sbr]\.{ALNUM}{{24}})",
        in_run=True,
    ),
    after(
        "vault-unseal-key",
        "unseal or recovery key of HashiCorp Vault, by the name before it",
        ("unseal key", "unseal_key", "keys_base64", "recovery key", "recovery_key", "operator unseal"),
        rf"(?:s?_b64|s?_hex|s?_base64| \d{{1,2}})?(?:\\{{1,8}}n|[\s\"'\\:=\[]){{1,24}}+"
        rf"(?P<secret>{_UNSEAL}(?:(?:\\{{1,8}}n|[\s\"'\\,]){{1,24}}+{_UNSEAL}){{0,20}})",
        check=is_random,
        in_run=True,
    ),
    token(
        "doppler-token",
        "Doppler token",
        ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        r"(?:[A-Za-z0-9_-]{1,40}\.)?[A-Za-z0-9_-]{32,}",
    ),
    token("onepassword-token", "1Password service account token", "ops_eyJ", r"[A-Za-z0-9+/_-]{100,}=*"),
    token(
        "onepassword-key",
        "1Password secret key",
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
        is_word=True,
    ),
    token(
        "bitwarden-token",
        "Bitwarden Secrets Manager token",
        "0.",
        rf"{HEX}{{8}}-(?:{HEX}{{4}}-){{3}}{HEX}{{12}}\.{ALNUM}{{30}}:{BASE64}{{22}}==",
        is_word=True,
        probe=f"{HEX}{{8}}-",
    ),
    token(
        "databricks-token",
        "Databricks token",
        ("dapi", "dose", "dkea"),
        rf"{HEX}{{32}}(?:-\d)?",
        is_word=True,
        probe=just(HEX, 8),
    ),
    after(
        "snowflake-password",
        "Snowflake password or token, by the name before it",
        ("snowflake_password", "snowflake_private_key_pass"),
        rf"(?:phrase)?{SEP}(?P<secret>[^\s\"'`\\,;]{{8,}})",
    ),
    token("confluent-secret", "Confluent Cloud API secret", "cflt", just(BASE64, 60), is_word=True),
    token("mongodb-secret", "MongoDB Atlas service account secret", "mdb_sa_sk_", some(WORD, 36)),
    token("cockroach-key", "CockroachDB Cloud API key", "CCDB1_", rf"{ALNUM}{{22}}_{ALNUM}{{40}}"),
    token("elastic-key", "Elastic Cloud API key", "essu_", r"[A-Za-z0-9+/=_-]{40,}"),
    token(
        "planetscale-secret",
        "PlanetScale token or password",
        ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
        some(WORD, 32),
    ),
    token("neon-password", "Neon password or API key", ("npg_", "napi_"), some(ALNUM, 16), is_word=True),
    token(
        "supabase-key",
        "Supabase access token or secret key",
        ("sbp_", "sb_secret_"),
        rf"(?:v\d_)?{WORD}{{30,}}",
        is_word=True,
    ),
    token("prefect-key", "Prefect API key", ("pnu_", "pnb_"), just(ALNUM, 36), is_word=True),
    token("algolia-secured-key", "Algolia secured API key", "dmFsaWRVbnRpbD", rf"{BASE64}{{20,}}=*"),
)
