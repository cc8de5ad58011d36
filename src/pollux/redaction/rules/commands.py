"""Passwords and keys that are given to a command as arguments."""

from __future__ import annotations

from pollux.redaction.checks import (
    is_curl,
    is_for_kubernetes,
    is_mysql,
    is_option,
    is_password_option,
    is_random,
)
from pollux.redaction.rule import Rule, after

_VALUE = r"[\"']?(?P<secret>[^\s\"'`\\<>]{6,200})"
_CURL = r"[ \t]?[\"']?[^\s:\"'/+%]{1,100}:(?P<secret>[^\s\"'`\\]{3,200})"
_OPTION = r"(?:=|[ \t]{1,4})[\"']?(?P<secret>[^\s\"'`\\]{6,200})"
_BLANK = r"(?:[ \t]|\\{1,2}\n)"
"""Between two arguments: a blank, or the end of a line that goes on in the next."""


def _argument(id_: str, finds: str, command: str | tuple[str, ...], option: str, value: str = _VALUE) -> Rule:
    """Make a rule for what follows an option of a command, behind at most eight other arguments."""
    others = rf"(?:(?!{option}{_BLANK})[^\s|;&<>]{{1,200}}{_BLANK}{{1,8}}){{0,8}}+"
    return after(id_, finds, command, rf"{_BLANK}{{0,8}}{others}{option}{_BLANK}{{1,4}}{value}", check=is_option)


ROWS = (
    after(
        "curl-login",
        "name and password given to curl",
        (" -u", "-user ", "-user="),
        _CURL,
        check=is_curl,
        probe=r"[ \t]?[\"']?[^\s:\"'/+%]{1,100}:",
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
    _argument(
        "login-password",
        "password given to the login of a command, such as docker login -p or az login -p",
        " login ",
        "-p",
    ),
    _argument("redis-password", "password given to redis-cli", "redis-cli ", "-a"),
    _argument("mongo-password", "password given to a MongoDB client", "mongo", "-p"),
    _argument("ldap-password", "password given to an LDAP client", ("ldapsearch ", "ldapadd ", "ldapmodify "), "-w"),
    _argument("sqlcmd-password", "password given to sqlcmd", "sqlcmd ", "-P"),
    after(
        "ftp-password",
        "password behind the name that is given to lftp",
        "lftp -u ",
        r"[\"']?[^\s,\"']{1,100},(?P<secret>[^\s\"'`\\]{3,200})",
        check=is_option,
    ),
    after(
        "echo-password",
        "password that echo hands to another command, such as sudo -S, chpasswd or docker login --password-stdin",
        "echo ",
        r"(?:-[neE]{1,3} )?[\"']?(?:[\w.-]{1,64}:(?=[^|\n]{1,200}\|[ \t]{0,4}(?:sudo )?chpasswd))?"
        r"(?P<secret>[^\s\"'`\\|$]{6,200})[\"']?[ \t]{0,4}\|[ \t]{0,4}"
        r"(?:sudo -S|(?:sudo )?chpasswd|[^\n|]{1,200}(?:-stdin|--with-token))",
        check=is_option,
        probe=r"[^|\n]{6,300}\|",
    ),
    _argument(
        "smb-password",
        "password behind the name of a user of a Windows share",
        "smbclient ",
        "-U",
        r"[\"']?[^\s%\"']{1,100}%(?P<secret>[^\s\"'`\\]{3,100})",
    ),
    after(
        "net-use-password",
        "password given to net use",
        "net use",
        r"(?:[ \t]{1,4}[A-Za-z*]:?)?[ \t]{1,4}\\{2,8}[^\s\"']{1,200}[ \t]{1,4}(?:/user:[^\s\"']{1,100}[ \t]{1,4})?"
        rf"(?!/){_VALUE}",
        check=is_option,
    ),
    after(
        "openssl-password",
        "password given to openssl",
        ("-passin pass:", "-passout pass:", "-pass pass:"),
        r"(?P<secret>[^\s\"'`\\<>]{6,200})",
        check=is_option,
    ),
    after(
        "htpasswd-password",
        "password given to htpasswd",
        "htpasswd ",
        r"(?=[A-Za-z0-9 -]{0,24}-[A-Za-z0-9]{0,8}b)(?P<silent>(?=[A-Za-z0-9 -]{0,24}-[A-Za-z0-9]{0,8}n))?"
        r"(?:-[A-Za-z0-9]{1,8} {1,4}(?:\d{1,2} {1,4})?){1,4}+(?(silent)|[^\s\"'-]\S{0,200} {1,4})"
        rf"[^\s:]{{1,100}} {{1,4}}{_VALUE}",
        check=is_option,
    ),
    after(
        "kubernetes-secret",
        "value of a secret that is given to kubectl",
        "from-literal=",
        r"[\"']?[\w.-]{1,100}=[\"']?(?P<secret>[^\s\"'`\\]{4,200})",
        check=is_for_kubernetes,
    ),
    after(
        "option-password",
        "password given as an option of a command",
        ("-password", "-passwd", "-passphrase", "-pass", "-storepass", "-keypass", "-pw", "-pwd", "-secret"),
        _OPTION,
        check=is_password_option,
        probe=r"(?:=|[ \t]{1,4})[\"']?[^\s\"'`\\]{6}",
    ),
    after(
        "option-token",
        "token given as an option of a command",
        ("token", "api-key", "apikey", "auth-token", "access-token", "with-token"),
        r"(?:=|[ \t]{1,4})(?:<<<[ \t]{0,4})?[\"']?(?P<secret>[^\s\"'`\\]{6,200})",
        check=is_option,
        guard="(?<=--)",
        in_run=True,
    ),
    after(
        "login-token",
        "key or token that a command is told to keep: wandb login, ngrok config add-authtoken, vault login …",
        ("wandb login ", "vault login ", "authtoken ", "snyk auth ", "service install "),
        r"(?:--?[a-z-]{1,20}[ \t]{1,4}){0,3}+[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{20,2000})",
        check=is_random,
        in_run=True,
    ),
)
