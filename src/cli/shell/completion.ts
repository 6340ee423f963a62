import { Argument, Command } from 'commander';

const examples = `
Examples:
  $ source <(custos completion bash)                   in ~/.bashrc
  $ source <(custos completion zsh)
        in ~/.zshrc, after compinit
  $ custos completion fish > ~/.config/fish/completions/custos.fish
  $ custos completion powershell >> $PROFILE`;

/**
 * Returns the command `custos completion`, which prints a shell script that calls `custos complete` whenever the tab
 * key is pressed.
 */
export function completionCommand(): Command {
  const shells = ['bash', 'zsh', 'fish', 'powershell'];
  return new Command('completion')
    .description('print a script that completes commands, options and operations')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText('after', examples)
    .action(async (shell: string) => {
      const { script } = await import('@bomb.sh/tab');
      script(shell, 'custos', 'custos');
    });
}

/** Returns the command `custos complete -- <words>`, which prints the possible completions of the last word. */
export function completeCommand(program: () => Command): Command {
  return new Command('complete').argument('[words...]').action(async (words: string[]) => {
    const [{ RootCommand }, { listOperations }] = await Promise.all([
      import('@bomb.sh/tab'),
      import('../../tools/client/call-operation.ts'),
    ]);
    const completions = new RootCommand();
    const operations = listOperations().map(({ id }) => id);
    const add = (command: Command, path: string): void => {
      const target = path === '' ? completions : completions.command(path, command.description());
      for (const option of command.createHelp().visibleOptions(command)) {
        if (option.long === undefined || option.long === null) continue;
        const choices = option.argChoices ?? knownValues[option.long];
        const [name, alias] = [option.long.slice(2), option.short?.slice(1)];
        const isFlag = !option.required && !option.optional;
        if (isFlag) target.option(name, option.description, alias);
        else target.option(name, option.description, offer(choices ?? []), alias);
      }
      const [first] = command.registeredArguments;
      const values = path === 'call' || path === 'logs' ? operations : first?.argChoices;
      if (first !== undefined && values !== undefined) target.argument(first.name(), offer(values));
      for (const child of command.createHelp().visibleCommands(command)) {
        add(child, path === '' ? child.name() : `${path} ${child.name()}`);
      }
    };
    add(program(), '');
    completions.parse(words);
  });
}

/** Options with known values that the command line does not check. */
const knownValues: Readonly<Record<string, readonly string[]>> = {
  '--sign': ['alice', 'bob', 'carol'],
  '--log-level': ['debug', 'info', 'warn', 'error', 'silent'],
  '--audit': ['on', 'off'],
  '--record': ['on', 'off'],
};

function offer(values: readonly string[]) {
  return (complete: (value: string, description: string) => void): void => {
    for (const value of values) complete(value, '');
  };
}
