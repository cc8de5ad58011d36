"""Sentences for unknown commands, options and values, with the known word that the user probably meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

_OTHER_WORDS = {
    "backups": "archive backup",
    "cat": "show",
    "config": "doctor",
    "cost": "usage",
    "costs": "usage",
    "delete": "forget",
    "find": "search",
    "grep": "search",
    "log": "show",
    "open": "show",
    "query": "search",
    "read": "show",
    "remove": "forget",
    "rg": "search",
    "rm": "forget",
    "sessions": "ls",
    "tokens": "usage",
    "view": "show",
}
"""Commands by words that are not similar to their names."""
_RENAMED = {
    "--keep-only": "--raw-only",
    "--everything": "--all-projects",
    "--continues": "--consistent-with",
    "together": "merged",
    "apart": "separate",
}
"""Options and values by their former names, which are no longer accepted."""
_OTHER_OPTIONS = {
    "after": "--since",
    "before": "--until",
    "everything": "--all",
    "from": "--since",
    "full": "--all",
    "max": "--limit",
    "number": "--limit",
    "tz": "--timezone",
    "utc": "--timezone",
}
"""Options by words that are not similar to their names, for commands that have them."""
_GROUPS = ("archive", "record", "keys")
_SESSION = re.compile(r"latest|@\d+|[0-9a-f]{8}[0-9a-f-]*|session-\S+|\S+\.jsonl?|\S*/\S*")


def unknown_command(name: str, names: Sequence[str], path: str) -> str:
    """Return the sentence for an unknown command.

    Args:
        name: as the user typed it.
        names: of the known commands.
        path: the words before it, such as `pollux archive`.

    """
    commands = [f"{path} {match}" for match in get_close_matches(name.lower(), names, n=2)]
    if not commands and "archive" in names:
        commands = [f"{path} {command}" for command in _by_other_words(name)]
    if commands:
        suggested = " or ".join(f"`{command}`" for command in commands)
        return f"There is no command '{name}'. Did you mean {suggested}?"
    return f"There is no command '{name}'. The commands are {', '.join(names)}."


def usage_sentence(error: click.UsageError) -> str:
    """Return the sentence for wrong usage. Click's own sentences name no next step, so they get one."""
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error)
    if isinstance(error, click.BadParameter) and (sentence := _unknown_choice(error)):
        return sentence
    sentence = error.format_message()
    is_from_click = type(error) is not click.UsageError or sentence.startswith("Got unexpected")
    if not is_from_click or error.ctx is None:
        return sentence
    return f"{sentence.rstrip('.')}. Run `{error.ctx.command_path} --help` for help."


def _unknown_option(error: click.NoSuchOption) -> str:
    name, context = error.option_name, error.ctx
    if context is None:
        return error.format_message()
    if isinstance(context.command, click.Group):
        return f"There is no option {name} before a command. Put it after one, as in `pollux ls --json`."
    params = context.command.get_params(context)
    options = [option for param in params for option in (*param.opts, *param.secondary_opts)]
    long_options = [option for option in options if option.startswith("--")]
    suggested = _as_format(name, params) or _closest(name, long_options)
    suggested = suggested or _as_value(name, params) or _by_other_option(name, long_options)
    if context.info_name == "search":
        return (
            f"There is no option {name}. {f'Did you mean {suggested}? ' if suggested else ''}"
            f"To search for it, write `pollux search -- {name}`."
        )
    if suggested:
        return f"There is no option {name}. Did you mean {suggested}?"
    return f"There is no option {name}. Run `{context.command_path} --help` to list the options."


def _as_format(name: str, params: Sequence[click.Parameter]) -> str | None:
    """Return `--format html` for `--html` if the command has that format."""
    for param in params:
        if "--format" in param.opts and isinstance(param.type, click.Choice) and name[2:] in param.type.choices:
            return f"--format {name[2:]}"
    return None


def _as_value(name: str, params: Sequence[click.Parameter]) -> str | None:
    """Return `--detail full` for `--full` or `--ful` if an option of the command has a value like that."""
    for param in params:
        if isinstance(param, click.Option) and isinstance(param.type, click.Choice):
            value = _closest(name.lstrip("-"), [str(choice) for choice in param.type.choices])
            if value:
                return f"{max(param.opts, key=len)} {value}"
    return None


def _by_other_option(name: str, options: Sequence[str]) -> str | None:
    usable = [word for word, option in _OTHER_OPTIONS.items() if option in options]
    word = _closest(name.lstrip("-"), usable)
    return _OTHER_OPTIONS[word] if word else None


def _unknown_choice(error: click.BadParameter) -> str | None:
    param = error.param
    quoted, separator, _ = error.message.partition(" is not one of ")
    if param is None or not separator or not isinstance(param.type, click.Choice):
        return None
    choices = [str(choice) for choice in param.type.choices]
    value = str(ast.literal_eval(quoted))
    option = max(param.opts, key=len) if isinstance(param, click.Option) else str(param.name).upper()
    suggested = _closest(value, choices)
    advice = f"Did you mean {suggested}?" if suggested else f"Use {', '.join(choices[:-1])} or {choices[-1]}."
    return f"There is no '{value}' for {option}. {advice}"


def _by_other_words(name: str) -> list[str]:
    if name.lower() in _OTHER_WORDS:
        return [_OTHER_WORDS[name.lower()]]
    for group in _GROUPS:
        if name in import_module(f"pollux.cli.{group}").command.commands:
            return [f"{group} {name}"]
    return [f"show {name}"] if _SESSION.fullmatch(name) else []


def _closest(word: str, words: Sequence[str]) -> str | None:
    if _RENAMED.get(word) in words:
        return _RENAMED[word]
    by_letters = {option.lstrip("-"): option for option in words}  # dashes would make all options similar
    matches = get_close_matches(word.lstrip("-").lower(), by_letters, n=1)
    return by_letters[matches[0]] if matches else None
