import { Command } from 'commander';
import { readDatabaseConfig } from '../config.ts';

const examples = `
Examples:
  $ DATABASE_URL=postgresql://user:password@host:5432/custos custos migrate
  $ custos migrate --check
        exits with 1 when migrations are pending; changes nothing`;

/** `custos migrate`: updates the database to the schema of this version. */
export function migrateCommand(): Command {
  return new Command('migrate')
    .description('update the PostgreSQL database in DATABASE_URL to the schema of this version')
    .option('--check', 'only list the pending migrations')
    .addHelpText('after', examples)
    .action(async ({ check }: { check?: boolean }) => {
      const config = readDatabaseConfig({});
      const { migrateDatabase } = await import('../admin/administration.ts');
      const names = await migrateDatabase(config, { dryRun: check === true });
      if (names.length === 0) console.log('the schema is up to date');
      for (const name of names) console.log(`${check ? 'pending' : 'run'}  ${name}`);
      if (check === true && names.length > 0) {
        const { StartError } = await import('../start-error.ts');
        throw new StartError('the database lacks migrations; run `custos migrate`');
      }
    });
}
