"""Secrets that are known only by what stands around them: headers, URLs, options, files, assignments."""

from __future__ import annotations

from pollux.redaction.checks import (
    is_curl,
    is_header,
    is_login,
    is_mysql,
    is_named_random,
    is_netrc,
    is_option,
    is_password,
    is_random,
    is_user_and_password,
)
from pollux.redaction.rule import BASE64, SEP, Rule, after

_USER, _PASSWORD = r"[^\s/:@\"'`<>\\]{0,100}", r"[^\s/\"'`<>\\]{1,200}"
_SIGN = r"""[ \t"'`\\\])*]{0,16}(?:=>|:=|==?|[:>|,])"""
_NAMED = (
    r"""[ \t"'`\\\])*]{0,16}(?P<sep>=>|:=|==?|[:>|,])[ \t(\[*]{0,8}(?P<quote>\\{0,8}["'`])?"""
    r"""(?P<secret>(?(quote)[^"'`\s\\]{1,256}|[^\s"'`\\<>,;&)|\]}]{1,256}))"""
)
_SUFFIX = r"(?:[_-]?(?:key|token|value|id|base|string|Key|Token|Value|Id|KEY|TOKEN|VALUE|ID|BASE)){0,2}s?\d{0,2}"
_CURL = r"[\"']?[^\s:\"'@/+%]{1,100}:(?P<secret>[^\s\"'`\\]{3,200})"
_OPTION = r"(?:=|[ \t]{1,4})[\"']?(?P<secret>[^\s\"'`\\]{6,200})"
_HEADER = r"[A-Za-z0-9._~+/=-]"


def _url(id_: str, finds: str, *schemes: str) -> Rule:
    """Make a rule for the password in a URL."""
    anchors = tuple(f"{scheme}://" for scheme in schemes)
    return after(
        id_,
        finds,
        anchors,
        rf"{_USER}:(?P<secret>{_PASSWORD})@(?=[\w\[.%-])",
        check=is_user_and_password,
        probe=f"{_USER}:{_PASSWORD}@",
    )


ROWS = (
    _url("postgres-url", "password in a PostgreSQL URL", "postgres", "postgresql", "psycopg", "psycopg2", "asyncpg"),
    _url(
        "mysql-url",
        "password in a MySQL or MariaDB URL",
        "mysql",
        "mysql2",
        "mariadb",
        "pymysql",
        "mysqldb",
        "aiomysql",
    ),
    _url("mongodb-url", "password in a MongoDB URL", "mongodb", "mongodb+srv"),
    _url("redis-url", "password in a Redis URL", "redis", "rediss", "valkey", "valkeys"),
    _url("amqp-url", "password in an AMQP URL", "amqp", "amqps"),
    _url("url-password", "password in any other URL", ""),
    after(
        "odbc-password",
        "password in an ODBC, ADO or JDBC connection string",
        (";password", ";pwd", "; password", "; pwd", "?password", "&password"),
        r"[ \t]{0,4}=[ \t]{0,4}(?P<secret>[^;&\"'`\s\\]{1,128})",
    ),
    after(
        "basic-auth",
        "name and password of HTTP basic authentication",
        "basic ",
        rf" {{0,3}}(?P<secret>{BASE64}{{20,}}={{0,2}})",
        check=is_login,
        in_run=True,
    ),
    after(
        "bearer-token",
        "token behind the word Bearer",
        "bearer ",
        rf" {{0,3}}(?P<secret>{_HEADER}{{20,}})",
        check=is_random,
        in_run=True,
    ),
    after(
        "authorization-header",
        "value of an Authorization header",
        "authorization",
        rf"{SEP}(?:[A-Za-z-]{{3,20}}[ \t]{{1,4}})?(?P<secret>{_HEADER}{{8,}})",
        check=is_header,
    ),
    after(
        "cookie",
        "value of a Cookie header",
        "cookie:",
        r"[ \t]{0,4}(?P<secret>[\w.-]{1,100}=[^\s;\"'\\]{8,}(?:;[ \t]{0,4}[\w.-]{1,100}=[^\s;\"'\\]{1,}){0,60})",
    ),
    after(
        "url-key",
        "key or signature in the query of a URL",
        ("?key=", "&key=", "?auth=", "&auth=", "?code=", "&code=", "?signature=", "&signature="),
        r"(?P<secret>[A-Za-z0-9._~%+/-]{20,})",
        check=is_random,
        in_run=True,
    ),
    after(
        "netrc-password",
        "password in a .netrc file",
        "password ",
        r"\s{0,16}(?P<secret>[^\s\"'\\]{1,255})",
        check=is_netrc,
    ),
    after(
        "pgpass-password",
        "password in a .pgpass file",
        ":5432:",
        r"[^:\s]{1,64}:[^:\s]{1,64}:(?P<secret>[^:\s\"'\\]{1,128})",
    ),
    after(
        "curl-login",
        "name and password given to curl",
        (" -u ", "-user ", "-user="),
        _CURL,
        check=is_curl,
        probe=r"[\"']?[^\s:\"'@/+%]{1,100}:",
    ),
    after(
        "sshpass-password", "password given to sshpass", "sshpass -p", r"[ \t]{0,4}[\"']?(?P<secret>[^\s\"'\\]{3,200})"
    ),
    after(
        "mysql-password",
        "password given to a MySQL client",
        " -p",
        r"(?P<secret>[^\s\"'\\-][^\s\"'\\]{3,200})",
        check=is_mysql,
        probe=r"[^\s\"'\\-][^\s\"'\\]{3}",
    ),
    after(
        "option-password",
        "password given as an option of a command",
        ("--password", "--passwd", "--passphrase", "--secret", "--client-secret"),
        _OPTION,
        check=is_option,
    ),
    after(
        "option-token",
        "token given as an option of a command",
        ("token", "api-key", "apikey", "auth-token", "access-token"),
        _OPTION,
        check=is_option,
        guard="(?<=--)",
        in_run=True,
    ),
    after(
        "generic-password",
        "value behind a name such as password or pwd",
        ("password", "passwd", "passwort", "passphrase", "pwd", "_pass"),
        rf"[_-]?\d{{0,2}}{_NAMED}",
        check=is_password,
        probe=rf"[_-]?\d{{0,2}}{_SIGN}",
    ),
    after(
        "generic-secret",
        "random value behind a name such as secret or client_secret",
        "secret",
        rf"{_SUFFIX}{_NAMED}",
        check=is_named_random,
        probe=_SUFFIX.lower() + _SIGN,
    ),
    after(
        "generic-token",
        "long random value behind a name such as token or api_key",
        (
            "token",
            "api_key",
            "apikey",
            "api-key",
            "api key",
            "access_key",
            "accesskey",
            "access-key",
            "private_key",
            "privatekey",
            "encryption_key",
            "encryptionkey",
            "signing_key",
            "signingkey",
            "auth_key",
            "app_key",
            "appkey",
            "authkey",
            "credential",
        ),
        rf"{_SUFFIX}{_NAMED}",
        check=is_named_random,
        probe=_SUFFIX + _SIGN,
        in_run=True,
    ),
)
