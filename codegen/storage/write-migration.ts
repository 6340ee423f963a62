import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { entities } from '../../src/domain/tables.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { migrations } from '../../src/storage/migrations/migrations.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { startEmbeddedPostgres } from '../../test/support/postgres/embedded-postgres.ts';

// For use after entities have changed: `npm run migration -- add-cards` writes the next migration from the difference
// between the entities and the existing migrations. Review the migration: its effect on existing rows, how long it
// locks, and the values of new columns. Then run `npm run check:house`, which prints the line to add to
// `test/house/released-migrations.txt`.

const folder = join(import.meta.dirname, '../../src/storage/migrations');
const listFile = join(folder, 'migrations.ts');

async function missingIn(database: Database): Promise<string> {
  try {
    return (await database.orm.schema.getUpdateSchemaSQL({ wrap: false })).trim();
  } finally {
    await database.close();
  }
}

async function missingInSqlite(): Promise<string> {
  return missingIn(await openDatabase(entities, { kind: 'sqlite', file: ':memory:' }));
}

async function missingInPostgres(): Promise<string> {
  const postgres = await startEmbeddedPostgres(['-c', 'fsync=off']);
  try {
    const admin = new Client({ connectionString: postgres.urlOf('postgres') });
    await admin.connect();
    await admin.query('create database custos');
    await admin.end();
    const url = postgres.urlOf('custos');
    const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 });
    await migrate(database.orm);
    return await missingIn(database);
  } finally {
    await postgres.stop();
  }
}

function asTemplate(sql: string): string {
  return `\`\n${sql.replace(/[\\`$]/g, '\\$&')}\n\``;
}

function write(what: string, postgres: string, sqlite: string): string {
  const name = `${String(migrations.length + 1).padStart(4, '0')}-${what}`;
  const constant = what.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  writeFileSync(
    join(folder, `${name}.ts`),
    `import type { SchemaMigration } from './schema-migration.ts';

export const ${constant}: SchemaMigration = {
  name: '${name}',
  postgres: ${asTemplate(postgres)},
  sqlite: ${asTemplate(sqlite)},
};
`,
    { flag: 'wx' },
  );
  const list = readFileSync(listFile, 'utf8')
    .replace('import type { SchemaMigration }', `import { ${constant} } from './${name}.ts';\n$&`)
    .replace(/\[\s*(\w+(?:,\s*\w+)*),?\s*\];/, `[$1, ${constant}];`);
  writeFileSync(listFile, list);
  return `${name}.ts`;
}

const what = process.argv[2];
if (what === undefined || !/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(what)) {
  console.error('usage: npm run migration -- <what-it-does>, in lower case with hyphens');
  process.exitCode = 2;
} else {
  const [sqlite, postgres] = [await missingInSqlite(), await missingInPostgres()];
  if (sqlite === '' && postgres === '') console.log('the migrations have all that the entities have');
  else console.log(`written: src/storage/migrations/${write(what, postgres, sqlite)}`);
}
