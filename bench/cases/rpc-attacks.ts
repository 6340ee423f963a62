import { attacksWith, BLOCK_GAS, errorIn } from '../../test/support/evm/attacks.ts';
import type { BenchCase } from '../bench-case.ts';
import { loopDelayOf } from '../measure/loop-delay.ts';
import { atMost } from '../report.ts';
import { launchCustos } from '../servers/custos.ts';

/** How long a client that attacks by JSON-RPC can keep the server from everybody else. */
export const rpcAttacks: BenchCase = {
  about: 'the longest time that bad input over JSON-RPC holds the event loop of a sandbox',
  needsPeers: false,
  async run(bench) {
    const server = await launchCustos({
      ...{ command: 'sandbox', flags: ['--record', 'off'], before: 'bench/servers/loop-delay.ts' },
    });
    const send = async (body: string): Promise<unknown> => {
      const response = await fetch(`${server.origin}/_sandbox/rpc/base`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
      });
      return response.json();
    };
    try {
      // The first calls load and compile what the later ones use.
      for (const { body } of attacksWith(100_000)) await send(body);
      const rows: [string, number, number, string][] = [];
      for (const { name, body } of attacksWith(BLOCK_GAS)) {
        bench.report(name);
        await loopDelayOf(server.pid);
        const answer = errorIn(await send(body)) ?? 'a result';
        const { maxMs, p99Ms } = await loopDelayOf(server.pid);
        rows.push([name, maxMs, p99Ms, answer.slice(0, 60)]);
      }
      return {
        tables: [
          {
            title: 'delay of the event loop, ms',
            columns: ['attack', 'longest', 'p99', 'answer'],
            rows,
          },
        ],
        goals: rows.map(([name, measured]) => atMost('figure', `${name}: longest delay`, measured, 50, 'ms')),
      };
    } finally {
      await server.stop();
    }
  },
};
