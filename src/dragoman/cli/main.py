"""The `dragoman` command: finds the sub-command, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import Any

import click

from dragoman._version import __version__
from dragoman.errors import DragomanError
from dragoman.memory import keep_freed_memory, start_anew_for_training

_COMMANDS = (
    "demo", "train", "distill", "translate", "evaluate", "attention", "heads", "serve", "average", "shortlist",
    "inspect",
)  # fmt: skip
_TRAINING = ("demo", "train", "distill")


class _Commands(click.Group):
    """Loads each command's file only when it is needed; those files load torch only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"dragoman.cli.{cmd_name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dragoman")
def dragoman() -> None:
    """Parallel text in, a translator out: the Transformer of "Attention Is All You Need"."""


def main(args: list[str] | None = None) -> None:
    """Runs the command and exits: 0 done, 1 failed, 2 misused, 130 and 143 stopped by a signal."""
    # Threads that wait at a barrier without spinning: where others use the machine too, spinning costs tenfold. It is
    # read when torch is loaded, which is later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if args is None and any(command in _TRAINING for command in sys.argv[1:2]):
        start_anew_for_training()
    keep_freed_memory()
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING, stream=sys.stderr)
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = sys.argv[1:] if args is None else args
    try:
        result: Any = dragoman.main(args=args or ["--help"], prog_name="dragoman", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except DragomanError as error:
        return _fail(error.message, error.hint, error.exit_code)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "dragoman"
        return _fail(error.format_message(), f"see `{command} --help`", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), None, 1)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "matplotlib", "numba"):
            raise
        return _fail(f"this command needs {error.name}", "pip install 'dragoman[train]'", 1)
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped", None, 130)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is left to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A disk that is full, a folder that may not be written: where reading can fail, it said so itself.
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}", None, 1)


def _fail(message: str, hint: str | None, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    return code
