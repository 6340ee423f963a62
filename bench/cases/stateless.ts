import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import type { LoadRequest } from '../measure/load-order.ts';
import { type Contestant, leastCpu, type Measured, measureRounds, pick } from '../measure/rounds.ts';
import { atLeast, atMost, busyOthersOf, type Goal, noiseTable, roundsTable } from '../report.ts';
import { createPolicyBody, createUserBody, getRequest, postRequest } from '../requests.ts';
import { launchCustos } from '../servers/custos.ts';
import { launchOwn, launchPrism, type RunningServer } from '../servers/launch.ts';

const operations = ['createUser', 'getWallet', 'createPolicy'] as const;
const names = {
  bare: 'bare',
  fastify: 'fastify',
  pipeline: 'custos pipeline',
  mock: 'custos mock',
  prism: 'prism mock',
};

/** Complete requests with handlers that store nothing: the cost of HTTP, routing and validation. */
export const stateless: BenchCase = {
  about: 'requests whose handler stores nothing: bare node:http, fastify, Prism, Custos (G1, G3)',
  needsPeers: true,
  async run(bench) {
    const servers: RunningServer[] = [];
    const start = async (name: string, starting: Promise<RunningServer>): Promise<Contestant> => {
      bench.report(`starting ${name}`);
      const server = await starting;
      servers.push(server);
      const requests = requestsTo(server);
      const areExamples = name === names.prism || name === names.mock;
      for (const id of operations) {
        if (!areExamples) await requireContract(server, id, requests[id][0] as LoadRequest);
      }
      return { name, server, requests };
    };
    try {
      const contestants = [
        await start(names.bare, launchOwn('bare.ts')),
        await start(names.fastify, launchOwn('fastify.ts')),
        await start(names.pipeline, launchOwn('pipeline.ts')),
        await start(names.mock, launchCustos({ command: 'mock' })),
        await start(names.prism, launchPrism()),
      ];
      return report(await measureRounds(contestants, { ...bench, connections: 16 }));
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  },
};

function requestsTo(server: RunningServer): Record<(typeof operations)[number], LoadRequest[]> {
  return {
    createUser: [postRequest(server, '/v1/users', createUserBody)],
    getWallet: [getRequest(server, '/v1/wallets/fmfdj6yqly31huorjqzq38zc')],
    createPolicy: [postRequest(server, '/v1/policies', createPolicyBody)],
  };
}

function report(measured: readonly Measured[]) {
  const cpu = (name: string, request: string): number => leastCpu(pick(measured, name, request));
  const goals: Goal[] = operations.flatMap((id) => [
    atMost({
      id: 'G1',
      what: `${id}: pipeline to bare`,
      measured: cpu(names.pipeline, id) / cpu(names.bare, id),
      limit: 1.5,
    }),
    atLeast({
      id: 'G3',
      what: `${id}: Prism to pipeline`,
      measured: cpu(names.prism, id) / cpu(names.pipeline, id),
      limit: 15,
    }),
    atLeast({
      id: 'G3',
      what: `${id}: Prism to custos mock`,
      measured: cpu(names.prism, id) / cpu(names.mock, id),
      limit: 15,
    }),
  ]);
  const tables = operations.map((id) => roundsTable(`${id}, nothing stored`, measured, id));
  return { tables: [...tables, noiseTable(measured)], goals, busyOthers: busyOthersOf(measured) };
}
