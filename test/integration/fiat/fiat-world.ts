import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { ProviderUnavailableError } from '../../../src/adapters/outside-services.ts';
import { makeIds, systemEntropy } from '../../../src/adapters/runtime.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import type { PayoutResponse, Wallet } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import { followFiatCustomers } from '../../../src/jobs/follow-fiat-customers.ts';
import { followFiatDeposits } from '../../../src/jobs/follow-fiat-deposits.ts';
import type { Job } from '../../../src/jobs/runner.ts';
import { createKeyStore } from '../../../src/keys/key-operations.ts';
import { localMasterKey } from '../../../src/keys/master-keys.ts';
import type { FiatEnvironment, FiatProvider, FiatProviders } from '../../../src/ports/fiat.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import type { FiatControls } from '../../../src/sandbox/simulated/fiat/providers.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { type DatabaseKind, reopenTestDatabase } from '../../support/databases.ts';
import { verify } from '../../support/fiat/customers.ts';
import { openOperations, operationsOn, type TestOperations } from '../../support/run-operations.ts';
import { runJobs } from '../wallet-actions/run-jobs.ts';

export const base = 'eip155:8453';
export const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
export const million = 1_000_000n;
const environment: FiatEnvironment = 'sandbox';
export const at = { provider: 'bridge', environment } as const;

/** An IBAN account; the number ends as the bank's sentinels ask. */
export const ibanAccount = (iban = 'DE89370400440532013000') => ({
  ...at,
  account_owner_name: 'Alice Example',
  currency: 'eur',
  account: { type: 'iban', account_number: iban, bic: 'COBADEFFXXX', country: 'DEU' },
});

/** What goes wrong at the moment. */
interface FiatWeather {
  /** The provider does what it is asked, and its response is lost. */
  losesAnswers: boolean;
  /** The chain cannot be reached. */
  isDeaf: boolean;
  /** A dry run reverts. */
  reverts: boolean;
  /** Jobs that follow deposits die in the middle of a transaction, or right after its commit. */
  dies: 'never' | 'before the commit' | 'after the commit';
}

/** Operations with the simulated chains, bank and identity office. */
export interface FiatWorld extends AsyncDisposable {
  readonly operations: TestOperations;
  readonly chains: SimulatedChains;
  readonly fiat: FiatControls;
  /** Replaces methods of the provider. */
  override(methods: Partial<FiatProvider>): void;
  readonly weather: FiatWeather;
  /** Advances the clock and runs what is due. */
  wait(seconds: number): Promise<void>;
  /** A verified user with a wallet that holds 1000 USDC and some ether on Base. */
  makeCustomer(): Promise<{ userId: string; wallet: Wallet }>;
  held(address: string): Promise<bigint>;
  /** The events of a wallet whose types begin with a prefix, in order. */
  events(walletId: string, prefix: string): Promise<({ type: string } & Record<string, unknown>)[]>;
  payout(
    walletId: string,
    accountId: string,
    amount?: string,
    more?: { readonly nonce?: string; readonly developer_fee_percent?: string },
  ): ReturnType<TestOperations['run']>;
  action(answer: { body: unknown }): Promise<PayoutResponse>;
  /** Closes the world for the next process. */
  keep(): Promise<KeptWorld>;
}

/** A world that was closed: one process after the other can open it. */
export interface KeptWorld {
  readonly kind: DatabaseKind;
  readonly folder: string;
  /** Of PostgreSQL. */
  readonly url: string | undefined;
  readonly app: TestOperations['app'];
  readonly nowMs: number;
}

export interface FiatWorldOptions {
  /** Where a closed world continues. */
  readonly kept?: KeptWorld;
  /** A new world that can be closed by `keep`. */
  readonly isKept?: boolean;
  /** Called before and after every commit of a change, every call of the provider and every broadcast. */
  readonly onPoint?: (name: string) => void;
}

