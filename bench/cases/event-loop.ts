import { once } from 'node:events';
import type { BenchCase } from '../bench-case.ts';
import { ask } from '../measure/ask.ts';
import { median } from '../measure/rounds.ts';
import { postRequest } from '../requests.ts';
import { launchOwn } from '../servers/launch.ts';

const BATCH = 100;
const REPETITIONS = 5;
const chainTypes = ['ethereum', 'solana', 'bitcoin-segwit', 'starknet'] as const;

interface Delay {
  readonly max: number;
  readonly p99: number;
}

/** How long everybody else waits while one request makes a hundred wallets. */
export const eventLoop: BenchCase = {
  about: 'event-loop delay while one request makes 100 wallets',
  needsPeers: false,
  async run(bench) {
    const server = await launchOwn('inspected-sandbox.ts');
    const readDelay = async (): Promise<Delay> => {
      const told = once(server.child, 'message') as Promise<[{ delay: Delay }]>;
      server.child.send('read');
      return (await told)[0].delay;
    };
    const rows: (string | number)[][] = [];
    try {
      for (const chainType of chainTypes) {
        bench.tell(`batches of ${BATCH}, ${chainType}`);
        const wallets = Array.from({ length: BATCH }, () => ({ chain_type: chainType }));
        const batch = postRequest(server, '/v1/wallets/batch', { wallets });
        await ask(server, batch);
        await readDelay();
        const [times, delays]: [number[], Delay[]] = [[], []];
        for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
          const startedMs = performance.now();
          await ask(server, batch);
          times.push(performance.now() - startedMs);
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
