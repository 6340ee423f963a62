import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createAggregation } from '../../src/domain/access/aggregations/aggregation.ts';
import { openRunningTotals } from '../../src/domain/access/aggregations/aggregation-totals.ts';
import { idempotencyKeys } from '../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../src/domain/base/replay-protection/single-use-signatures.ts';
import { publishedSafeguards } from '../../src/domain/base/safeguards/safeguards.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { beginImport } from '../../src/domain/wallets/wallets/import-wallet.ts';
import type { PolicyAction } from '../../src/engine/policy/action.ts';
import { sweepExpired } from '../../src/jobs/sweep-expired.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { resetDatabase } from '../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../support/databases.ts';
import { unsignedProof } from '../support/unsigned-proof.ts';
import { inTransaction, services, startMs } from './contexts.ts';

const hourMs = 3_600_000;
const oneEther: PolicyAction = {
  method: 'eth_signTransaction',
  units: [
    {
      label: 'transaction',
      ethereumCall: { chainId: 1n, to: undefined, value: 10n ** 18n, data: new Uint8Array() },
    },
  ],
};

const etherInAnHour = {
  name: 'Ether sent in an hour',
  method: 'eth_signTransaction',
  metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
  window: { type: 'rolling', seconds: 3600 },
} as const;

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  async function rows(): Promise<Record<string, number>> {
    const tables = [
      'idempotency_records',
      'used_signatures',
      'wallet_imports',
      'aggregation_records',
    ] as const;
    const counts: Record<string, number> = {};
    for (const table of tables) {
      const { count } = await database.orm.em
        .fork()
        .getKysely<Tables>()
        .selectFrom(table)
        .select(({ fn }) => fn.countAll().as('count'))
        .executeTakeFirstOrThrow();
      counts[table] = Number(count);
    }
    return counts;
  }

  const sweepAt = (nowMs: number) =>
    sweepExpired({
      services: { ...services, clock: { now: () => nowMs } },
      inUnit: inUnitOf(unitsOf(database)),
    }).run(() => undefined);

  test('everything expired is deleted, an hour later where requests in progress may need it, and not earlier', async () => {
    await inTransaction(database, async (context) => {
      await createAggregation(context, etherInAnHour);
      await (await openRunningTotals(context, 'wallet', oneEther)).record();
      await beginImport(context, {
        address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
        chain_type: 'ethereum',
        entropy_type: 'private-key',
        encryption_type: 'HPKE',
      });
      const use = { appId: 'acme', key: 'first', fingerprint: 'f', proof: unsignedProof, nowMs: startMs };
      const answer = { status: 200, text: '{}', signers: [] };
      await idempotencyKeys().keep(context.em, use, answer);
      const { keep } = singleUseSignatures(publishedSafeguards);
      for (const expiryMs of [startMs, undefined]) {
        const payloads = [new TextEncoder().encode(`expires at ${expiryMs}`)];
        const proof = { ...unsignedProof, expiryMs };
        await keep(context.em, { appId: 'acme', proof }, { payloads, answer });
      }
    });
    const everything = {
      idempotency_records: 1,
      used_signatures: 2,
      wallet_imports: 1,
      aggregation_records: 1,
    };

    // Other processes may be behind this clock by five minutes, and still accept the request.
    await sweepAt(startMs + hourMs / 12);
    expect(await rows()).toEqual(everything);
    await sweepAt(startMs + hourMs - 1);
    expect(await rows()).toEqual({ ...everything, used_signatures: 1 });
    await sweepAt(startMs + hourMs);
    const unused = { ...everything, used_signatures: 1, wallet_imports: 0 };
    expect(await rows()).toEqual(unused);
    // Requests that arrived an hour ago, or by a clock that is behind, still see the amounts and the responses.
    await sweepAt(startMs + 2 * hourMs - 1);
    expect(await rows()).toEqual(unused);
    await sweepAt(startMs + 2 * hourMs);
    expect(await rows()).toEqual({ ...unused, aggregation_records: 0 });
    await sweepAt(startMs + 25 * hourMs - 1);
    expect(await rows()).toEqual({ ...unused, aggregation_records: 0 });
    await sweepAt(startMs + 25 * hourMs);
    expect(await rows()).toEqual({ ...unused, aggregation_records: 0, idempotency_records: 0 });
  });

  test('many expired rows are deleted in several transactions', async () => {
    const insert = (columns: string, values: string, table: string) =>
      database.orm.em.fork().execute(`
        with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 5002)
        insert into ${table} (${columns}) select ${values} from numbers
      `);
    await inTransaction(database, (context) => createAggregation(context, etherInAnHour));
    const ofAggregation = "(select id from aggregations limit 1), 'g' || n, '1', 0";
    await insert(
      'id, aggregation_id, group_key, amount, recorded_at_ms',
      `'r' || n, ${ofAggregation}`,
      'aggregation_records',
    );
    await insert(
      'app_id, key, fingerprint, status, created_at_ms',
      "'acme', 'k' || n, '', 200, 0",
      'idempotency_records',
    );
    await insert('app_id, digest, expires_at_ms', "'acme', 'd' || n, 0", 'used_signatures');
    const [first, all] = [2, 0].map((count) => ({
      ...{
        aggregation_records: count,
        idempotency_records: count,
        used_signatures: count,
        wallet_imports: 0,
      },
    }));
    // It runs again at once.
    expect(await sweepAt(startMs)).toBe(true);
    expect(await rows()).toEqual(first);
    expect(await sweepAt(startMs)).toBe(false);
    expect(await rows()).toEqual(all);
  });
});
