import { parseArgs } from 'node:util';
import { Client, Pool } from 'pg';
import { entities } from '../../src/domain/tables.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { credentials } from '../servers/credentials.ts';
import { measureStorage, tellParent } from './storage-rounds.ts';
import {
  entityManagerOn,
  eventValues,
  idOf,
  keyValues,
  oursOn,
  PAGE,
  plainStatements,
  requirePage,
  type StorageSubject,
  timeOf,
  walletValues,
} from './storage-subject.ts';

// Storage on PostgreSQL alone: our verbs on the ORM's connections, and the same rows by named statements of `pg`.

const POOL = 8;
const counts = { create: 1500, get: 5000, page: 1000 };

/** `?` -> `$1`, `$2` and so on. */
function numbered(text: string): string {
  let number = 0;
  return text.replaceAll('?', () => {
    number += 1;
    return `$${number}`;
  });
}

function named(
  name: string,
  text: string,
): (values: unknown[]) => { name: string; text: string; values: unknown[] } {
  const numberedText = numbered(text);
  return (values) => ({ name, text: numberedText, values });
}

function rawOn(pool: Pool): StorageSubject {
  const wallet = named('wallet', plainStatements.wallet);
  const key = named('key', plainStatements.key);
  const event = named('event', plainStatements.event);
  const get = named('get', plainStatements.get);
  const cursor = named('cursor', plainStatements.cursor);
  const page = named('page', plainStatements.page);
  return {
    async create(id) {
      const client = await pool.connect();
      try {
        await client.query('begin');
        await client.query(wallet(walletValues(id)));
        await client.query(key(keyValues(id).map(asBytes)));
        await client.query(event(eventValues(id)));
        await client.query('commit');
      } finally {
        client.release();
      }
    },
    async get(id) {
      const { rows } = await pool.query(get([credentials.appId, id]));
      if (rows.length !== 1) throw new Error(`${id} is not there`);
    },
    async page(id) {
      const { rows } = await pool.query(cursor([id, credentials.appId]));
      const found = await pool.query(page([credentials.appId, rows[0].created_at_ms, id, PAGE + 1]));
      requirePage(found.rows.slice(0, PAGE).length);
    },
  };
}

// `pg` knows bytes as Buffer only.
function asBytes(value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}

/** Wallets numbered from 0 on, made by the database itself: a million rows one by one would take minutes. */
async function seed(url: string, rows: number): Promise<void> {
  tellParent(`seeding ${rows} wallets`);
  const client = new Client({ connectionString: url });
  await client.connect();
  const number = `lpad(n::text, ${idOf(0).length - 1}, '0')`;
  await client.query(
    `insert into wallets (id, app_id, chain_type, address, additional_signers, created_at_ms)
     select 'w' || ${number}, $1, 'ethereum', $2, '[]', $3::bigint + n from generate_series(0, $4::int - 1) as n`,
    [credentials.appId, '0x9858EfFD232B4033E47d90003D41EC34EcaEda94', timeOf(idOf(0)), rows],
  );
  await client.query('vacuum analyze wallets');
  await client.end();
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '5000' },
    url: { type: 'string', multiple: true, default: [] },
    growth: { type: 'string' },
  },
});
const [firstUrl = '', secondUrl = ''] = values.url;
const common = { rounds: Number(values.rounds), counts, concurrency: POOL, tell: tellParent };

async function compareWithRaw(rows: number) {
  await seed(firstUrl, rows);
  await seed(secondUrl, rows);
  const pool = new Pool({ connectionString: firstUrl, max: POOL });
  const database = await openDatabase(entities, { kind: 'postgres', url: secondUrl, poolSize: POOL });
  const subjects = {
    raw: { subject: rawOn(pool), rows },
    ours: { subject: oursOn(database), rows },
    // After ours, on the same tables: their sizes are the same to both.
    'entity manager': { subject: entityManagerOn(database), rows },
  };
  const measured = await measureStorage({ ...common, subjects });
  await Promise.all([pool.end(), database.close()]);
  return measured;
}

async function compareSizes(grown: number) {
  await seed(firstUrl, 1000);
  await seed(secondUrl, grown);
  const small = await openDatabase(entities, { kind: 'postgres', url: firstUrl, poolSize: POOL });
  const large = await openDatabase(entities, { kind: 'postgres', url: secondUrl, poolSize: POOL });
  const subjects = {
    small: { subject: oursOn(small), rows: 1000 },
    large: { subject: oursOn(large), rows: grown },
  };
  const measured = await measureStorage({ ...common, subjects });
  await Promise.all([small.close(), large.close()]);
  return measured;
}

const result = await (values.growth === undefined
  ? compareWithRaw(Number(values.rows))
  : compareSizes(Number(values.growth)));
process.send?.(result);
process.disconnect?.();
