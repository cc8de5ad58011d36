"""Secrets that are known only by what stands around them: in headers, URLs and files of a known form."""

from __future__ import annotations

from pollux.redaction.checks import is_header, is_login, is_netrc, is_random, is_user_and_password
from pollux.redaction.rule import BASE64, SEP, Rule, after

_USER, _PASSWORD = r"[^\s/:@\"'`<>\\]{0,100}", r"[^\s/\"'`<>\\]{1,200}"
_HEADER = r"[A-Za-z0-9._~+/=-]"
_CODE = (
    r"(?:(?=[A-Za-z-]{0,40}\d)[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,3}|(?=[A-Za-z]{0,16}\d)[A-Za-z0-9]{8,16}"
    r"|\d{3,4} \d{3,4})(?![A-Za-z0-9])"
)
"""One recovery code: two to four groups, or eight characters and more, with a digit; or two groups of digits."""
_CODE_GAP = r"(?:\\{1,8}[nrt]|[\s,;\"'`*•>|+]|-(?=\s)|(?<=\n)-|\d{1,2}(?=[.):|\t ])[.):|]?)"
"""Between two of them: line ends, bullets, numbers, the signs of a diff."""


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
        "recovery-codes",
        "codes for a lost second factor, below the words that name them",
        ("recovery codes", "recovery_codes", "recoverycodes", "backup codes", "backup_codes", "backupcodes"),
        rf"[^\n:]{{0,80}}+[:\n](?:{_CODE_GAP}|\[){{0,24}}+(?P<secret>{_CODE}(?:{_CODE_GAP}{{1,24}}+{_CODE}){{1,40}})",
        check=None,
        probe=r"[^\n:]{0,80}+[:\n]",
    ),
    after(
        "pgpass-password",
        "password in a .pgpass file",
        ":5432:",
        r"[^:\s]{1,64}:[^:\s]{1,64}:(?P<secret>[^:\s\"'\\]{1,128})",
    ),
)
