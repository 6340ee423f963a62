import { Command } from 'commander';
import type { SandboxSnapshot } from '../../tools/client/world.ts';
import {
  addSandboxClientOptions,
  addSandboxListOptions,
  invalidOption,
  printSandboxList,
  type SandboxClientFlags,
  withSandbox,
} from '../sandbox-options.ts';
import { type Column, type Screen, timeOn } from '../shell/terminal.ts';

const examples = `
Examples:
  $ custos snapshot save funded
  $ custos snapshot load funded
  $ custos snapshot save funded --file funded.snapshot
  $ custos sandbox --load funded.snapshot
  $ custos snapshot save bug --file bug.custos --requests
  $ custos inspect bug.custos
  $ custos snapshot list`;

interface FileFlags extends SandboxClientFlags {
  file?: string;
  requests?: boolean;
}

/** Returns the command `custos snapshot …`, which manages snapshots of the whole state of a running sandbox. */
export function snapshotCommand(): Command {
  const snapshot = new Command('snapshot')
    .description('save and load the whole state of a running sandbox')
    .addHelpText('after', examples);
  snapshot.addCommand(saveCommand());
  snapshot.addCommand(loadCommand());
  snapshot.addCommand(listCommand());
  snapshot.addCommand(removeCommand());
  return snapshot;
}

function saveCommand(): Command {
  return addSandboxClientOptions(
    new Command('save')
      .description('save the state under a name; a snapshot of the same name is replaced')
      .argument('<name>', 'lower-case letters, digits, `.`, `_` and `-`')
      .option(
        '--file <path>',
        'also write it to a file, for `custos sandbox --load` and `custos snapshot load`',
      )
      .option('--requests', 'add the recorded requests to the file, for `custos inspect`'),
  )
    .addHelpText('after', examples)
    .action((name: string, flags: FileFlags) =>
      withSandbox(flags, async (client) => {
        if (flags.requests === true && flags.file === undefined) {
          throw invalidOption('--requests: expected --file as well');
        }
        const { saveSnapshot } = await import('../../tools/client/world.ts');
        const after = flags.requests === true ? 'start' : undefined;
        printSnapshot(await saveSnapshot(client, name, flags.file, after), flags);
      }),
    );
}

function loadCommand(): Command {
  return addSandboxClientOptions(
    new Command('load')
      .description('replace the state by that of a snapshot')
      .argument('<name>', 'name of the snapshot')
      .option('--file <path>', 'upload this file under the name first'),
  )
    .addHelpText('after', examples)
    .action((name: string, flags: FileFlags) =>
      withSandbox(flags, async (client) => {
        const { loadSnapshot } = await import('../../tools/client/world.ts');
        const loaded = await loadSnapshot(client, name, flags.file);
        const now = new Date(loaded.now_ms).toISOString();
        console.log(flags.json === true ? JSON.stringify(loaded) : `loaded ${name}; the clock shows ${now}`);
      }),
    );
}

function listCommand(): Command {
  return addSandboxListOptions(new Command('list').description('print the snapshots'))
    .addHelpText('after', examples)
    .action(async (flags: SandboxClientFlags) => {
      const { listSnapshots } = await import('../../tools/client/world.ts');
      await printSandboxList(flags, listSnapshots, { columns: columnsOn });
    });
}

const columnsOn = (screen: Screen): readonly Column<SandboxSnapshot>[] => [
  { title: 'name', text: ({ name }) => name, color: () => 'bold' },
  { title: 'size', text: ({ bytes }) => `${Math.ceil(bytes / 1024)} kB`, isNumber: true },
  {
    title: 'saved',
    text: ({ saved_at_ms: atMs }) => (atMs === null ? 'torn' : timeOn(screen, atMs)),
    color: ({ saved_at_ms: atMs }) => (atMs === null ? 'red' : undefined),
  },
  { title: 'version', text: ({ version }) => version ?? '', color: () => 'dim' },
];

function removeCommand(): Command {
  return addSandboxClientOptions(
    new Command('rm').description('delete snapshots').argument('<names...>', 'names of the snapshots'),
  )
    .addHelpText('after', examples)
    .action((names: string[], flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const { removeSnapshot } = await import('../../tools/client/world.ts');
        for (const name of names) {
          await removeSnapshot(client, name);
          console.log(flags.json === true ? JSON.stringify({ removed: name }) : `removed ${name}`);
        }
      }),
    );
}

function printSnapshot(snapshot: SandboxSnapshot, { json }: SandboxClientFlags): void {
  if (json === true) {
    console.log(JSON.stringify(snapshot));
    return;
  }
  const { name, bytes, saved_at_ms: savedAtMs, version } = snapshot;
  const saved = savedAtMs === null ? 'torn' : `saved ${new Date(savedAtMs).toISOString()} by ${version}`;
  console.log(`${name}  ${Math.ceil(bytes / 1024)} kB  ${saved}`);
}
