import { Command } from 'commander';
import type { PlannedMigration } from '../admin/plan-migrations.ts';
import { readDatabaseConfig } from '../config/config.ts';

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
    .description('update the PostgreSQL database in DATABASE_URL to the schema of this version')
    .option('--check', 'only list the pending migrations')
    .option('--plan', 'only print what the pending migrations would do')
    .option('--json', 'with --plan: print JSON')
    .addHelpText('after', examples)
    .action(async ({ check, plan, json }: { check?: boolean; plan?: boolean; json?: boolean }) => {
      const config = readDatabaseConfig({});
      if (plan === true) {
        const { planMigrations } = await import('../admin/plan-migrations.ts');
        const planned = await planMigrations(config);
        console.log(json === true ? JSON.stringify(planned) : textOf(planned));
        return;
      }
      const { migrateDatabase } = await import('../admin/administration.ts');
      const names = await migrateDatabase(config, { dryRun: check === true });
      if (names.length === 0) console.log('the schema is up to date');
      for (const name of names) console.log(`${check ? 'pending' : 'run'}  ${name}`);
      if (check === true && names.length > 0) {
        const { StartError } = await import('../config/start-error.ts');
        throw new StartError('the database lacks migrations; run `custos migrate`');
      }
    });
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
