import { Command } from 'commander';
import { ConfigError } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';

interface InitFlags {
  list?: boolean;
  force?: boolean;
  into: string;
}

const examples = `
Examples:
  $ custos init --list
  $ custos init vitest github
  $ custos init express --into server

A file that is there already is not overwritten: nothing is written then.`;

/** Returns the command `custos init`, which writes the initial files of a project. */
export function initCommand(): Command {
  return new Command('init')
    .description('write files to start with: tests, webhook endpoints, a workflow, requests for HTTP clients')
    .argument('[template...]', 'which files; see --list')
    .option('--list', 'print the templates')
    .option('--into <folder>', 'write them below this folder', '.')
    .option('--force', 'overwrite files')
    .addHelpText('after', examples)
    .action(init);
}

async function init(
  names: readonly string[],
  { list = false, force = false, into }: InitFlags,
): Promise<void> {
  const [{ filesOf, templates }, { writeFiles }] = await Promise.all([
    import('../tools/init/templates.ts'),
    import('../tools/init/templates.ts'),
  ]);
  if (list) {
    for (const { name, summary } of templates) console.log(`${name.padEnd(10)}  ${summary}`);
    return;
  }
  const known = templates.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0 || names.length === 0) {
    const got = unknown.length === 0 ? 'none' : unknown.map((name) => `\`${name}\``).join(', ');
    throw new ConfigError('invalid arguments:', [`expected templates of ${known.join(', ')}, got ${got}`]);
  }
  const chosen = templates.filter(({ name }) => names.includes(name));
  const { outcomes, inTheWay } = writeFiles(
    into,
    chosen.flatMap(({ name }) => filesOf(name)),
    { force },
  );
  if (inTheWay.length > 0) {
    const paths = inTheWay.map((path) => `\`${path}\``).join(', ');
    throw new StartError(`${paths} would be overwritten; move it away, or use --force. Nothing was written`);
  }
  for (const { path, state } of outcomes) console.log(`${state.padEnd(9)}  ${path}`);
  for (const { name, next } of chosen) console.log(`\nnext for ${name}:\n  ${next}`);
}
