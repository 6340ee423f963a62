import { Command } from 'commander';
import type { ListedCell } from '../admin/cells.ts';
import { readCellsPath } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { type Column, screenOf, table } from './shell/terminal.ts';

interface AddFlags {
  databaseUrl: string;
  directoryUrl?: string;
  distribute?: boolean;
}

const examples = `
A cell is a database, or a schema of one, with all data of some apps. The file
in CUSTOS_CELLS_FILE names all cells of a deployment; servers read it when they
start. See docs/cells.md.

Examples:
  $ export CUSTOS_CELLS_FILE=/etc/custos/cells.json
  $ custos cells add eu-1 --directory-url postgresql://…/directory \\
      --database-url postgresql://…/custos_eu1
  $ custos cells add eu-2 \\
      --database-url 'postgresql://…/custos?options=-c%20search_path%3Deu2'
  $ custos cells list
  $ custos cells drain eu-1

Exit codes: 0 success, 1 failure, 2 invalid usage.`;

/** Returns the command `custos cells …`, which manages the databases of a deployment. */
export function cellsCommand(): Command {
  const cells = new Command('cells')
    .description('list, add and drain the databases of a deployment')
    .addHelpText('after', examples);
  cells.addCommand(
    new Command('list')
      .description('list the cells with their apps and their state')
      .option('--json', 'print JSON')
      .addHelpText('after', examples)
      .action(async ({ json }: { json?: boolean }) => {
        const { listCells } = await import('../admin/cells.ts');
        const { cells: list, faults } = await listCells();
        console.log(json === true ? JSON.stringify(list) : table(columns, list, screenOf()));
        if (faults.length > 0) throw new StartError(faults.join('\n'));
      }),
  );
  cells.addCommand(
    new Command('add')
      .description('make the tables of a new cell, and add it to the cells file')
      .argument('<name>', 'lower-case letters, digits and `-`')
      .requiredOption('--database-url <url>', 'its database; `options=-c search_path=…` names a schema')
      .option('--directory-url <url>', 'the database of the directory, for a new cells file')
      .option('--distribute', 'make the schema one that Citus can move to another node')
      .addHelpText('after', examples)
      .action(async (name: string, flags: AddFlags) => {
        const { addCell } = await import('../admin/cells.ts');
        const run = await addCell(readCellsPath(), {
          ...{ name, databaseUrl: flags.databaseUrl, directoryUrl: flags.directoryUrl },
          distribute: flags.distribute === true,
        });
        const made = run.length === 0 ? 'its schema was up to date' : `${run.length} migrations run`;
        console.log(`added  ${name}\n       ${made}; restart the servers to use it`);
      }),
  );
  for (const [command, isAccepting, description] of [
    ['drain', false, 'place no new apps in a cell; its apps stay'],
    ['undrain', true, 'place new apps in a cell again'],
  ] as const) {
    cells.addCommand(
      new Command(command)
        .description(description)
        .argument('<name>', 'the cell')
        .addHelpText('after', examples)
        .action(async (name: string) => {
          const { acceptApps } = await import('../admin/cells.ts');
          acceptApps(readCellsPath(), name, isAccepting);
          console.log(`${name}  ${isAccepting ? 'accepts new apps' : 'accepts no new apps'}`);
        }),
    );
  }
  return cells;
}

const columns: readonly Column<ListedCell>[] = [
  { title: 'cell', text: ({ name }) => name, color: () => 'bold' },
  {
    title: 'state',
    text: ({ state }) => state,
    color: ({ state }) => (state === 'ready' ? 'green' : state === 'unavailable' ? 'red' : 'yellow'),
  },
  { title: 'apps', text: ({ apps }) => (apps === null ? '?' : String(apps)) },
  { title: 'new apps', text: ({ accepts_apps: accepts }) => (accepts ? 'yes' : 'no') },
  { title: 'database', text: ({ database }) => database, color: () => 'dim', canBeCut: true },
];
