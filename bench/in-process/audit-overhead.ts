import { randomBytes, randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import {
  noCardIssuers,
  noChains,
  noCustodians,
  noFiatProviders,
  noPrices,
} from '../../src/adapters/absent.ts';
import { silentLog } from '../../src/adapters/log.ts';
import { makeIds, systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import { strictSafeguards } from '../../src/compose/safeguards.ts';
import { createApp } from '../../src/domain/access/apps/app.ts';
import { createAuditTrail } from '../../src/domain/base/audit/audit-log.ts';
import { idempotencyKeys } from '../../src/domain/base/idempotency/idempotency-keys.ts';
import { singleUseSignatures } from '../../src/domain/base/replay-protection/single-use-signatures.ts';
import { entities } from '../../src/domain/tables.ts';
import { createUseLog } from '../../src/domain/wallets/wallet-uses/use-log.ts';
import { operations } from '../../src/generated/operations.ts';
import { registry } from '../../src/generated/registry.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import { sequenceAudit } from '../../src/jobs/sequence-audit.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import type { OperationContext, Services } from '../../src/ports/operation-context.ts';
import type { RequestState } from '../../src/server/request-state.ts';
import { bindHandlers } from '../../src/server/run-operation.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { createResponseCheck } from '../../src/server/validation-issues.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { measureOnce, reportProgress } from './storage-rounds.ts';

// What the audit log adds to creating a wallet, without HTTP: the record, its place in the Merkle tree and the signed
// checkpoints. On the same database, in turns of which every other one has no log, so both see the same tables.

/** CPU µs per wallet of this process and wallets per second, by turn. */
export interface AuditMeasured {
  readonly database: 'sqlite' | 'postgres';
  readonly without: { readonly cpuMicroseconds: number; readonly perSecond: number }[];
  readonly audited: { readonly cpuMicroseconds: number; readonly perSecond: number }[];
}

const POOL = 8;
const WALLETS = 800;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, url: { type: 'string' } },
});
const { url } = values;
const database = await openDatabase(
  entities,
  url === undefined ? { kind: 'sqlite', file: ':memory:' } : { kind: 'postgres', url, poolSize: POOL },
);
const services = servicesOn(database);
const { app } = await inUnitOf(unitsOf(database))((em) =>
  createApp({ ...services, em: em as OperationContext['em'], nowMs: Date.now() }, { name: 'Bench' }),
);
const openUnit = unitsOf(database);
const audit = createAuditTrail({
  ...{ keyStore: services.keyStore, entropy: services.entropy, inUnit: inUnitOf(openUnit) },
  reader: () => database.orm.em.fork(),
});
await audit.open();
const sequence = sequenceAudit({
  services,
  inUnit: inUnitOf(openUnit),
  openReader: async () => database.orm.em.fork(),
});
const measured: AuditMeasured = {
  database: url === undefined ? 'sqlite' : 'postgres',
  without: [],
  audited: [],
};
for (let round = 0; round <= Number(values.rounds) * 3; round += 1) {
  reportProgress(round === 0 ? 'warming up' : `turn ${round} of ${Number(values.rounds) * 3}`);
  const without = await measureOnce(createWallets(undefined), WALLETS, POOL);
  const audited = await measureOnce(createWallets(audit), WALLETS, POOL);
  if (round === 0) continue;
  measured.without.push(without);
  measured.audited.push(audited);
}
await database.close();
process.send?.(measured);
process.disconnect?.();

/** Creates wallets as requests do; the sequencer runs beside them, as often as in a server at this pace. */
function createWallets(log: typeof audit | undefined): (at: number) => Promise<void> {
  const { createWallet } = bindHandlers(registry, {
    ...{ services, openUnit, audit: log },
    ...{ idempotency: idempotencyKeys(), singleUse: singleUseSignatures(services.safeguards) },
    check: createResponseCheck({ mode: 'always', validators: responseValidators, log: silentLog }),
  });
  return async (at) => {
    await createWallet!(undefined, stateOf());
    // At 1,600 wallets a second, two batches a second.
    if (log !== undefined && at === WALLETS - 1) while (await sequence.run(() => undefined));
  };
}

function stateOf(): RequestState {
  const body = { chain_type: 'ethereum' };
  return {
    ...{ id: randomUUID(), response: { destroyed: false }, headers: { authorization: 'Basic' } },
    ...{ method: 'POST', target: '/v1/wallets', nowMs: Date.now(), app, query: {} },
    ...{ route: { operation: operations.createWallet, params: {} }, effects: [] },
    ...{ body, rawBody: Buffer.from(JSON.stringify(body)) },
    proof: { signatures: [], canonicalPayloads: () => [] },
  } as unknown as RequestState;
}

function servicesOn(onDatabase: Database): Services {
  const masterKeys = [localMasterKey('bench', randomBytes(32), systemEntropy)] as const;
  return {
    processId: 'bench',
    ...{ clock: systemClock, machine: systemClock, entropy: systemEntropy, ids: makeIds(systemEntropy) },
    keyStore: createKeyStore({ masterKeys, entropy: systemEntropy, keyEntropy: systemEntropy }),
    ...{ log: silentLog, jwks: { keys: async () => [] }, chains: noChains, prices: noPrices },
    ...{ custodians: noCustodians, fiatProviders: noFiatProviders, cardIssuers: noCardIssuers },
    uses: createUseLog({ inUnit: inUnitOf(unitsOf(onDatabase)), log: silentLog }),
    ...{ diagnostics: false, safeguards: strictSafeguards, prefix: 'service' },
    // Nothing is delivered here.
    webhooks: undefined as never,
  };
}