export async function openFiatWorld(kind: DatabaseKind, options: FiatWorldOptions = {}): Promise<FiatWorld> {
  const folder = options.kept?.folder ?? (await mkdtemp(join(tmpdir(), 'fiat-')));
  const { onPoint } = options;
  const clock = { nowMs: 0 };
  const chains = openSimulatedChains({
    file: join(folder, 'chains.db'),
    clock: { now: () => clock.nowMs },
    confirmAfterMs: undefined,
  });
  const operations = await operationsIn(folder, { kind, chains, ...options });
  if (onPoint !== undefined) watchCommits(operations, onPoint);
  clock.nowMs = operations.clock.nowMs;
  const { ids } = operations.services;
  const { providers, controls } = chains.fiat({
    ids,
    prices: fixedPrices,
    supports: chains.has,
    pageOf: (token) => `https://127.0.0.1/verify/${token}`,
    environments: [environment],
  });
  let overrides: Partial<FiatProvider> = {};
  const weather: FiatWeather = { losesAnswers: false, isDeaf: false, reverts: false, dies: 'never' };
  const fiatProviders: FiatProviders = {
    find: (...place) => {
      const found = providers.find(...place);
      return (
        found && { ...lossy(onPoint === undefined ? found : watched(found, onPoint), weather), ...overrides }
      );
    },
  };
  const find = (caip2: string) => {
    const chain = chains.find(caip2);
    if (chain?.kind !== 'evm') return chain;
    const deaf = () => Promise.reject(new Error('connection refused'));
    const broadcast: typeof chain.broadcast = async (...given) => {
      onPoint?.('before broadcast');
      const answer = await (weather.isDeaf ? deaf() : chain.broadcast(...given));
      onPoint?.('after broadcast');
      return answer;
    };
    const reverts = { succeeds: false, index: 0, reason: 'reverts', message: 'paused' } as const;
    const simulate: typeof chain.simulate = async () => reverts;
    return { ...chain, broadcast, ...(weather.reverts ? { simulate } : {}) };
  };
  // As in the sandbox, whose chains list their transfers.
  Object.assign(operations.services, { chains: { find, listing: chains.used }, fiatProviders });
  const world: FiatWorld = {
    operations,
    chains,
    fiat: controls,
    weather,
    override(methods) {
      overrides = methods;
    },
    async wait(seconds) {
      const step = Math.max(10, seconds / 20);
      for (let passed = 0; passed < seconds; passed += step) {
        clock.nowMs += Math.min(step, seconds - passed) * 1000;
        operations.clock.nowMs = clock.nowMs;
        const inUnit = inUnitOf(unitsOf(operations.database));
        const { services } = operations;
        const dying = { services, inUnit: mortal(inUnit, weather) };
        await settle(followFiatDeposits(dying), weather);
        await settle(followFiatCustomers({ services, inUnit }), weather);
        await settle(followDeposits({ services, inUnit }), weather);
        await runJobs(operations);
      }
    },
    async makeCustomer() {
      const created = await operations.run('createUser', {
        body: { linked_accounts: [{ type: 'email', address: `alice-${randomUUID()}@example.com` }] },
      });
      const { id: userId } = created.body as { id: string };
      const { services, database, app } = operations;
      await verify({ services, database, fiat: controls, appId: app.id }, { type: 'user', id: userId });
      const made = await operations.run('createWallet', {
        body: { chain_type: 'ethereum', entity: { type: 'user', id: userId } },
      });
      const wallet = made.body as Wallet;
      const { address } = wallet;
      await chains.fund(base, { address, tokenAddress: null, rawAmount: 10n ** 18n });
      await chains.fund(base, { address, tokenAddress: usdc, rawAmount: 1000n * million, decimals: 6 });
      return { userId, wallet };
    },
    held: async (address) => (await chains.find(base)!.balances(address, [usdc]))[0] ?? 0n,
    async events(walletId, prefix) {
      const em = operations.database.orm.em.fork() as SqlEntityManager;
      const rows = await em
        .getKysely<Tables>()
        .selectFrom('outbox_events')
        .select(['type', 'payload'])
        .where('type', 'like', `${prefix}%`)
        .orderBy('sequence')
        .execute();
      return rows
        .map(({ type, payload }) => ({ ...(JSON.parse(payload) as Record<string, unknown>), type }))
        .filter((event) => (event as { wallet_id?: string }).wallet_id === walletId);
    },
    payout: (walletId, accountId, amount = '100', more = {}) =>
      operations.run('createFiatPayout', {
        path: { wallet_id: walletId },
        body: {
          source: { asset: 'usdc', chain: 'base', amount },
          destination: { fiat_account_id: accountId },
          nonce: `payout-${randomUUID()}`,
          ...more,
        },
      }),
    async action(answer) {
      const { id, wallet_id } = answer.body as PayoutResponse;
      const { body } = await operations.run('getWalletAction', {
        path: { wallet_id, action_id: id },
        query: { include: 'steps' },
      });
      return body as PayoutResponse;
    },
    async keep() {
      await operations[Symbol.asyncDispose]();
      await chains.close();
      return { kind, folder, url: operations.database.url, app: operations.app, nowMs: clock.nowMs };
    },
    async [Symbol.asyncDispose]() {
      await world.keep();
      await rm(folder, { recursive: true });
    },
  };
  return world;
}

