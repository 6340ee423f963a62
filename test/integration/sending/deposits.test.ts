import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tables } from '../../../src/domain/tables.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import type { JobContext } from '../../../src/jobs/job-context.ts';
import type { AnyChain, Chains } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../../support/run-custos.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

const base = 'eip155:8453';
const optimism = 'eip155:10';

describe.each(databaseKinds)('on %s', (kind) => {
  let simulated: SimulatedChains;
  let chains: Chains & { broken: Set<string> };
  let operations: TestOperations;
  let wallet: Wallet;

  beforeEach(async () => {
    simulated = openSimulatedChains({
      file: ':memory:',
      clock: { now: () => Date.UTC(2026, 0, 1) },
      confirmAfterMs: undefined,
    });
    const broken = new Set<string>();
    chains = {
      broken,
      find: (caip2) => {
        const chain = simulated.find(caip2);
        const refuse = () => Promise.reject(new Error('the list cannot be read'));
        return broken.has(caip2) ? ({ ...chain, transfersAfter: refuse } as AnyChain) : chain;
      },
      listing: () => simulated.used(),
    };
    operations = await openOperations(kind, { chains });
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    wallet = body as Wallet;
  });
  afterEach(async () => {
    await simulated.close();
    await operations[Symbol.asyncDispose]();
  });

  async function give(count: number, caip2 = base): Promise<void> {
    for (let given = 0; given < count; given += 1) {
      await simulated.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 1n });
    }
  }

  function jobOf(served: TestOperations, inUnit: JobContext['inUnit'] = inUnitOf(unitsOf(served.database))) {
    return followDeposits({ services: served.services, inUnit });
  }

  async function runAll(job: ReturnType<typeof jobOf>): Promise<void> {
    while (await job.run(() => undefined));
  }

  /** The keys of the recorded deposits, in order, and the position of each chain. */
  async function reported(): Promise<string[]> {
    const rows = await operations.database.orm.em
      .fork()
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select(['payload', 'app_id'])
      .where('type', '=', 'wallet.funds_deposited')
      .orderBy('sequence')
      .execute();
    expect(rows.every(({ app_id }) => app_id === operations.app.id)).toBe(true);
    return rows.map(({ payload }) => JSON.parse(payload).idempotency_key);
  }

  test('several pages are recorded, oldest first, each deposit once', async () => {
    await give(230);
    const job = jobOf(operations);
    expect([await job.run(noop), await job.run(noop), await job.run(noop), await job.run(noop)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const keys = await reported();
    expect(keys).toHaveLength(230);
    const positions = keys.map((key) => Number(key.split(':').at(-2)));
    expect(positions).toEqual([...new Set(positions)].sort((left, right) => left - right));
  });

  test('of two processes that read the same transfers, one records them', async () => {
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    try {
      for (let round = 1; round <= 5; round += 1) {
        await give(30);
        await give(30, optimism);
        await Promise.all([runAll(jobOf(operations)), runAll(jobOf(other)), runAll(jobOf(other))]);
        // The second process reads again.
        await runAll(jobOf(other));
        const keys = await reported();
        expect(keys).toHaveLength(60 * round);
        expect(new Set(keys).size).toBe(60 * round);
      }
    } finally {
      if (other !== operations) await other[Symbol.asyncDispose]();
    }
  });

  test('after a crash before the commit nothing is recorded and the transfers are read again', async () => {
    await give(3);
    const inUnit = inUnitOf(unitsOf(operations.database));
    let dying = 0;
    const dies: JobContext['inUnit'] = (work) =>
      inUnit(async (em, notes) => {
        const result = await work(em, notes);
        const written = await em.getKysely<Tables>().selectFrom('outbox_events').select('id').execute();
        if (written.length > 0) {
          dying += 1;
          throw new Error('the process ends here');
        }
        return result;
      });
    await runAll(jobOf(operations, dies));
    await runAll(jobOf(operations, dies));
    expect(dying).toBe(2);
    expect(await reported()).toEqual([]);
    await runAll(jobOf(operations));
    expect(await reported()).toHaveLength(3);
  });

  test('an unreachable chain does not delay others, and is read later', async () => {
    await give(2);
    await give(2, optimism);
    chains.broken.add(optimism);
    await runAll(jobOf(operations));
    expect(await reported()).toHaveLength(2);
    chains.broken.clear();
    await runAll(jobOf(operations));
    expect(await reported()).toHaveLength(4);
  });

  test('a chain without a transfer list is skipped', async () => {
    await give(1);
    const { transfersAfter: _, ...unlisted } = simulated.find(base)!;
    const services = {
      ...operations.services,
      chains: { ...chains, find: () => unlisted as AnyChain },
    };
    await runAll(followDeposits({ services, inUnit: inUnitOf(unitsOf(operations.database)) }));
    expect(await reported()).toEqual([]);
  });
});

const noop = () => undefined;
const kills = process.env.TEST_LONG === undefined ? 2 : 30;

/** Deposits one wei after the other until the server is killed. */
async function keepGiving(custos: ServingCustos, address: string, onGiven: () => void): Promise<void> {
  for (;;) {
    try {
      await custos.call('POST', '/_sandbox/faucet', { chain: 'base', address, raw_amount: '1' });
      onGiven();
    } catch (error) {
      if (!custos.process.killed) throw error;
      return;
    }
  }
}

test(`${kills} kills while deposits arrive: each is recorded once`, async () => {
  const data = temporaryFolder();
  let wallet: Pick<Wallet, 'id' | 'address'> | undefined;
  for (let kill = 0; kill < kills; kill += 1) {
    const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
    wallet ??= (await custos.call<Wallet>('POST', '/v1/wallets', { chain_type: 'ethereum' })).body;
    const { address } = wallet;
    const isGiven = Promise.withResolvers<void>();
    let given = 0;
    const onGiven = (): void => {
      given += 1;
      if (given === 2) isGiven.resolve();
    };
    const work = Array.from({ length: 3 }, () => keepGiving(custos, address, onGiven));
    // Even on a busy machine, some deposits arrive before the kill.
    await isGiven.promise;
    await new Promise((resolve) => setTimeout(resolve, 37 * (kill % 7)));
    await custos.stop('SIGKILL');
    await Promise.all(work);
  }
  await using custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  const { address, id } = wallet!;
  // The chain itself counts what was given.
  const last = { chain: 'base', address, raw_amount: '1' };
  const { body } = await custos.call<{ raw_balance: string }>('POST', '/_sandbox/faucet', last);
  const given = Number(body.raw_balance);
  expect(given).toBeGreaterThan(kills);
  const keys = new Set<string>();
  let count = 0;
  for (let after = 'start'; ; ) {
    const query = `type=wallet.funds_deposited&limit=100&after=${after}`;
    const { body: page } = await custos.call<{
      data: { payload: { wallet_id: string; amount: string; idempotency_key: string } }[];
      cursor: string;
    }>('GET', `/_sandbox/events?${query}`);
    if (page.data.length === 0) break;
    for (const { payload } of page.data) {
      expect(payload).toMatchObject({ wallet_id: id, amount: '1' });
      keys.add(payload.idempotency_key);
      count += 1;
    }
    after = page.cursor;
  }
  expect({ count, keys: keys.size }).toEqual({ count: given, keys: given });
}, 300_000);
