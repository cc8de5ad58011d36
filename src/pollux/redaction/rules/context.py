"""Rules for secrets that are recognised by their context: headers, URLs, known files, arguments of commands."""

from __future__ import annotations

from pollux.redaction.checks import (
    is_header,
    is_login,
    is_netrc,
    is_option,
    is_password_option,
    is_random,
    is_real,
    is_user_and_password,
    preceded_by,
)
from pollux.redaction.rule import BASE64, SEP, Rule, after

_USER, _PASSWORD = r"[^\s/:@\"'`<>\\]{0,100}", r"[^\s/\"'`<>\\]{1,200}"
_HEADER = r"[A-Za-z0-9._~+/=-]"
_CODE = (
    r"(?:(?=[A-Za-z-]{0,40}\d)[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,3}|(?=[A-Za-z]{0,16}\d)[A-Za-z0-9]{8,16}"
    r"|\d{3,4} \d{3,4})(?![A-Za-z0-9])"
)
"""A recovery code: two to four groups or at least eight characters, with a digit; or two groups of digits."""
_CODE_GAP = r"(?:\\{1,8}[nrt]|[\s,;\"'`*•>|+]|-(?=\s)|(?<=\n)-|\d{1,2}(?=[.):|\t ])[.):|]?)"
"""Between two of them: line ends, bullets, numbers, the signs of a diff."""
_VALUE = r"[\"']?(?P<secret>[^\s\"'`\\<>]{6,200})"
_CURL = r"[ \t]?[\"']?[^\s:\"'/+%]{1,100}:(?P<secret>[^\s\"'`\\]{3,200})"
_OPTION = r"(?:=|[ \t]{1,4})[\"']?(?P<secret>[^\s\"'`\\]{6,200})"
_BLANK = r"(?:[ \t]|\\{1,2}\n)"
"""Between two arguments: a blank, or an escaped line end."""


def _url(id_: str, finds: str, *schemes: str) -> Rule:
    """Return a rule for the password in a URL."""
    anchors = tuple(f"{scheme}://" for scheme in schemes)
    return after(
        id_,
        finds,
        anchors,
        rf"{_USER}:(?P<secret>{_PASSWORD})@(?=[\w\[.%-])",
        check=is_user_and_password,
        probe=f"{_USER}:{_PASSWORD}@",
    )


