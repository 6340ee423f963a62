import type { BenchCase } from '../bench-case.ts';
import { requireContract } from '../measure/ask.ts';
import { cpuOf, type Entry, measureServers } from '../measure/rounds.ts';
import { atLeast, atMost, roundsResult } from '../report.ts';
import { createPolicyBody, createUserBody, getRequest, postRequest } from '../requests.ts';
import { launchCustos } from '../servers/custos.ts';
import { launchOwn, launchPrism } from '../servers/launch.ts';

const operations = ['createUser', 'getWallet', 'createPolicy'] as const;
const names = { bare: 'bare', pipeline: 'custos pipeline', mock: 'custos mock', prism: 'prism mock' };

const starts: readonly [name: string, start: Entry['start']][] = [
  [names.bare, () => launchOwn('bare.ts')],
  ['fastify', () => launchOwn('fastify.ts')],
  [names.pipeline, () => launchOwn('pipeline.ts')],
  [names.mock, () => launchCustos({ command: 'mock' })],
  [names.prism, launchPrism],
];

/** Complete requests with handlers that store nothing: the cost of HTTP, routing and validation. */
export const stateless: BenchCase = {
  about: 'requests whose handler stores nothing: bare node:http, fastify, Prism, Custos (G1, G3)',
  needsPeers: true,
  async run(bench) {
    const entries = starts.map(([name, start]): Entry => {
      const areExamples = name === names.prism || name === names.mock;
      return {
        name,
        start,
        async requestsTo(server) {
          const requests = {
            createUser: [postRequest(server, '/v1/users', createUserBody)],
            getWallet: [getRequest(server, '/v1/wallets/fmfdj6yqly31huorjqzq38zc')],
            createPolicy: [postRequest(server, '/v1/policies', createPolicyBody)],
          };
          for (const id of operations) if (!areExamples) await requireContract(server, id, requests[id][0]!);
          return requests;
        },
      };
    });
    const { measured } = await measureServers(bench, entries);
    const goals = operations.flatMap((id) => {
      const ratio = (one: string, other: string): number =>
        cpuOf(measured, one, id) / cpuOf(measured, other, id);
      return [
        atMost('G1', `${id}: pipeline to bare`, ratio(names.pipeline, names.bare), 1.5),
        atLeast('G3', `${id}: Prism to pipeline`, ratio(names.prism, names.pipeline), 15),
        atLeast('G3', `${id}: Prism to custos mock`, ratio(names.prism, names.mock), 15),
      ];
    });
    return roundsResult(measured, (id) => `${id}, nothing stored`, goals);
  },
};
