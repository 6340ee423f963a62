import { Command } from 'commander';
import type { PlannedMigration } from '../admin/plan-migrations.ts';
import { type DatabaseConfig, readCells, readDatabases } from '../config/config.ts';
import { cellOption } from './setting-options.ts';

const examples = `
Examples:
  $ DATABASE_URL=postgresql://user:password@host:5432/custos custos migrate
  $ custos migrate --check
        exits with 1 when migrations are pending; changes nothing
  $ custos migrate --plan
        prints their statements, what waits for them, and the sizes of the
        tables; changes nothing`;

/** Returns the command `custos migrate`, which updates the database to the schema of this version. */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description('update the database in DATABASE_URL, or all cells, to the schema of this version')
    .option('--check', 'only list the pending migrations')
    .option('--plan', 'only print what the pending migrations would do')
    .option('--json', 'with --plan: print JSON')
    .addHelpText('after', examples)
    .addOption(cellOption())
    .action(async (flags: MigrateFlags) => {
      const databases = readDatabases(flags);
      const { hasCells, prepareDirectory } = await import('../admin/cells.ts');
      const isNamed = hasCells(databases);
      const faults: string[] = [];
      for (const { cell, config } of databases) {
        const of = isNamed ? `${cell}  ` : '';
        try {
          await (flags.plan === true ? plan(config, flags, of) : migrate(config, flags, of));
        } catch (error) {
          // If one cell is unavailable, the others are migrated all the same.
          if (!isNamed) throw error;
          faults.push(`${cell}: ${(error as Error).message}`);
        }
      }
      if (isNamed && flags.check !== true && flags.plan !== true) await prepareDirectory(readCells());
      if (faults.length === 0) return;
      const { StartError } = await import('../config/start-error.ts');
      throw new StartError(faults.join('\n'));
    });
}

interface MigrateFlags {
  check?: boolean;
  plan?: boolean;
  json?: boolean;
  cell?: string;
}

async function plan(config: DatabaseConfig, { json }: MigrateFlags, of: string): Promise<void> {
  const { planMigrations } = await import('../admin/plan-migrations.ts');
  const planned = await planMigrations(config);
  if (of !== '' && json !== true) console.log(of.trimEnd());
  console.log(json === true ? JSON.stringify(planned) : textOf(planned));
}

async function migrate(config: DatabaseConfig, { check }: MigrateFlags, of: string): Promise<void> {
  const { migrateDatabase } = await import('../admin/administration.ts');
  const names = await migrateDatabase(config, { dryRun: check === true });
  if (names.length === 0) console.log(`${of}the schema is up to date`);
  for (const name of names) console.log(`${of}${check ? 'pending' : 'run'}  ${name}`);
  if (check === true && names.length > 0) {
    const { StartError } = await import('../config/start-error.ts');
    throw new StartError('the database lacks migrations; run `custos migrate`');
  }
}

function textOf(planned: readonly PlannedMigration[]): string {
  if (planned.length === 0) return 'the schema is up to date';
  const lines = planned.flatMap(({ name, removes_since: since, statements }) => [
    since === null
      ? `${name}  adds only: servers of the version before can go on`
      : `${name}  removes: only servers that know migration ${since} can go on; replace all others first`,
    ...statements.flatMap(({ sql, table, rows, bytes, waits }) => [
      `  ${sql.replaceAll(/\s+/g, ' ')}`,
      waits === null ? '    a new table' : `    ${table}: about ${rows} rows, ${bytes} bytes; ${waits}`,
    ]),
  ]);
  return [...lines, '', 'All of them run in one transaction: what waits does so until its end.'].join('\n');
}
