import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { migrate } from '../../../src/storage/migrate.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

/*
 * Servers of the version before write while a migration runs, and after it. This writes to every table what such a server
 * may: rows of the columns that it knows, from the catalog of PostgreSQL before the migration, while it runs and after it.
 * The rule of expanding-migrations.test.ts reads the statements; here PostgreSQL judges what they do, also triggers,
 * defaults and blocks that no pattern knows.
 */

const LAST = process.env.TEST_LONG === '1' ? 10 : 3;
/** As servers set it. */
const LOCK_MS = 5_000;

interface Column {
  readonly name: string;
  readonly type: string;
}

type Schema = ReadonlyMap<string, readonly Column[]>;

async function readSchema(client: Client): Promise<Schema> {
  const { rows } = await client.query<{ table: string; name: string; type: string }>(
    `select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'schema_migrations'
       and c.relnamespace = current_schema()::regnamespace and a.attnum > 0 and not a.attisdropped
     order by c.relname, a.attnum`,
  );
  return new Map(
    [...Map.groupBy(rows, ({ table }) => table)].map(([table, columns]) => [
      table,
      columns.map(({ name, type }) => ({ name, type })),
    ]),
  );
}

let numbers = 0;

function sample(type: string): unknown {
  if (/^(bigint|integer|smallint)$/.test(type)) {
    numbers += 1;
    return numbers;
  }
  if (type === 'double precision') return 0.5;
  if (type === 'boolean') return false;
  if (type === 'bytea') return Buffer.from(randomUUID());
  if (/^jsonb?$/.test(type)) return '{}';
  if (type.startsWith('timestamp')) return new Date();
  if (/^(text|character varying)$/.test(type)) return randomUUID();
  throw new Error(`no value of the type \`${type}\` is known here`);
}

/** Inserts a row into every table, with the columns of `schema`, writes each of its columns again, and reads them. */
async function writeAll(client: Client, schema: Schema): Promise<string[]> {
  const faults: string[] = [];
  for (const [table, columns] of schema) {
    const names = columns.map(({ name }) => `"${name}"`);
    const slots = columns.map((_, index) => `$${index + 1}`);
    try {
      const sets = names.map((name) => `${name} = ${name}`);
      const { rows } = await client.query<{ at: string }>(
        `insert into "${table}" (${names.join()}) values (${slots.join()}) returning ctid::text as at`,
        columns.map(({ type }) => sample(type)),
      );
      const update = `update "${table}" set ${sets.join()} where ctid = $1::tid returning ${names.join()}`;
      await client.query(update, [rows[0]!.at]);
    } catch (error) {
      faults.push(`${table}: ${(error as Error).message}`);
    }
  }
  return faults;
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, lock_timeout: LOCK_MS });
  await client.connect();
  return client;
}

test(`servers that know no more than each of the last ${LAST} migrations found write while it runs, and after it`, async () => {
  const url = await freshPostgres();
  const first = migrations.length - LAST;
  const [client, writer] = [await connect(url), await connect(url)];
  await client.query('drop schema public cascade; create schema public');
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1, timeouts: 'none' });
  try {
    await migrate(database.orm, migrations.slice(0, first));
    expect(await writeAll(client, await readSchema(client))).toEqual([]);
    for (let count = first + 1; count <= migrations.length; count += 1) {
      const { name } = migrations[count - 1]!;
      const known = await readSchema(client);
      expect(known.size, name).toBeGreaterThan(30);
      let isOver = false;
      const during = (async () => {
        const faults: string[] = [];
        do faults.push(...(await writeAll(writer, known)));
        while (!isOver);
        return faults;
      })();
      expect(await migrate(database.orm, migrations.slice(0, count))).toEqual([name]);
      isOver = true;
      expect(await during, `while ${name} runs`).toEqual([]);
      expect(await writeAll(client, known), `after ${name}`).toEqual([]);
    }
    // What no pattern of the rule finds.
    const known = await readSchema(client);
    await client.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
      create trigger refuse before update on "wallets" for each row execute function refuse()`);
    expect(await writeAll(client, known)).toEqual(['wallets: refused']);
  } finally {
    await database.close();
    await Promise.all([client.end(), writer.end()]);
  }
});
