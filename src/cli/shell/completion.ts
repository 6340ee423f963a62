import { Argument, Command } from 'commander';
import { bashScript, fishScript, zshScript } from './completion-scripts.ts';

/** What can be completed after a command: its path is empty for the program itself. */
export interface CompletedCommand {
  /** `events wait`. */
  readonly path: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** Values of the first argument. */
  readonly words: readonly string[];
}

interface CompletedOption {
  /** `-i` and `--include`. */
  readonly names: readonly string[];
  readonly description: string;
  readonly value: 'none' | 'file' | 'folder' | 'word';
  /** The values to choose from. */
  readonly choices: readonly string[];
}

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

const examples = `
Examples:
  $ source <(custos completion bash)                   in ~/.bashrc
  $ source <(custos completion zsh)
        in ~/.zshrc, after compinit
  $ custos completion fish > ~/.config/fish/completions/custos.fish`;

/** `custos completion`: prints a script for a shell, made from the tree of commands. */
export function completionCommand(program: () => Command): Command {
  return new Command('completion')
    .description('print a script that completes commands, options and operations')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .addHelpText('after', examples)
    .action(async (shell: keyof typeof scripts) => {
      const { listOperations } = await import('../../client/calls/find-operation.ts');
      const operations = listOperations().map(({ id }) => id);
      console.log(scripts[shell](completedCommands(program(), operations.sort())));
    });
}

/** Options whose values are known, but not checked by the command line. */
const knownValues: Readonly<Record<string, readonly string[]>> = {
  '--sign': ['alice', 'bob', 'carol'],
  '--log-level': ['debug', 'info', 'warn', 'error', 'silent'],
  '--audit': ['on', 'off'],
  '--record': ['on', 'off'],
};

function completedCommands(program: Command, operations: readonly string[]): CompletedCommand[] {
  const read = (command: Command, path: string): CompletedCommand[] => [
    {
      path,
      subcommands: command.commands.map((child) => ({
        name: child.name(),
        description: child.description(),
      })),
      options: [...command.options, ...(helpOf(command) ?? [])].map(completedOption),
      words:
        path === 'call' || path === 'logs'
          ? operations
          : [...(command.registeredArguments[0]?.argChoices ?? [])],
    },
    ...command.commands.flatMap((child) =>
      read(child, path === '' ? child.name() : `${path} ${child.name()}`),
    ),
  ];
  return read(program, '');
}

/** Commander keeps the help option apart from the others. */
function helpOf(command: Command): readonly Command['options'][number][] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => !command.options.includes(option));
}

function completedOption(option: Command['options'][number]): CompletedOption {
  const { short, long, description, flags, argChoices } = option;
  const names = [short, long].filter((name) => name !== undefined && name !== null);
  const [, placeholder] = /[<[]([^<>[\]]+)[>\]]/.exec(flags) ?? [];
  const choices = argChoices ?? knownValues[long ?? ''] ?? [];
  return { names, description, value: valueKind(placeholder), choices };
}

function valueKind(placeholder: string | undefined): CompletedOption['value'] {
  if (placeholder === undefined) return 'none';
  if (placeholder === 'folder') return 'folder';
  return placeholder === 'file' || placeholder === 'path' ? 'file' : 'word';
}
