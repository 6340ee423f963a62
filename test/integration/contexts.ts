import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  noCardIssuers,
  noChains,
  noCustodians,
  noFiatProviders,
  noPrices,
} from '../../src/adapters/outside-services.ts';
import { makeIds, systemEntropy } from '../../src/adapters/runtime.ts';
import { publishedSafeguards } from '../../src/domain/base/safeguards/safeguards.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import { createNotes, type OperationContext, type Services } from '../../src/ports/operation-context.ts';
import type { Database } from '../../src/storage/open-database.ts';
import { noWebhooks } from '../support/no-webhooks.ts';
import { unsignedProof } from '../support/unsigned-proof.ts';

export const startMs = Date.UTC(2026, 0, 1);

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** The ports of a server, without a network. */
export const services: Services = {
  processId: 'test',
  clock: { now: () => startMs },
  machine: { now: () => startMs },
  entropy: systemEntropy,
  ids: makeIds(systemEntropy),
  keyStore: createKeyStore({
    masterKeys: [localMasterKey('test', systemEntropy.bytes(32), systemEntropy)],
    entropy: systemEntropy,
  }),
  log: silent,
  jwks: { keys: () => Promise.reject(new Error('no network')) },
  chains: noChains,
  prices: noPrices,
  custodians: noCustodians,
  fiatProviders: noFiatProviders,
  cardIssuers: noCardIssuers,
  uses: { add: () => assert.fail('no wallet is used here'), flush: async () => undefined },
  diagnostics: false,
  safeguards: publishedSafeguards,
  prefix: 'service',
  webhooks: noWebhooks,
};

/** An unsigned request of an app, in its own unit of work. */
export function contextOf(em: SqlEntityManager, appId: string, nowMs = startMs): OperationContext {
  const notes = createNotes();
  return {
    ...services,
    em,
    notes,
    app: { id: appId },
    nowMs,
    requestId: 'test',
    proof: unsignedProof,
    afterCommit: () => assert.fail('nothing is done after this commit'),
    afterRefusal: () => undefined,
    noteSignatures: () => undefined,
    inUnit: (work) => work(em, notes),
  };
}

/** Runs a verb like a writing request: in one transaction. */
export function inTransaction<T>(
  { orm }: Pick<Database, 'orm'>,
  work: (context: OperationContext) => Promise<T>,
  { appId = 'acme', nowMs = startMs }: { appId?: string; nowMs?: number } = {},
): Promise<T> {
  return orm.em.fork().transactional((em) => work(contextOf(em as SqlEntityManager, appId, nowMs)));
}
