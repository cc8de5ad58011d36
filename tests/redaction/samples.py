"""Invented secrets of every kind, generated when a test runs: none of them is in a file.

A row shows the form of a secret as its issuer describes it, not as a rule of Pollux does. `<b62:36>` are
36 letters and digits, `<a|b>` is one or the other, and the secret itself is between « and » where there is more.
A kind of secret that has several forms has several texts.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import string
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

_LETTERS, _DIGITS = string.ascii_letters, string.digits
ALPHABETS = {
    "b62": _LETTERS + _DIGITS,
    "word": _LETTERS + _DIGITS + "-_",
    "b64": _LETTERS + _DIGITS + "+/",
    "b58": "".join(char for char in _LETTERS + _DIGITS if char not in "0OIl"),
    "b32": string.ascii_uppercase + "234567",
    "crypt": _LETTERS + _DIGITS + "./",
    "hex": "0123456789abcdef",
    "up": string.ascii_uppercase + _DIGITS,
    "low": string.ascii_lowercase + _DIGITS,
    "letters": _LETTERS,
    "num": _DIGITS,
}
_FIELD = re.compile(r"<(?:(\w+):(\d+)|(uuid)|(login|wif)|([^<>]*\|[^<>]*))>")


class Sample(NamedTuple):
    """A text that contains a secret."""

    rule: str
    text: str
    secret: str


_PEM = "-" * 5
_KEY = "PRIVATE" + " KEY"
_LINE = "<b64:64>\n"

ROWS: dict[str, str | tuple[str, ...]] = {
    "private-key": (
        f"{_PEM}BEGIN <RSA |EC |DSA |OPENSSH |ENCRYPTED |>{_KEY}-----\n{_LINE * 3}<b64:30>==\n{_PEM}END {_KEY}-----",
        f"---- BEGIN SSH2 <ENCRYPTED |>{_KEY} ----\n{_LINE * 3}<b64:30>==\n---- END SSH2 ENCRYPTED {_KEY} ----",
    ),
    "private-key-head": f"<{_PEM}BEGIN RSA {_KEY}-----|---- BEGIN SSH2 ENCRYPTED {_KEY} ---->\n{_LINE * 3}<b64:37>",
    "private-key-tail": f"«{_LINE * 3}<b64:37>=\n{_PEM}END RSA {_KEY}-----»",
    "putty-key": "Private-Lines: 2\n«<b64:64>\n<b64:64>»",
    "age-key": "AGE-SECRET-KEY-1<up:58>",
    "wireguard-key": "<PrivateKey|PresharedKey> = «<b64:43>=»",
    "jwk": '{"kty": "OKP", "crv": "Ed25519", "d": "«<word:43>»"}',
    "extended-key": "<xprv|yprv|zprv|tprv><b58:107>",
    "nostr-key": "nsec1<low:58>",
    "wif-key": "<wif>",
    "seed-phrase": '<seed phrase: |my recovery phrase is |MNEMONIC=>"«<words:12>»"',
    "aws-access-key": "<AKIA|ASIA|ABIA|ACCA><b32:16>",
    "aws-secret-key": "<aws_secret_access_key = |\"SecretAccessKey\": \"|AWS_SECRET_ACCESS_KEY=|secretAccessKey: '"
    "|AWS Secret Access Key [None]: >«<b64:40>»",
    "aws-key-pair": "mara,«AKIA<b32:16>,<b64:40>»,x",
    "aws-session-token": '<aws_session_token = |"SessionToken": "|X-Amz-Security-Token=>«<b64:200>»',
    "aws-bedrock-key": "ABSK<b64:120>=",
    "aws-mws-token": "amzn.mws.<uuid>",
    "google-api-key": "AIza<word:35>",
    "google-auth-key": "AQ.Ab<word:48>",
    "google-oauth-secret": "GOCSPX-<word:28>",
    "google-oauth-token": "ya29.<word:160>",
    "google-refresh-token": "1//0<word:60>",
    "google-fcm-key": "AAAA<word:7>:APA91b<word:134>",
    "google-private-key-id": '"private_key_id": "«<hex:40>»"',
    "azure-storage-key": "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=«<b64:86>==»",
    "azure-shared-key": "Endpoint=sb://acme/;SharedAccessKeyName=Root;SharedAccessKey=«<b64:43>=»",
    "azure-sas": "?sv=2024-11-04&sp=r&sig=«<b64:43>%3D»",
    "azure-client-secret": "<b62:3><num:1>Q~<word:34>",
    "azure-devops-token": "<b62:76>AZDO<b62:4>",
    "azure-service-key": "<b62:52>JQQJ99<b62:18>ACOG<b62:4>",
    "azure-function-key": "<word:44>AzFu<word:5>A==",
    "azure-registry-key": "<b64:42>+ACRA<b62:5>",
    "digitalocean-token": "<dop|doo|dor>_v1_<hex:64>",
    "digitalocean-spaces-key": "DO00<up:16>",
    "heroku-token": "HRKU-AA<word:58>",
    "heroku-key": "HEROKU_API_KEY=«<uuid>»",
    "cloudflare-token": "<cfk|cfut|cfat>_<b62:48>",
    "cloudflare-key": '<CLOUDFLARE_API_TOKEN=|CF_API_KEY: |"cloudflare_token": ">«<word:40>»',
    "cloudflare-origin-key": "v1.0-<hex:24>-<hex:146>",
    "alibaba-access-key": "LTAI<b62:20>",
    "tencent-secret-id": "AKID<b62:32>",
    "yandex-api-key": "AQVN<word:36>",
    "yandex-oauth-token": "<y0|y1|y2|y3>_<word:55>",
    "yandex-iam-token": "t1.<word:80>.<word:86>",
    "scaleway-access-key": "SCW<up:17>",
    "fly-token": "<fo1|fm1r|fm2>_<b64:80>",
    "render-key": "rnd_<b62:28>",
    "vercel-token": "<vcp|vci|vca|vcr|vck>_<b62:56>",
    "vercel-blob-token": "vercel_blob_rw_<b62:16>_<b62:30>",
    "netlify-token": "<nfp|nfo|nfc|nfb|nfu>_<b62:36>",
    "deno-token": "<ddp|ddo>_<b62:36>",
    "pulumi-token": "pul-<hex:40>",
    "terraform-token": "<b62:14>.atlasv1.<word:67>",
    "tailscale-key": "tskey-<auth|api|client>-<b62:16>-<b62:32>",
    "runpod-key": "rpa_<up:46>",
    "github-token": "gh<p|o|u|s|r>_<b62:36>",
    "github-fine-grained-token": "github_pat_<b62:22>_<b62:59>",
    "gitlab-token": "glpat-<word:20>",
    "gitlab-deploy-token": "gldt-<word:20>",
    "gitlab-trigger-token": "glptt-<hex:40>",
    "gitlab-runner-token": "glrt<|r>-<word:20>",
    "gitlab-runner-registration": "GR1348941<word:20>",
    "gitlab-job-token": "glcbt-64_<word:20>",
    "gitlab-feed-token": "glft-<word:20>",
    "gitlab-mail-token": "glimt-<low:25>",
    "gitlab-agent-token": "glagent-<word:50>",
    "gitlab-scim-token": "glsoat-<word:20>",
    "gitlab-oauth-secret": "gloas-<hex:64>",
    "gitlab-flag-token": "glffct-<word:20>",
    "bitbucket-app-password": "ATBB<b62:32>",
    "bitbucket-token": "ATCTT3xFfGN0<word:170>=<hex:8>",
    "atlassian-token": "ATATT3xFfGF0<word:170>=<up:8>",
    "sourcegraph-token": "sgp_<|local_|b62b62b62b62b62x_><hex:40>",
    "npm-token": "npm_<b62:36>",
    "npm-auth": (
        "//npm.example.org/:_<authToken|auth>=«<uuid>»",
        "npm config set //npm.example.org/:_authToken «<uuid>»",
    ),
    "pypi-token": "pypi-AgEIcHlwaS5vcmc<word:150>",
    "rubygems-key": "rubygems_<hex:48>",
    "crates-token": "cio<b62:32>",
    "nuget-key": "oy2<low:43>",
    "packagist-token": "packagist_<out|ort|uut>_<hex:68>",
    "clojars-token": "CLOJARS_<low:60>",
    "artifactory-key": "AKCp<b62:69>",
    "artifactory-reference-token": "cmVmdGtu<b62:56>",
    "docker-token": "dckr_<pat|oat>_<word:27>",
    "docker-auth": '{"auths": {"ghcr.io": {"auth": "«<login>»"}}}',
    "circleci-token": "<CCIPAT|CCIPRJ>_<b62:22>_<hex:40>",
    "buildkite-token": "<bkua|bkaj|bkct>_<low:40>",
    "sonar-token": "<squ|sqp|sqa>_<hex:40>",
    "octopus-key": "API-<up:26>",
    "harness-token": "<pat|sat>.<word:22>.<hex:24>.<b62:20>",
    "launchdarkly-key": "<sdk|mob|api>-<uuid>",
    "postman-key": "PMAK-<hex:24>-<hex:34>",
    "readme-key": "rdme_<low:70>",
    "codecov-token": "CODECOV_TOKEN: «<uuid>»",
    "anthropic-key": "sk-ant-<api03|admin01|oat01>-<word:93>AA",
    "openrouter-key": "sk-or-v1-<hex:64>",
    "langfuse-key": "sk-lf-<uuid>",
    "openai-key": "sk-<proj|svcacct|admin>-<word:74>T3BlbkFJ<word:74>",
    "sk-key": "sk-<b62:20>T3BlbkFJ<b62:20>",
    "groq-key": "gsk_<b62:52>",
    "xai-key": "xai-<b62:80>",
    "replicate-token": "r8_<b62:37>",
    "perplexity-key": "pplx-<b62:48>",
    "fireworks-key": "fw_<b62:24>",
    "together-key": "tgp_v1_<word:43>",
    "cerebras-key": "csk-<low:48>",
    "nvidia-key": "nvapi-<word:64>",
    "huggingface-token": "hf_<letters:34>",
    "langsmith-key": "lsv2_<pt|sk>_<hex:32>_<hex:10>",
    "tavily-key": "tvly-<b62:32>",
    "voyage-key": "pa-<word:43>",
    "elevenlabs-key": "sk_<hex:48>",
    "pinecone-key": "pcsk_<b62:6>_<b62:63>",
    "firecrawl-key": "fc-<hex:32>",
    "brave-search-key": "BSA<word:28>",
    "e2b-key": "e2b_<hex:40>",
    "jina-key": "jina_<b62:60>",
    "wandb-key": "wandb_v1_<b62:70>",
    "apify-token": "apify_api_<b62:36>",
    "logfire-token": "pylf_v1_<us|eu>_<b62:43>",
    "slack-token": "<xoxb|xoxp|xoxa|xoxr|xoxs>-<num:12>-<num:12>-<b62:24>",
    "slack-webhook": "https://«hooks.slack.com/services/T<up:8>/B<up:8>/<b62:24>»",
    "discord-token": "<MT|Mz|ND|OT><b62:22>.<b62:6>.<word:38>",
    "discord-webhook": "https://«discord.com/api/webhooks/<num:18>/<word:68>»",
    "telegram-token": "<num:10>:AA<word:33>",
    "teams-webhook": "https://acme«.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/<hex:32>/<uuid>»",
    "twilio-key": "SK<hex:32>",
    "twilio-account": "AC<hex:32>",
    "twilio-token": "TWILIO_AUTH_TOKEN=«<hex:32>»",
    "sendgrid-key": "SG.<word:22>.<word:43>",
    "mailgun-key": "key-<hex:32>",
    "mailgun-new-key": "MAILGUN_API_KEY=«<hex:32>-<hex:8>-<hex:8>»",
    "mailchimp-key": "<hex:32>-us<num:2>",
    "mandrill-key": "md-<b62:22>",
    "brevo-key": "<xkeysib|xsmtpsib>-<hex:64>-<b62:16>",
    "resend-key": "re_<b62:8>_<b62:24>",
    "postmark-token": "POSTMARK_SERVER_TOKEN=«<uuid>»",
    "intercom-token": "dG9rO<b64:55>=",
    "zapier-webhook": "https://«hooks.zapier.com/hooks/catch/<num:7>/<low:7>»",
    "pubnub-key": "sec-c-<b62:48>",
    "inngest-key": "signkey-<prod|test>-<hex:64>",
    "stripe-key": "<sk|rk>_<live|test>_<b62:24>",
    "stripe-webhook-secret": "whsec_<b62:32>",
    "square-secret": "<sq0csp|sq0atp>-<word:43>",
    "square-token": "EAAA<word:60>",
    "paypal-token": "A21AA<word:92>",
    "braintree-token": "access_token$<production|sandbox>$<low:16>$<hex:32>",
    "plaid-token": "access-<sandbox|production|development>-<uuid>",
    "flutterwave-key": "FLWSECK<|_TEST>-<low:32>-X",
    "razorpay-key": "rzp_<live|test>_<b62:14>",
    "live-key": "live_<b62:32>",
    "shippo-token": "shippo_<live|test>_<hex:40>",
    "easypost-key": "<EZAK|EZTK><b62:54>",
    "duffel-token": "duffel_<live|test>_<word:43>",
    "shopify-token": "<shpat|shpca|shppa|shpss|shpua>_<hex:32>",
    "facebook-token": "EAAB<b62:180>",
    "hubspot-token": "pat-<na1|eu1>-<uuid>",
    "salesforce-session": "00D<b62:12>!AQ<b62:30>.<b62:40>_<b62:24>",
    "airtable-token": "pat<b62:14>.<hex:64>",
    "linear-key": "lin_<api|oauth>_<b62:40>",
    "notion-token": "<ntn|secret>_<b62:46>",
    "asana-token": "1/1<num:15>:<hex:32>",
    "clickup-token": "pk_<num:8>_<up:32>",
    "trello-token": "ATTA<hex:64>",
    "figma-token": "figd_<word:40>",
    "dropbox-token": "sl.<|u.><word:140>",
    "typeform-token": "tfp_<b62:44>_<b62:14>",
    "contentful-token": "CFPAT-<word:43>",
    "frameio-token": "fio-u-<word:64>",
    "mapbox-token": "sk.eyJ<b62:80>.<word:22>",
    "polar-token": "polar_<oat|pat>_<b62:43>",
    "trigger-key": "tr_<dev|prod>_<b62:24>",
    "datadog-key": '<DD_API_KEY=|DD_APP_KEY: |datadog_api_key = ">«<hex:32>»',
    "datadog-app-key": "ddapp_<b62:34>",
    "newrelic-key": "<NRAK|NRII|NRRA>-<up:32>",
    "newrelic-license": "<hex:36>NRAL",
    "grafana-token": "glsa_<b62:32>_<hex:8>",
    "grafana-cloud-token": "glc_<b64:80>",
    "grafana-key": "eyJrIjoi<b64:80>==",
    "sentry-token": "<sntrys|sntryu>_<b62:70>",
    "dynatrace-token": "dt0c01.<up:24>.<up:64>",
    "honeycomb-key": "hc<a|b|x>ik_<low:58>",
    "posthog-key": "phx_<b62:43>",
    "axiom-token": "<xaat|xapt>-<uuid>",
    "okta-token": "Authorization: «SSWS 00<word:40>»",
    "vault-token": "<hvs|hvb|hvr>.<word:90>",
    "vault-legacy-token": "<VAULT_TOKEN=|X-Vault-Token: >«s.<b62:24>»",
    "vault-unseal-key": (
        "<Unseal Key 1: |Recovery Key 2: |vault operator unseal >«<b64:43>=»",
        '"unseal_keys_b64": ["«<b64:43>=", "<b64:43>=»"]',
    ),
    "doppler-token": "dp.<pt|st.dev|ct|sa|scim|audit>.<b62:43>",
    "onepassword-token": "ops_eyJ<b64:300>",
    "onepassword-key": "A3-<up:6>-<up:11>-<up:5>-<up:5>-<up:5>",
    "bitwarden-token": "0.<uuid>.<b62:30>:<b64:22>==",
    "databricks-token": "dapi<hex:32>",
    "snowflake-password": "SNOWFLAKE_PASSWORD=«<b62:14>»",
    "confluent-secret": "cflt<b64:60>",
    "mongodb-secret": "mdb_sa_sk_<word:40>",
    "cockroach-key": "CCDB1_<b62:22>_<b62:40>",
    "elastic-key": "essu_<b64:80>",
    "planetscale-secret": "pscale_<tkn|pw|oauth>_<word:43>",
    "neon-password": "npg_<b62:16>",
    "supabase-key": "<sbp_|sb_secret_><hex:40>",
    "prefect-key": "<pnu|pnb>_<b62:36>",
    "algolia-secured-key": "dmFsaWRVbnRpbD<b64:60>=",
    "jwt": "eyJ<word:33>.eyJ<word:120>.<word:43>",
    "jwe": "eyJ<word:60>.<word:43>.<word:16>.<word:90>.<word:22>",
    "bcrypt-hash": "$<2a|2b|2y>$12$<crypt:53>",
    "crypt-hash": "$6$<crypt:16>$<crypt:86>",
    "argon2-hash": "$argon2<id|i|d>$v=19$m=65536,t=3,p=4$<b64:22>$<b64:43>",
    "otp-secret": "otpauth://totp/Acme:mara?secret=«<b32:32>»&issuer=Acme",
    "presigned-url": "https://acme.s3.amazonaws.com/a.zip?X-<Amz|Goog>-Signature=«<hex:64>»",
    "postgres-url": "<postgres|postgresql|postgresql+psycopg2>://mara:«<b62:14>»@db.acme.io:5432/app",
    "mysql-url": "<mysql|mariadb|mysql+pymysql>://root:«<b62:14>»@127.0.0.1/app",
    "mongodb-url": "mongodb<|+srv>://mara:«<b62:14>»@cluster0.ab1cd.mongodb.net/test",
    "redis-url": "redis<|s>://:«<b62:14>»@cache:6379/0",
    "amqp-url": "amqp<|s>://mara:«<b62:14>»@rabbit/vhost",
    "url-password": "<https|ftp|smtp|ldap>://mara:«<b62:14>»@git.acme.io/x.git",
    "odbc-password": "Server=db;Database=app;User Id=sa;<Password|Pwd>=«<b62:6>»;Encrypt=yes",
    "basic-auth": "Authorization: Basic «<login>»",
    "bearer-token": "Authorization: Bearer «<b62:40>»",
    "authorization-header": "Authorization: token «<b62:18>»",
    "cookie": "Cookie: «session=<b62:24>; csrf=<b62:12>»",
    "url-key": "https://api.acme.io/v1/x<?|&><key|auth|code|signature>=«<b62:32>»",
    "netrc-password": "machine api.acme.io login mara password «<b62:10>»",
    "recovery-codes": (
        "<recovery|backup> codes:\n«<low:4><num:1>-<low:5>\n<low:4><num:1>-<low:5>\n<low:5>-<low:4><num:1>»",
        "backup codes: «<num:8>, <num:8>, <num:8>»",
    ),
    "pgpass-password": "db.acme.io:5432:app:mara:«<b62:10>»",
    "curl-login": "curl -sS <-u|--user> mara:«<b62:10>» https://api.acme.io",
    "sshpass-password": "sshpass -p «<b62:10>» ssh mara-host",
    "mysql-password": "mysql -u root -p«<b62:10>» app",
    "login-password": "<docker login acme.io -u mara|az login -u x|helm registry login x> -p «<b62:9><num:1>»",
    "redis-password": "redis-cli -h cache -p 6379 -a «<b62:9><num:1>» ping",
    "mongo-password": "<mongosh|mongodump> --host db -u admin -p «<b62:9><num:1>» --quiet",
    "ldap-password": "<ldapsearch|ldapadd> -x -D cn=admin -w «<b62:9><num:1>» -b x",
    "sqlcmd-password": "sqlcmd -S db -U sa -P «<b62:9><num:1>» -Q x",
    "ftp-password": "lftp -u mara,«<b62:9><num:1>» acme",
    "echo-password": (
        "echo «<b62:9><num:1>» | <sudo -S|docker login -u x --password-stdin|passwd --stdin mara> ls",
        "echo 'root:«<b62:9><num:1>»' | chpasswd",
    ),
    "smb-password": "smbclient //acme/share -U mara%«<b62:9><num:1>» -c ls",
    "net-use-password": "net use Z: \\\\acme\\share <|/user:mara >«<b62:9><num:1>»",
    "openssl-password": "openssl rsa -in key.pem <-passin|-passout> pass:«<b62:9><num:1>»",
    "htpasswd-password": "htpasswd <-b .htpasswd|-nbB|-bnBC 10|-bc users> mara «<b62:9><num:1>»",
    "kubernetes-secret": "kubectl create secret generic db --from-literal=dsn=«<b62:9><num:1>»",
    "option-password": (
        "<acme --password|acme --client-secret|keytool -storepass|plink -pw|rds --user-password> «<b62:9><num:1>»",
        "wget --http-password=«<b62:9><num:1>» acme.io",
    ),
    "option-token": (
        "acme login <--token|--api-key> «<b62:24>»",
        "gh auth login --with-token <<< «<b62:24>»",
    ),
    "login-token": "<wandb login|ngrok config add-authtoken|vault login -no-print|snyk auth> «<b62:40>»",
    "generic-password": (
        "<password = \"|DB_PASS=|pwd: '|\"passwd\": \"|admin_password=>«<letters:6><num:3>»",
        "<ldap_bind_pw = |PGPASSWORD=|helm --set auth.password=>«<letters:6><num:3>»",
    ),
    "pw-password": '<pw: |pw=|"pw": "|psk=|wpa_psk=">«<letters:6><num:3>»',
    "generic-secret": '<client_secret: "|"secretKey": "|SECRET=>«<b62:15><num:1>»',
    "generic-token": (
        "<ACME_TOKEN=|\"apiKey\": \"|api_key: |access-key = '|x-api-key: >«<b62:32>»",
        "<RAILS_MASTER_KEY=|ALGOLIA_ADMIN_KEY=|SEGMENT_WRITE_KEY=|X-Auth-Key: |Private key: >«<hex:37>»",
    ),
    "named-key": '<ACME_LICENSE_KEY=|AZURE_DEVOPS_EXT_PAT=|export SERVICE_ROLE_KEY=">«<hex:64>»',
    "short-key": '<AIRTABLE_API_KEY=|api_key: ">«key<letters:3><num:2><letters:3><num:2><letters:2><num:2>»',
    "spoken-password": "the <password|passphrase> <is |for the server is |is `>«<letters:6><num:3>»",
    "spoken-key": "my <api key|token> is «<b62:64>»",
    "email": "<mara.muster|m+x|mara_1>@<acme|mail.acme>.<io|com>",
    "home-path": "/home/«mar<low:4>»/webapp",
    "mac-home-path": "</Users/|/mnt/c/Users/|file:///Users/>«mar<low:4>»/webapp",
    "windows-home-path": "<C:\\Users\\|C:\\\\Users\\\\|D:/Users/|c:\\\\\\\\users\\\\\\\\>«mar<low:4>»",
    "home-slug": "<-home-|-Users-|/projects/-home->«mar<low:4>»-webapp",
    "prompt-user": "«mar<low:4>»@laptop:~/webapp$ ls",
    "prompt-host": "root@«think<low:3>»:~/webapp# ls",
}  # fmt: skip


NEAR_MISSES: dict[str, tuple[str, ...]] = {
    "private-key": (f"---- BEGIN SSH2 PUBLIC KEY ----\n{'QUJD' * 16}\n---- END SSH2 PUBLIC KEY ----",),
    "jwk": ('{"kty": "RSA", "n": "' + "aB3" * 20 + '"}', '{"p": "' + "aB3" * 20 + '"}'),
    "wif-key": ("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTA", "L1" + "a" * 50),
    "seed-phrase": (
        "seed phrase: write down these twelve words before you close this page and keep them safe somewhere",
        "mnemonic: add sub mul div xor mov nop shl shr rol ror cmp jmp ret",
        "the recovery phrase is a list of words; the mnemonic has checksum bits",
    ),
    "aws-secret-key": ("AWS Secret Access Key [None]: ", "AWS Secret Access Key [****************WXYZ]: "),
    "aws-key-pair": ("Access key ID,Secret access key", "AKIA is how ids begin, 40 characters follow the secret"),
    "npm-auth": ("npm config set //npm.example.org/:_authToken ${NPM_TOKEN}", "npm config get :_authToken registry"),
    "vault-unseal-key": ("Unseal Key 1: (will be hidden)", "vault operator unseal -reset", "Recovery Key 2: none"),
    "jwe": ("eyJhbGciOiJkaXIifQ.a.b.c.d", "eyJ0 is no header. It has. No five. Parts. At all."),
    "recovery-codes": (
        "recovery codes: keep them somewhere safe, 10 of them\nand print them",
        "the backup codes are shown once: download them",
        "recovery codes: 404, 500, 503",
    ),
    "login-password": (
        "docker login acme.io -u mara -p $PASSWORD",
        "docker login -p <password>",
        "my login page -p 3000",
    ),
    "redis-password": (
        "redis-cli -h cache -p 6379 -n 2 ping",
        "redis-cli -a $REDIS_PASSWORD ping",
        "redis-cli -a password",
    ),
    "mongo-password": (
        "mongod -f mongod.conf -p x",
        "mongosh --host db -u admin -p $PASSWORD",
        "mkdir -p mongo/data-2024",
    ),
    "ldap-password": (
        "ldapsearch -x -D cn=admin -W -b dc2024",
        "ldapsearch -x -w $BIND_PW",
        "ldapadd -f x2y3z4w5.ldif",
    ),
    "sqlcmd-password": ("sqlcmd -S db -U sa -P $SA_PASSWORD", "sqlcmd -S db -p 1433555", "sqlcmd -S db -E"),
    "ftp-password": ("lftp -u mara acme2024.io", "lftp -u mara,$PASSWORD acme.io"),
    "echo-password": (
        "echo $PASSWORD1 | docker login -u x --password-stdin",
        "echo release2024 | grep stdin2",
        'echo "name:value12" | tee file',
    ),
    "smb-password": ("smbclient //acme/share -U mara -c ls", "smbclient -U mara%$PASSWORD //acme/share"),
    "net-use-password": (
        "net use Z: \\\\acme\\share /persistent:yes",
        "net use Z: \\\\acme\\share /delete",
        "net user mara",
    ),
    "openssl-password": (
        "openssl rsa -passin pass:password",
        "openssl rsa -passin env:KEY_PASS1",
        "openssl -passin pass:$P",
    ),
    "htpasswd-password": ("htpasswd -c users mara", "htpasswd -b users mara $PASSWORD", "htpasswd -D users mara2024"),
    "kubernetes-secret": (
        "kubectl create secret generic db --from-literal=dsn=$DSN",
        "kubectl create configmap app --from-literal=color=blue2024",
    ),
    "option-password": (
        "use a one-password 2024edition",
        "acme --password-file x2y3z4.txt",
        "acme --password $PASSWORD",
    ),
    "option-token": ("gh auth login --with-token < token-of-2024-and-more.txt", "acme --token $TOKEN"),
    "login-token": (
        "wandb login --relogin",
        "ngrok config add-authtoken $NGROK_AUTHTOKEN",
        "vault login -method=userpass",
    ),
    "generic-password": ("ldap_bind_pw = $BIND_PW", "bindpw: required", "root_password2: optional"),
    "pw-password": (
        'psk="<your key>"',
        "the psk: required",
        "pskov = 12345678",
        "@APSK_16: 16-APSK",
        "8PSK: 8-PSK",
        "pw == 'abc123x'",
        "pw = getpass.getpass()",
        "npw: 123456",
        "pw: required",
    ),
    "generic-token": (
        "RAILS_MASTER_KEY=$(cat master.key)",
        "master_key: None",
        "KMSMasterKeyId=6ece72aa-5955-4bdb-8380-88eda48ac048",
    ),
    "named-key": (
        "CACHE_KEY=user_profile_of_the_2nd_version",
        "PUBLIC_KEY=" + "3f9a" * 16,
        "LICENSE_KEY=see_the_file_of_the_license",
        "SORT_KEY = 'created_at_2024_descending_order'",
    ),
    "short-key": ("api_key = 'my_test_key_1234'", "api_key: string1234567890", "api_key = os.environ['X1Y2Z3W4']"),
    "spoken-password": (
        "the password is base64-encoded, then the password is sha256 hashed",
        "the password is required; the passphrase is optional; your password is 8-12 characters long",
        "the password was changed, see issue-1234; the password is in file2.txt",
        "the password for the server is in the vault2",
    ),
    "spoken-key": (
        "the token is valid_until_the_end_of_2026_or_so",
        "the api key is <YOUR_API_KEY_WITH_32_CHARACTERS>",
        "the token is 6ece72aa-5955-4bdb-8380-88eda48ac048",
    ),
}
"""Texts that look like a secret of a rule and must not be replaced."""


def samples(rule: str, seed: int = 1) -> Iterator[Sample]:
    """Return a secret for each form of a row."""
    forms = ROWS[rule]
    for number, form in enumerate((forms,) if isinstance(forms, str) else forms):
        yield from _samples(rule, form, random.Random(f"{rule} {seed} {number}" if number else f"{rule} {seed}"))  # noqa: S311  # invented, not secret


def _samples(rule: str, form: str, rng: random.Random) -> Iterator[Sample]:
    choices = [field[5].split("|") for field in _FIELD.finditer(form) if field[5]]
    for chosen in product(*choices):
        left = iter(chosen)
        text = _FIELD.sub(lambda field: next(left) if field[5] else _made(field, rng), form)  # noqa: B023
        _before, mark, after = text.partition("«")
        secret = after.partition("»")[0] if mark else text
        yield Sample(rule, text.replace("«", "").replace("»", ""), secret)


def sample(rule: str, seed: int = 1) -> Sample:
    return next(samples(rule, seed))


def _made(field: re.Match[str], rng: random.Random) -> str:
    alphabet, length, is_uuid, other, _ = field.groups()
    if alphabet == "words":
        return " ".join(_drawn(string.ascii_lowercase, rng.randint(4, 7), rng) for _ in range(int(length)))
    if alphabet:
        return _drawn(ALPHABETS[alphabet], int(length), rng)
    if is_uuid:
        return "-".join(_drawn(ALPHABETS["hex"], length, rng) for length in (8, 4, 4, 4, 12))
    if other == "wif":
        return _wif(rng.randbytes(32))
    return base64.b64encode(f"mara:{_drawn(ALPHABETS['b62'], 13, rng)}".encode()).decode()


def _wif(key: bytes) -> str:
    """Return a private key as wallets write it: base58 with a checksum."""
    raw = b"\x80" + key + b"\x01"
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, digits = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits += "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit]
    return digits[::-1]


def _drawn(alphabet: str, length: int, rng: random.Random) -> str:
    """Return random characters; the first and last are letters or digits, so that no sentence ends in one."""
    ends = [char for char in alphabet if char.isalnum()]
    middle = "".join(rng.choices(alphabet, k=max(length - 2, 0)))
    return (rng.choice(ends) + middle + (rng.choice(ends) if length > 1 else ""))[:length]
