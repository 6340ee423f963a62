import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { request } from 'undici';
import type { Bench, BenchCase } from '../bench-case.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { atMost } from '../report.ts';
import { postRequest } from '../requests.ts';
import { launchOwn, type RunningServer, root } from '../servers/launch.ts';
import { worstBodies } from '../worst-bodies.ts';
import { type Places, preparePlaces, signedByStrangers } from '../worst-places.ts';

const LIMIT_MS = 50;
// All requests take about half an hour.
const isLong = process.env.TEST_LONG === '1';
const LONGEST_MS = 4 * 60_000;
const AGAIN = 40;
const REPETITIONS = 4;
// Rows of the table, if no more requests miss the limit.
const WORST = 10;
// A delay is seen only once the loop has turned again.
const SETTLE_MS = 3;

interface Case {
  readonly name: string;
  readonly request: () => LoadRequest;
}

interface Seen {
  readonly sent: Case;
  readonly status: number;
  ms: number;
}

/** The longest time for which one request holds the event loop, over all operations with the worst bodies found. */
export const loopSweep: BenchCase = {
  about: 'longest block of the event loop by one request of up to 1 MB',
  needsPeers: false,
  async run(bench) {
    const server = await launchOwn('inspected-sandbox.ts');
    try {
      const places = await preparePlaces(server);
      const seen: Seen[] = [];
      const cases = spread([...casesOf(server, places)]);
      const endMs = performance.now() + LONGEST_MS;
      for (const sent of cases) {
        if (!isLong && performance.now() > endMs) break;
        seen.push(await measure(server, sent));
        if (seen.length % 500 === 0) bench.report(`${seen.length} of ${cases.length} requests`);
      }
      const worst = await confirm(server, seen, bench);
      const missed = worst.filter(({ ms }) => ms > LIMIT_MS).length;
      return {
        tables: [
          {
            title: `Longest block of the event loop, ${seen.length} of ${cases.length} requests, the worst`,
            columns: ['request', 'status', 'ms'],
            rows: worst
              .slice(0, Math.max(WORST, missed))
              .map(({ sent, status, ms }) => [sent.name, status, ms]),
          },
        ],
        goals: [
          atMost({
            id: '-',
            what: 'longest block of the event loop by one request',
            measured: worst[0]?.ms ?? 0,
            limit: LIMIT_MS,
            unit: 'ms',
          }),
        ],
      };
    } finally {
      await server.stop();
    }
  },
};

/** In another order, in which every operation and every kind of body comes early. */
function spread(cases: readonly Case[]): Case[] {
  // A prime that divides no list of this length visits every index.
  const step = cases.length % 1_009 === 0 ? 1_013 : 1_009;
  return cases.map((_, index) => cases[(index * step) % cases.length]!);
}

/** Measures the worst ones several times more: the minimum is not caused by other load on the machine. */
async function confirm(server: RunningServer, seen: Seen[], bench: Bench): Promise<Seen[]> {
  bench.report(`the worst ${AGAIN} again`);
  const worst = seen.toSorted((a, b) => b.ms - a.ms).slice(0, AGAIN);
  for (const one of worst) {
    for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
      one.ms = Math.min(one.ms, (await measure(server, one.sent)).ms);
    }
  }
  return worst.sort((a, b) => b.ms - a.ms);
}

async function measure(server: RunningServer, sent: Case): Promise<Seen> {
  await readDelay(server);
  const { method, path, headers, body } = sent.request();
  const answer = await request(server.origin + path, {
    method: method as 'POST',
    headers,
    body: body ?? null,
    headersTimeout: 600_000,
  });
  await answer.body.dump({ limit: 10_000_000 });
  await wait(SETTLE_MS);
  return { sent, status: answer.statusCode, ms: await readDelay(server) };
}

async function readDelay(server: RunningServer): Promise<number> {
  const report = once(server.child, 'message') as Promise<[{ delay: { max: number } }]>;
  server.child.send('read');
  return (await report)[0].delay.max;
}

interface DocumentOperation {
  readonly operationId: string;
  readonly requestBody?: {
    readonly content: Record<string, { readonly examples?: Record<string, { readonly value: unknown }> }>;
  };
}

/** Each operation with each of its examples made worse, unsigned, and some of them with many invalid signatures. */
function* casesOf(server: RunningServer, places: Places): Generator<Case> {
  const document = JSON.parse(readFileSync(join(root, 'openapi/openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, DocumentOperation>>;
  };
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { operationId, requestBody }] of Object.entries(operations)) {
      const media = requestBody?.content['application/json'];
      for (const [name, { value }] of Object.entries(media?.examples ?? {})) {
        const target = places.pathOf(path, value);
        for (const { what, write } of worstBodies(value)) {
          const common = { ...postRequest(server, target, {}), method: method.toUpperCase() };
          yield { name: `${operationId} (${name}) ${what}`, request: () => ({ ...common, body: write() }) };
        }
      }
    }
  }
  for (const { name, request: sent } of places.requests) yield { name, request: () => sent };
  for (const { name, request: sent } of places.signed) {
    yield { name: `${name}, 100 wrong signatures`, request: () => signedByStrangers(sent) };
  }
}