/** Operations on a new database, or on one that an earlier process left. */
async function operationsIn(
  folder: string,
  { kind, chains, kept, isKept }: { kind: DatabaseKind; chains: SimulatedChains } & FiatWorldOptions,
): Promise<TestOperations> {
  const file = join(folder, 'custos.db');
  if (kept === undefined) return openOperations(kind, { chains, ...(isKept === true ? { file } : {}) });
  const { url, app, nowMs } = kept;
  const database = await reopenTestDatabase(
    url === undefined ? { kind: 'sqlite', file } : { kind: 'postgres', url, poolSize: 8 },
  );
  const keyStore = createKeyStore({
    masterKeys: [localMasterKey('test', Buffer.alloc(32, 7), systemEntropy)],
    entropy: systemEntropy,
  });
  const operations = operationsOn(database, { app, nowMs, keyStore });
  // Each process draws other ids.
  Object.assign(operations.services, { entropy: systemEntropy, ids: makeIds(systemEntropy) });
  return operations;
}

type OnPoint = (name: string) => void;

/** Points before and after every commit of a transaction that has changed something. */
function watchCommits({ database }: TestOperations, onPoint: OnPoint): void {
  const writers = new WeakSet<object>();
  let changes = 0;
  const hasWritten = async (em: SqlEntityManager): Promise<boolean> => {
    if (database.kind === 'postgres') {
      const [row] = await em.execute<{ id: string | null }[]>(
        'select pg_current_xact_id_if_assigned()::text as id',
      );
      return row!.id !== null;
    }
    const [row] = await em.execute<{ count: number }[]>('select total_changes() as count');
    const before = changes;
    changes = row!.count;
    return changes !== before;
  };
  database.orm.em.getEventManager().registerSubscriber({
    async beforeTransactionCommit({ em }) {
      if (!(await hasWritten(em as SqlEntityManager))) return;
      writers.add(em);
      onPoint('before commit');
    },
    async afterTransactionCommit({ em }) {
      if (writers.delete(em)) onPoint('after commit');
    },
  });
}

/** Every method of the provider, with a point before the call and one before its answer. */
function watched(provider: FiatProvider, onPoint: OnPoint): FiatProvider {
  const methods = Object.entries(provider).map(([name, method]) => {
    if (typeof method !== 'function' || name === 'readHint') return [name, method];
    const call = async (...given: unknown[]): Promise<unknown> => {
      onPoint(`before ${name}`);
      const answer = await (method as (...given: unknown[]) => Promise<unknown>)(...given);
      onPoint(`after ${name}`);
      return answer;
    };
    return [name, call];
  });
  return Object.fromEntries(methods);
}

type InUnit = ReturnType<typeof inUnitOf>;

/** Units of work of a process that may be killed. */
function mortal(inUnit: InUnit, weather: FiatWeather): InUnit {
  return async (work) => {
    const done = await inUnit(async (em, notes) => {
      const result = await work(em, notes);
      if (weather.dies === 'before the commit') throw new KilledError();
      return result;
    });
    if (weather.dies === 'after the commit') throw new KilledError();
    return done;
  };
}

class KilledError extends Error {}

/** Runs a job until nothing is due, or until its process is killed. */
async function settle(job: Job, { dies }: FiatWeather): Promise<void> {
  try {
    while (await job.run(() => undefined));
  } catch (error) {
    if (!(error instanceof KilledError) || dies === 'never') throw error;
  }
}

/** The provider as it is seen when its responses are lost. */
function lossy(provider: FiatProvider, weather: FiatWeather): FiatProvider {
  const lose = async <T>(answer: Promise<T>): Promise<T> => {
    const given = await answer;
    if (weather.losesAnswers) throw new ProviderUnavailableError('the answer was lost');
    return given;
  };
  return {
    ...provider,
    registerBankAccount: (order) => lose(provider.registerBankAccount(order)),
    openVirtualAccount: (order) => lose(provider.openVirtualAccount(order)),
    openPayout: (order) => lose(provider.openPayout(order)),
    payout: (id) => lose(provider.payout(id)),
    depositsAfter: (cursor) => lose(provider.depositsAfter(cursor)),
  };
}
