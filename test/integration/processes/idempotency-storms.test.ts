import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { figureSize, noteFigure } from '../../figures/figure.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

// Clients that lost their patience send the same request again and again, at once. On PostgreSQL to two processes.
const storms = figureSize({ short: 4, long: 1000 });
const REQUESTS = 50;
/** What published clients match. */
const refusals = /still in progress|reused for a request with a new body/;

describe.each(databaseKinds)('on %s', (kind) => {
  let processes: TestOperations[];
  beforeAll(async () => {
    const first = await openOperations(kind);
    processes = kind === 'postgres' ? [first, await first.anotherProcess()] : [first];
  });
  afterAll(async () => {
    for (const each of processes.toReversed()) await each[Symbol.asyncDispose]();
  });

  const count = async (sql: string): Promise<number> => {
    const rows = await processes[0]!.database.orm.em.fork().execute<{ count: number | string }[]>(sql);
    return Number(rows[0]!.count);
  };

  test(`${storms} storms of ${REQUESTS} requests have one effect each`, { timeout: 3_600_000 }, async () => {
    const before = await count('select count(*) as count from wallets');
    let [answered, inProgress, refused] = [0, 0, 0];
    for (let storm = 0; storm < storms; storm += 1) {
      const send = (body: object, at = 0) =>
        processes[at % processes.length]!.run('createWallet', { body, idempotencyKey: `storm ${storm}` });
      const body = { chain_type: 'ethereum' };
      // A tenth of them say something else under the same key.
      const requests = Array.from({ length: REQUESTS }, (_, at) =>
        at % 10 === 9
          ? { isSame: false, answer: send({ ...body, display_name: `other ${at}` }, at) }
          : { isSame: true, answer: send(body, at) },
      );
      const effects = new Set<string>();
      const texts = new Map<string, boolean>();
      for (const { isSame, answer } of requests) {
        const { status, body: said } = await answer;
        if (status === 200) {
          answered += 1;
          effects.add((said as Wallet).id);
          texts.set(JSON.stringify(said), isSame);
        } else {
          const { error = '' } = said as { error?: string };
          expect({ status, error }).toEqual({ status: 400, error: expect.stringMatching(refusals) });
          if (error.includes('in progress')) inProgress += 1;
          else refused += 1;
        }
      }
      expect([effects.size, texts.size], `storm ${storm}`).toEqual([1, 1]);
      // Afterwards it is the same answer, and only to the same request.
      const wasSame = [...texts.values()][0]!;
      const again = await send(body);
      const other = await send({ ...body, display_name: 'later' });
      if (wasSame) expect(JSON.stringify(again.body)).toBe([...texts.keys()][0]);
      if (wasSame) expect(other.body).toMatchObject({ error: expect.stringContaining('a new body') });
      else expect(again.body).toMatchObject({ error: expect.stringContaining('a new body') });
    }
    const made = (await count('select count(*) as count from wallets')) - before;
    expect(made).toBe(storms);
    noteFigure({
      database: kind,
      storms,
      requests: storms * REQUESTS,
      effects: made,
      answered,
      inProgress,
      refused,
    });
  });
});
