"""Tokens of chat, mail and telephone services."""

from __future__ import annotations

from pollux.redaction.rule import ALNUM, BASE64, HEX, SEP, UUID, WORD, after, just, some, token

_DISCORD = ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
"""How a number begins in base64: the first part of the token is the bot's id."""

ROWS = (
    token(
        "slack-token",
        "Slack token: bot, user, app, refresh, legacy",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"),
        r"[A-Za-z0-9.%/+-]{17,}[A-Za-z0-9%]",
    ),
    token("slack-webhook", "Slack webhook", "hooks.slack.com/", r"(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}"),
    token(
        "discord-token",
        "Discord bot token",
        _DISCORD,
        rf"{WORD}{{21,27}}\.{WORD}{{6}}\.{WORD}{{27,}}",
        is_word=True,
        probe=just(ALNUM, 14),
    ),
    token(
        "discord-webhook",
        "Discord webhook",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        rf"\d{{10,}}/{WORD}{{50,}}",
    ),
    token("telegram-token", "Telegram bot token", ":AA", some(WORD, 32), left=r"\d{8,10}(?!\d)"),
    token(
        "teams-webhook",
        "Microsoft Teams webhook",
        (".webhook.office.com/", "outlook.office.com/webhook"),
        r"[A-Za-z0-9@/_-]{60,}",
    ),
    token("twilio-key", "Twilio API key", "SK", rf"{HEX}{{32}}(?!{HEX})", is_word=True, probe=just(HEX, 16)),
    token("twilio-account", "Twilio account SID", "AC", rf"{HEX}{{32}}(?!{HEX})", is_word=True, probe=just(HEX, 16)),
    after(
        "twilio-token",
        "Twilio auth token, by the name before it",
        "twilio",
        rf"[A-Za-z_-]{{0,24}}{SEP}(?P<secret>{HEX}{{32}})(?!{HEX})",
        in_run=True,
    ),
    token("sendgrid-key", "SendGrid API key", "SG.", rf"{WORD}{{16,}}\.{WORD}{{16,}}", is_word=True),
    token("mailgun-key", "Mailgun API key", "key-", rf"{HEX}{{32}}(?!{HEX})", is_word=True),
    after(
        "mailgun-new-key",
        "Mailgun API key, by the name before it",
        ("mailgun_", "mailgun-"),
        rf"[A-Za-z_-]{{0,24}}{SEP}(?P<secret>{HEX}{{32}}(?:-{HEX}{{8}}){{0,2}})",
        in_run=True,
    ),
    token(
        "mailchimp-key",
        "Mailchimp API key",
        "-us",
        r"\d{1,2}(?![A-Za-z0-9])",
        left=rf"{HEX}{{32}}(?!{HEX})",
        probe=r"\d",
    ),
    token("mandrill-key", "Mandrill API key", "md-", rf"{WORD}{{22}}(?!{WORD})", is_word=True, probe=just(WORD, 12)),
    token("brevo-key", "Brevo (Sendinblue) API or SMTP key", ("xkeysib-", "xsmtpsib-"), rf"{HEX}{{64}}-{ALNUM}{{16}}"),
    token("resend-key", "Resend API key", "re_", rf"{ALNUM}{{8}}_{ALNUM}{{20,}}", is_word=True, probe=f"{ALNUM}{{8}}_"),
    after(
        "postmark-token",
        "Postmark server token, by the name before it",
        "postmark",
        rf"[A-Za-z_-]{{0,24}}{SEP}(?P<secret>{UUID})",
        in_run=True,
    ),
    token("intercom-token", "Intercom access token", "dG9rO", rf"{BASE64}{{40,}}=*"),
    token("zapier-webhook", "Zapier webhook", "hooks.zapier.com/hooks/catch/", r"\d+/[A-Za-z0-9]{5,}"),
    token("pubnub-key", "PubNub secret key", "sec-c-", r"[A-Za-z0-9+/=-]{36,}"),
    token("inngest-key", "Inngest signing key", ("signkey-prod-", "signkey-test-", "signkey-branch-"), some(HEX, 32)),
)