def _argument(id_: str, finds: str, command: str | tuple[str, ...], option: str, value: str = _VALUE) -> Rule:
    """Return a rule for the value of an option that follows a command and at most eight other arguments."""
    others = rf"(?:(?!{option}{_BLANK})[^\s|;&<>]{{1,200}}{_BLANK}{{1,8}}){{0,8}}+"
    return after(id_, finds, command, rf"{_BLANK}{{0,8}}{others}{option}{_BLANK}{{1,4}}{value}", check=is_option)


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
        "token after the word Bearer",
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
        "recovery or backup codes of a second factor, after a line that names them",
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
    after(
        "curl-login",
        "user name and password in an argument of curl",
        (" -u", "-user ", "-user="),
        _CURL,
        check=preceded_by("curl", 400, is_user_and_password),
        probe=r"[ \t]?[\"']?[^\s:\"'/+%]{1,100}:",
    ),
    after(
        "sshpass-password",
        "password in an argument of sshpass",
        "sshpass -p",
        r"[ \t]{0,4}[\"']?(?P<secret>[^\s\"'\\]{3,200})",
    ),
    after(
        "mysql-password",
        "password in an argument of a MySQL client",
        " -p",
        r"(?P<secret>[^\s\"'\\-][^\s\"'\\]{3,200})",
        check=preceded_by("mysql", 200, is_real),
        probe=r"[^\s\"'\\-][^\s\"'\\]{3}",
    ),
    _argument(
        "login-password",
        "password in an argument of a login command, such as docker login -p or az login -p",
        " login ",
        "-p",
    ),
    _argument("redis-password", "password in an argument of redis-cli", "redis-cli ", "-a"),
    _argument("mongo-password", "password in an argument of a MongoDB client", "mongo", "-p"),
    _argument(
        "ldap-password", "password in an argument of an LDAP client", ("ldapsearch ", "ldapadd ", "ldapmodify "), "-w"
    ),
    _argument("sqlcmd-password", "password in an argument of sqlcmd", "sqlcmd ", "-P"),
    after(
        "ftp-password",
        "password in an argument of lftp",
        "lftp -u ",
        r"[\"']?[^\s,\"']{1,100},(?P<secret>[^\s\"'`\\]{3,200})",
        check=is_option,
    ),
    after(
        "echo-password",
        "password piped from echo to sudo -S, chpasswd or a command with --password-stdin",
        "echo ",
        r"(?:-[neE]{1,3} )?[\"']?(?:[\w.-]{1,64}:(?=[^|\n]{1,200}\|[ \t]{0,4}(?:sudo )?chpasswd))?"
        r"(?P<secret>[^\s\"'`\\|$]{6,200})[\"']?[ \t]{0,4}\|[ \t]{0,4}"
        r"(?:sudo -S|(?:sudo )?chpasswd|[^\n|]{1,200}(?:-stdin|--with-token))",
        check=is_option,
        probe=r"[^|\n]{6,300}\|",
    ),
    _argument(
        "smb-password",
        "password in an argument of smbclient",
        "smbclient ",
        "-U",
        r"[\"']?[^\s%\"']{1,100}%(?P<secret>[^\s\"'`\\]{3,100})",
    ),
    after(
        "net-use-password",
        "password in an argument of net use",
        "net use",
        r"(?:[ \t]{1,4}[A-Za-z*]:?)?[ \t]{1,4}\\{2,8}[^\s\"']{1,200}[ \t]{1,4}(?:/user:[^\s\"']{1,100}[ \t]{1,4})?"
        rf"(?!/){_VALUE}",
        check=is_option,
    ),
    after(
        "openssl-password",
        "password in an argument of openssl",
        ("-passin pass:", "-passout pass:", "-pass pass:"),
        r"(?P<secret>[^\s\"'`\\<>]{6,200})",
        check=is_option,
    ),
    after(
        "htpasswd-password",
        "password in an argument of htpasswd",
        "htpasswd ",
        r"(?=[A-Za-z0-9 -]{0,24}-[A-Za-z0-9]{0,8}b)(?P<silent>(?=[A-Za-z0-9 -]{0,24}-[A-Za-z0-9]{0,8}n))?"
        r"(?:-[A-Za-z0-9]{1,8} {1,4}(?:\d{1,2} {1,4})?){1,4}+(?(silent)|[^\s\"'-]\S{0,200} {1,4})"
        rf"[^\s:]{{1,100}} {{1,4}}{_VALUE}",
        check=is_option,
    ),
    after(
        "kubernetes-secret",
        "value of a secret in an argument of kubectl",
        "from-literal=",
        r"[\"']?[\w.-]{1,100}=[\"']?(?P<secret>[^\s\"'`\\]{4,200})",
        check=preceded_by("create secret", 1000, is_option),
    ),
    after(
        "option-password",
        "password after an option such as --password",
        ("-password", "-passwd", "-passphrase", "-pass", "-storepass", "-keypass", "-pw", "-pwd", "-secret"),
        _OPTION,
        check=is_password_option,
        probe=r"(?:=|[ \t]{1,4})[\"']?[^\s\"'`\\]{6}",
    ),
    after(
        "option-token",
        "token after an option such as --token",
        ("token", "api-key", "apikey", "auth-token", "access-token", "with-token"),
        r"(?:=|[ \t]{1,4})(?:<<<[ \t]{0,4})?[\"']?(?P<secret>[^\s\"'`\\]{6,200})",
        check=is_option,
        guard="(?<=--)",
        in_run=True,
    ),
    after(
        "login-token",
        "key or token in an argument of wandb login, ngrok config add-authtoken, vault login …",
        ("wandb login ", "vault login ", "authtoken ", "snyk auth ", "service install "),
        r"(?:--?[a-z-]{1,20}[ \t]{1,4}){0,3}+[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{20,2000})",
        check=is_random,
        in_run=True,
    ),
)
