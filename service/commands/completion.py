"""`5spot completion`: the script that lets a shell complete commands, options and values."""

from typing import Annotated, Literal

import typer

from service.commands.help import ReadableCommand

app = typer.Typer(add_completion=False)


@app.command(
    cls=ReadableCommand,
    help="Prints the script that lets a shell complete commands, options and their values.",
    epilog="""
Examples, for the running shell:
  bash  source <(5spot completion bash)
  zsh   source <(5spot completion zsh)
  fish  5spot completion fish | source

Install it for every new shell:
  bash  echo 'source <(5spot completion bash)' >> ~/.bashrc
  zsh   echo 'source <(5spot completion zsh)' >> ~/.zshrc
  fish  5spot completion fish > ~/.config/fish/completions/5spot.fish

In zsh, `autoload -U compinit && compinit` must run before.""",
)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> int:
    """Print the script for one shell."""
    from service.commands import root  # noqa: PLC0415 - root imports this module

    return root.complete(f"source_{shell}")
