"""Keys of clouds and of places where programs are hosted."""

from __future__ import annotations

from pollux.redaction.checks import is_random
from pollux.redaction.rule import ALNUM, BASE64, HEX, SEP, UUID, WORD, after, just, some, token

ROWS = (
    token(
        "aws-access-key",
        "AWS access key id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"[A-Z0-9]{16}(?![A-Z0-9])",
        is_word=True,
    ),
    after(
        "aws-secret-key",
        "AWS secret access key, by the name before it",
        (
            "secret_access_key",
            "secretaccesskey",
            "secret-access-key",
            "secret access key",
            "aws_secret_key",
            "aws_secret",
        ),
        rf"(?: \[[^\]\n]{{0,24}}\])?{SEP}(?P<secret>{BASE64}{{40}})(?![A-Za-z0-9+/])",
        in_run=True,
    ),
    token(
        "aws-key-pair",
        "AWS access key id with the secret access key behind it, as in a file of credentials",
        ("AKIA", "ASIA"),
        rf"[A-Z0-9]{{16}}(?:\\{{1,8}}[nrt]|[\s,;:|\"']){{1,8}}+{BASE64}{{40}}(?![A-Za-z0-9+/=])",
        is_word=True,
        check=is_random,
    ),
    after(
        "aws-session-token",
        "AWS session token, by the name before it",
        ("aws_session_token", "sessiontoken", "aws_security_token", "x-amz-security-token"),
        rf"{SEP}(?P<secret>(?:{BASE64}|%2[BF]){{60,}}=*)",
        in_run=True,
    ),
    token("aws-bedrock-key", "Amazon Bedrock API key", ("ABSK", "bedrock-api-key-"), rf"{BASE64}{{100,}}=*"),
    token("aws-mws-token", "Amazon MWS token", "amzn.mws.", UUID),
    token("google-api-key", "Google API key, also of the Gemini API", "AIza", just(WORD, 35)),
    token(
        "google-auth-key",
        "Google authentication key, as AI Studio has made them since 2026",
        ("AQ.", "IQ."),
        some(WORD, 35),
        is_word=True,
        probe=just(WORD, 20),
    ),
    token("google-oauth-secret", "Google OAuth client secret", "GOCSPX-", some(WORD, 20)),
    token("google-oauth-token", "Google OAuth access token", "ya29.", some(WORD, 20), is_word=True),
    token("google-refresh-token", "Google OAuth refresh token", "1//0", some(WORD, 30), is_word=True),
    token(
        "google-fcm-key", "Firebase Cloud Messaging server key", ":APA91b", some(WORD, 100), left=rf"{WORD}{{7}}AAAA"
    ),
    after(
        "google-private-key-id",
        "id of a service account's private key",
        "private_key_id",
        rf"{SEP}(?P<secret>{HEX}{{40}})",
        in_run=True,
    ),
    after(
        "azure-storage-key",
        "Azure storage or Cosmos DB key in a connection string",
        "accountkey=",
        rf"(?P<secret>{BASE64}{{80,}}={{0,2}})",
        in_run=True,
    ),
    after(
        "azure-shared-key",
        "Azure Service Bus, Event Hubs or IoT Hub key in a connection string",
        "sharedaccesskey=",
        rf"(?P<secret>{BASE64}{{40,}}={{0,2}})",
        in_run=True,
    ),
    after(
        "azure-sas",
        "signature of an Azure shared access signature",
        "sig=",
        rf"(?P<secret>(?:{BASE64}|%2[BbFf]){{40,}}(?:=|%3[Dd])*)",
        in_run=True,
    ),
    token(
        "azure-client-secret",
        "Azure (Entra) client secret",
        "Q~",
        r"[A-Za-z0-9_~.-]{31,34}",
        guard=r"(?<=[A-Za-z0-9_~.]{3}\d)",
        left=r"\d[A-Za-z0-9_~.]{3}",
        probe="[a-z0-9_~.-]{31}",
        in_run=False,
    ),
    token("azure-devops-token", "Azure DevOps personal access token", "AZDO", just(ALNUM, 4), left=just(ALNUM, 76)),
    token(
        "azure-service-key",
        "key of an Azure service (OpenAI, Search, Maps …)",
        "JQQJ99",
        rf"{ALNUM}{{18}}{BASE64}{{4,16}}=*",
        left=just(ALNUM, 52),
    ),
    token("azure-function-key", "Azure Functions key", "AzFu", rf"{WORD}{{5}}[AQgw]==", left=just(WORD, 44)),
    token("azure-registry-key", "Azure container registry key", "+ACR", just(BASE64, 6), left=just(BASE64, 42)),
    token("digitalocean-token", "DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), some(HEX, 60)),
    token(
        "digitalocean-spaces-key", "DigitalOcean Spaces access key", "DO00", r"[A-Z0-9]{16}(?![A-Z0-9])", is_word=True
    ),
    token("heroku-token", "Heroku API token", "HRKU-", some(WORD, 36)),
    after(
        "heroku-key",
        "Heroku API key, by the name before it",
        "heroku",
        rf"[A-Za-z_-]{{0,20}}{SEP}(?P<secret>{UUID})",
        in_run=True,
    ),
    token("cloudflare-token", "Cloudflare API key or token", ("cfk_", "cfut_", "cfat_"), some(ALNUM, 40)),
    after(
        "cloudflare-key",
        "Cloudflare API key or token, by the name before it",
        ("cloudflare", "cf_api", "cf-api"),
        rf"[A-Za-z_-]{{0,20}}{SEP}(?P<secret>{WORD}{{37,40}})(?!{WORD})",
        in_run=True,
    ),
    token("cloudflare-origin-key", "Cloudflare origin CA key", "v1.0-", rf"{HEX}{{24}}-{HEX}{{100,}}"),
    token("alibaba-access-key", "Alibaba Cloud access key id", "LTAI", some(ALNUM, 16), is_word=True),
    token("tencent-secret-id", "Tencent Cloud secret id", "AKID", just(ALNUM, 32), is_word=True),
    token("yandex-api-key", "Yandex Cloud API key", "AQVN", rf"{WORD}{{35,38}}", is_word=True),
    token("yandex-oauth-token", "Yandex OAuth token", ("y0_", "y1_", "y2_", "y3_"), some(WORD, 50), is_word=True),
    token(
        "yandex-iam-token", "Yandex Cloud IAM token", "t1.", rf"{WORD}+={{0,2}}\.{WORD}{{80,}}={{0,2}}", is_word=True
    ),
    token("scaleway-access-key", "Scaleway access key", "SCW", r"[A-Z0-9]{17}(?![A-Z0-9])", is_word=True),
    token("fly-token", "Fly.io token", ("fo1_", "fm1r_", "fm1a_", "fm2_"), r"[A-Za-z0-9+/_-]{40,}=*"),
    token("render-key", "Render API key", "rnd_", some(ALNUM, 28), is_word=True),
    token("vercel-token", "Vercel token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), some(ALNUM, 24), is_word=True),
    token("vercel-blob-token", "Vercel Blob token", "vercel_blob_rw_", some(WORD, 30)),
    token("netlify-token", "Netlify token", ("nfp_", "nfo_", "nfc_", "nfb_", "nfu_"), some(ALNUM, 36)),
    token("deno-token", "Deno Deploy token", ("ddp_", "ddo_"), some(ALNUM, 30)),
    token("pulumi-token", "Pulumi access token", "pul-", just(HEX, 40)),
    token("terraform-token", "HCP Terraform token", ".atlasv1.", some(WORD, 60), left=just(ALNUM, 14)),
    token("tailscale-key", "Tailscale key", "tskey-", rf"(?:[a-z]{{2,10}}-)?{ALNUM}{{8,}}-{ALNUM}{{16,}}"),
    token("runpod-key", "RunPod API key", "rpa_", rf"[A-Z0-9]{{40,}}{ALNUM}*"),
)
