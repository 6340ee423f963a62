import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { WalletBatchCreateResponse } from '../../src/generated/schemas.ts';
import type { BenchCase } from '../bench-case.ts';
import { ask } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { median } from '../measure/rounds.ts';
import { postRequest } from '../requests.ts';
import { type Address, launchOwn } from '../servers/launch.ts';

const BATCH = 100;
const REPETITIONS = 5;
const chainTypes = ['ethereum', 'solana'] as const;
// A delay is measured only when the loop has continued.
const SETTLE_MS = 30;

interface Delay {
  readonly max: number;
  readonly p99: number;
}

/** How long all other requests wait while one request creates a hundred wallets. */
export const eventLoop: BenchCase = {
  about: 'event-loop delay while one request makes 100 wallets',
  needsPeers: false,
  async run(bench) {
    const server = await launchOwn('inspected-sandbox.ts');
    const readDelay = async (): Promise<Delay> => {
      const reply = once(server.child, 'message') as Promise<[{ delay: Delay }]>;
      server.child.send('read');
      return (await reply)[0].delay;
    };
    const rows: (string | number)[][] = [];
    try {
      for (const chainType of chainTypes) {
        bench.report(`batches of ${BATCH}, ${chainType}`);
        const wallets = Array.from({ length: BATCH }, () => ({ chain_type: chainType }));
        const batch = postRequest(server, '/v1/wallets/batch', { wallets });
        await makeAll(server, batch);
        await readDelay();
        const [times, delays]: [number[], Delay[]] = [[], []];
        for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
          const startedMs = performance.now();
          await makeAll(server, batch);
          times.push(performance.now() - startedMs);
          await wait(SETTLE_MS);
          delays.push(await readDelay());
        }
        const longest = delays.map(({ max }) => max);
        rows.push([chainType, median(times), Math.min(...longest), median(longest), Math.max(...longest)]);
      }
    } finally {
      await server.stop();
    }
    return {
      tables: [
        {
          title: `POST /v1/wallets/batch with ${BATCH} wallets: longest delay of the event loop, ms`,
          columns: ['chain type', 'whole request ms', 'least', 'median', 'most'],
          rows,
        },
      ],
      goals: [],
    };
  },
};

/** A batch is answered with 200 even if wallets in it fail. */
async function makeAll(address: Address, batch: LoadRequest): Promise<void> {
  const { results } = await ask<WalletBatchCreateResponse>(address, batch);
  if (results.length !== BATCH || results.some(({ success }) => !success)) {
    throw new Error(`a batch was not made whole: ${JSON.stringify(results[0])}`);
  }
}
