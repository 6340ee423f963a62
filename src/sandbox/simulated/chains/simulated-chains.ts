import assert from 'node:assert/strict';
import { type LoadOnce, lazyMethods, loadOnce } from '../../../engine/load-once.ts';
import type { CardIssuers } from '../../../ports/cards.ts';
import type { AnyChain, Chains } from '../../../ports/chains.ts';
import type { Exchange } from '../../../ports/exchange.ts';
import type { FiatEnvironment, FiatProviders } from '../../../ports/fiat.ts';
import { type CardControls, simulateCardIssuers } from '../cards/issuers.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import type { FiatParts } from '../fiat/parts.ts';
import { type FiatControls, simulateFiatProviders } from '../fiat/providers.ts';
import { type MovablePrices, movablePrices } from '../prices.ts';
import type { AddressHolding, AssetBooks, AssetTerms, TransactionEffects } from './books.ts';
import { kindOf } from './chain-kinds.ts';
import { type ChainTerms, termsOf as chainTermsOf } from './chain-terms.ts';
import { type SimulatedEarn, simulateEarn } from './earn.ts';
import type { Abis } from './evm/abis.ts';
import type { Pool } from './evm/contracts/pools.ts';
import type { VaultPlan } from './evm/contracts/vaults.ts';
import type { ListedTransaction } from './evm/transaction-list.ts';
import type { ForkSource, Upstream } from './evm/upstream.ts';
import { NATIVE } from './ledger.ts';
import type { Block } from './pool.ts';
import type { RpcCall, RpcCaller, RpcOutcome } from './rpc-calls.ts';
import { steerPending, type TransactionEffect } from './steer-transaction.ts';
import type { ChainStore } from './store.ts';
import {
  type Deposit,
  type Funded,
  InvalidDepositError,
  type KnownToken,
  type Simulated,
  type World,
} from './world.ts';

/*
 * SIMULATED chains: the sandbox keeps the balances, fees, blocks and transactions itself, and executes the real signed
 * bytes. EVM chains run the bytecode of any contract. The sandbox's own contracts are compiled from contracts/. Only
 * the entry point and the accounts of sponsored operations are simulated without bytecode. Solana runs the programs
 * for accounts, tokens and memos; calls of other programs fail. With the package litesvm installed, Solana runs every
 * program. Tron runs only the contracts that this server uses.
 * PRODUCTION: the operator's nodes; a chain without a node answers 400 `not_supported`.
 * SETTING: `--rpc` for one EVM or Solana chain; `CUSTOS_RPC` for `custos serve`.
 */

/**
 * The simulated chains, and what testers can control on them. Callers may pass only chains for which `has` returns
 * true.
 */
export interface SimulatedChains extends Chains {
  has(caip2: string): boolean;
  /** Deposits an asset from the faucet. If the deposit is invalid, `fault` names the invalid member. */
  fund(
    caip2: string,
    deposit: Deposit,
  ): Promise<Funded | { readonly fault: InvalidDepositError['field']; readonly message: string }>;
  /** Returns the number of decimals of an asset, or undefined for a token that does not exist. */
  decimalsOf(caip2: string, tokenAddress: string | null): Promise<number | undefined>;
  /** Returns the symbol and the decimals of an asset, or undefined for a token that does not exist. */
  termsOf(caip2: string, tokenAddress: string | null): Promise<AssetTerms | undefined>;
  /** Returns the movements and the logs of a transaction. Both are empty until a block includes it. */
  effectsOf(caip2: string, hash: string): Promise<TransactionEffects>;
  /** Returns the ids of the chains in use: those that have received at least one call. */
  used(): Promise<readonly string[]>;
  /** Mines blocks on one chain or on every chain in use, and returns the latest block numbers. */
  mine(caip2: string | undefined, count: number): Promise<ReadonlyMap<string, bigint>>;
  /** Runs a JSON-RPC method as a node of the chain would, on EVM chains and Solana. */
  rpc(caip2: string, call: RpcCall, caller: RpcCaller): Promise<RpcOutcome>;
  /**
   * Changes the outcome of a pending transaction. Returns false if no transaction with this hash is waiting for its
   * first block.
   */
  steer(caip2: string, hash: string, effect: TransactionEffect): Promise<boolean>;
  head(caip2: string): Promise<Block & Pick<ChainTerms, 'blockMs' | 'finalityBlocks'>>;
  /** Returns the included transactions of an EVM chain or a Solana chain, newest first. */
  transactions(
    caip2: string,
    page: { limit: number; before: string | undefined },
  ): Promise<readonly (ListedTransaction & Pick<TransactionEffects, 'movements'>)[]>;
  /** Returns the interfaces of smart contracts that users have uploaded. */
  abis(): Promise<Pick<Abis, 'list' | 'put' | 'remove' | 'call' | 'functionName'>>;
  /** Returns the sum of an asset over all accounts, including fees. */
  total(caip2: string, tokenAddress: string | null): Promise<bigint>;
  /** Returns the books of every asset on the EVM, Solana and Tron chains in use. */
  books(): Promise<readonly AssetBooks[]>;
  /**
   * Returns the pools of simulated EVM chains, of one chain or of all chains in use. With the hash of a transaction,
   * only the pools in which it traded, in order.
   */
  pools(query: {
    readonly caip2: string | undefined;
    readonly hash: string | undefined;
  }): Promise<readonly (Pool & { readonly caip2: string })[]>;
  /** Returns the balances of addresses in assets that have a price, on the EVM, Solana and Tron chains in use. */
  holdings(addresses: readonly string[]): Promise<readonly AddressHolding[]>;
  /** Controls the vaults and rewards of simulated EVM chains. */
  readonly earn: SimulatedEarn;
  /** Creates an exchange for assets on the simulated chains that `supports` accepts. */
  exchange(options: ExchangeOptions): Exchange;
  /** Creates a bank and identity office whose money moves on the simulated chains that `supports` accepts. */
  fiat(options: FiatOptions): { providers: FiatProviders; controls: FiatControls };
  /** Creates card issuers whose cards spend from wallets on the simulated chains that `supports` accepts. */
  cards(options: CardOptions): { issuers: CardIssuers; controls: CardControls };
  readonly prices: MovablePrices;
  /** Deletes all state. */
  reset(): Promise<void>;
  /** Returns the whole state, or undefined if there is none. */
  image(): Promise<Buffer | undefined>;
  /** Replaces the state. */
  load(image: Buffer | undefined): Promise<void>;
  close(): Promise<void>;
}

interface ExchangeOptions extends Pick<ExchangeParts, 'ids' | 'prices'> {
  supports(caip2: string): boolean;
}

interface FiatOptions extends ExchangeOptions, Pick<FiatParts, 'pageOf'> {
  readonly environments: readonly FiatEnvironment[];
}

interface CardOptions extends FiatOptions {
  /** See `CardParts`. The secret changes when a snapshot of another sandbox is loaded. */
  secret(): Uint8Array;
}

interface SimulatedChainsOptions
  extends Omit<World, 'store' | 'knownTokens' | 'nativeSymbol' | 'plannedVaults' | 'abis'> {
  /** The path of the chains' file, or `:memory:`. */
  readonly file: string;
  /** The initial state of chains in memory. */
  readonly image?: Buffer | undefined;
  knownTokens?: World['knownTokens'];
  /** CHOICE: the symbol is `eth` if this returns undefined. */
  nativeSymbol?(caip2: string): string | undefined;
  /** The EVM chains that fork real ones, each at most once. */
  readonly forks?: readonly ForkSource[] | undefined;
  /** The folder in which the state of real chains is stored. */
  readonly forkFolder?: string | undefined;
}

/**
 * Opens the simulated chains of all supported namespaces. The first call opens the file, and the first call for a
 * chain creates it. The file is independent of the server's database, so calls inside its transactions are safe.
 */
export function openSimulatedChains(options: SimulatedChainsOptions): SimulatedChains {
  const {
    file,
    clock,
    log,
    confirmAfterMs,
    drawFault,
    liteSvm,
    knownTokens = () => [],
    forks = [],
  } = options;
  const isForked = (caip2: string): boolean => forks.some((fork) => fork.caip2 === caip2);
  const chains = new Map<string, { chain: AnyChain; make: LoadOnce<Simulated> }>();
  const planned = new Map<string, VaultPlan>();
  let tokenList: readonly KnownToken[] | undefined;
  const tokens = (): readonly KnownToken[] => {
    tokenList ??= knownTokens();
    return tokenList;
  };
  const assetNames = {
    knownTokens: tokens,
    nativeSymbol: (caip2: string): string => options.nativeSymbol?.(caip2) ?? 'eth',
  };
  const open = loadOnce(async (): Promise<ChainStore> => {
    const { openChainStore } = await import('./store.ts');
    return openChainStore(file, options.image);
  });

  const abis = loadOnce(async (): Promise<Abis> => {
    const [store, { makeAbis }] = await Promise.all([open(), import('./evm/abis.ts')]);
    return makeAbis(store);
  });

  /** Returns the real chain that a chain forks, or undefined if it forks none. */
  async function upstreamOf(store: ChainStore, caip2: string): Promise<Upstream | undefined> {
    const source = forks.find((fork) => fork.caip2 === caip2);
    if (source === undefined) return undefined;
    assert(options.forkFolder, 'expected a folder for the state of real chains');
    const [{ openUpstream }, { forkBlockOf }] = await Promise.all([
      import('./evm/upstream.ts'),
      import('./evm/parts.ts'),
    ]);
    return openUpstream(source, { folder: options.forkFolder, begun: forkBlockOf(store, caip2) });
  }

  function get(caip2: string) {
    const known = chains.get(caip2);
    if (known !== undefined) return known;
    const kind = kindOf(caip2);
    if (kind === undefined) return undefined;
    const make = loadOnce(async (): Promise<Simulated> => {
      const [store, simulate] = await Promise.all([open(), kind.load()]);
      const upstream = await upstreamOf(store, caip2);
      const plannedVaults = (named: string) =>
        [...planned].filter(([key]) => key.startsWith(`${named} `)).map(([, plan]) => plan);
      const named = { ...assetNames, plannedVaults, abis };
      const common = { store, clock, log, confirmAfterMs, drawFault, liteSvm, ...named };
      return simulate(common, caip2, upstream);
    });
    const entry = { chain: kind.proxy(caip2, make), make };
    chains.set(caip2, entry);
    return entry;
  }

  function simulatedOf(caip2: string): Promise<Simulated> {
    const entry = get(caip2);
    assert(entry, `expected a simulated chain, got \`${caip2}\``);
    return entry.make();
  }

  /** Returns the chain once it has processed all due blocks. */
  async function caughtUp(caip2: string): Promise<Simulated> {
    const chain = await simulatedOf(caip2);
    await chain.catchUp();
    return chain;
  }

  // Returns undefined for an in-memory store that was never opened, because it is empty.
  const begun = async (): Promise<ChainStore | undefined> =>
    open.begun() === undefined && file === ':memory:' && options.image === undefined ? undefined : open();
  const used = async (): Promise<readonly string[]> => {
    const rows = (await begun())?.all<{ caip2: string }>('select caip2 from chains order by caip2') ?? [];
    return rows.map(({ caip2 }) => caip2);
  };

  return {
    find: (caip2) => get(caip2)?.chain,
    used,
    has: (caip2) => kindOf(caip2) !== undefined,
    async fund(caip2, deposit) {
      const [chain, store] = [await simulatedOf(caip2), await open()];
      try {
        await chain.catchUp();
        if (chain.fundContinued !== undefined) return await chain.fundContinued(deposit);
        return store.atomically(() => chain.fund(deposit));
      } catch (error) {
        return faultOf(error);
      }
    },
    decimalsOf: async (caip2, tokenAddress) => (await simulatedOf(caip2)).decimalsOf(tokenAddress),
    async termsOf(caip2, tokenAddress) {
      const [store, chain, { termsOf }] = await Promise.all([
        open(),
        simulatedOf(caip2),
        import('./books.ts'),
      ]);
      return termsOf({ store, ...assetNames }, chain, tokenAddress);
    },
    async effectsOf(caip2, hash) {
      const [store, chain, { effectsOf }] = await Promise.all([
        open(),
        caughtUp(caip2),
        import('./books.ts'),
      ]);
      return effectsOf(store, chain, { hash, abis: chain.evm && (await abis()) });
    },
    async mine(caip2, count) {
      const named = caip2 === undefined ? await used() : [caip2];
      const heights = new Map<string, bigint>();
      for (const name of named) {
        const { number } = await (await simulatedOf(name)).mine(count);
        heights.set(name, BigInt(number));
      }
      return heights;
    },
    async rpc(caip2, call, caller) {
      const { rpc } = await simulatedOf(caip2);
      assert(rpc, `expected an EVM or Solana chain, got \`${caip2}\``);
      return rpc(call, caller);
    },
    async steer(caip2, hash, effect) {
      const [store] = [await open(), await caughtUp(caip2)];
      return store.atomically(() => steerPending(store, caip2, { hash, effect }));
    },
    head: async (caip2) => ({ ...(await caughtUp(caip2)).head(), ...chainTermsOf(caip2) }),
    async transactions(caip2, page) {
      const [store, { evm, solana }] = [await open(), await caughtUp(caip2)];
      const listed =
        solana === undefined
          ? (await import('./evm/transaction-list.ts')).listTransactions(evm!, await abis(), page)
          : (await import('./solana/transaction-list.ts')).listSolanaTransactions(solana, page);
      const [found, { movementsByHash }] = await Promise.all([listed, import('./books.ts')]);
      const movements = movementsByHash(
        store,
        caip2,
        found.map(({ hash }) => hash),
      );
      return found.map((each) => ({ ...each, movements: movements.get(each.hash) ?? [] }));
    },
    abis,
    total: async (caip2, tokenAddress) => (await simulatedOf(caip2)).ledger.total(assetOf(tokenAddress)),
    async books() {
      const listed = (await used()).filter(
        // On a fork of a real chain, it is not known which accounts exist.
        (caip2) => /^(eip155|solana|tron):/.test(caip2) && !isForked(caip2),
      );
      if (listed.length === 0) return [];
      const [store, { booksOf }] = await Promise.all([open(), import('./books.ts')]);
      return (
        await Promise.all(
          listed.map(async (caip2) => booksOf({ store, ...assetNames }, await simulatedOf(caip2))),
        )
      ).flat();
    },
    async pools({ caip2: named, hash }) {
      // CHOICE: the pools of a real chain are left out. There are hundreds of thousands, and reading each takes a call.
      const listed = (named === undefined ? await used() : [named]).filter(
        (caip2) => caip2.startsWith('eip155:') && !isForked(caip2),
      );
      if (listed.length === 0) return [];
      const { poolsOn } = await import('./evm/contracts/pools.ts');
      const lists = await Promise.all(
        listed.map(async (caip2) =>
          poolsOn((await caughtUp(caip2)).evm!.state, hash).map((pool) => ({ ...pool, caip2 })),
        ),
      );
      return lists.flat();
    },
    async holdings(addresses) {
      const listed = (await used()).filter((caip2) => /^(eip155|solana|tron):/.test(caip2));
      if (listed.length === 0 || addresses.length === 0) return [];
      const [store, { holdingsOf }] = await Promise.all([open(), import('./books.ts')]);
      const lists = await Promise.all(
        listed.map(async (caip2) => holdingsOf({ store, ...assetNames }, await caughtUp(caip2), addresses)),
      );
      return lists.flat();
    },
    earn: simulateEarn({
      ...{ open, planned, chain: caughtUp },
      has: (caip2) => kindOf(caip2)?.isEvm === true && !isForked(caip2),
    }),
    exchange({ ids, prices, supports }) {
      const chain = async (caip2: string) => (supports(caip2) ? caughtUp(caip2) : undefined);
      const make = loadOnce(async (): Promise<Exchange> => {
        const [store, { simulateExchange }] = await Promise.all([open(), import('../exchange/exchange.ts')]);
        return simulateExchange({ clock, ids, prices, store, chain });
      });
      return lazyMethods(make)('quote', 'statusOf');
    },
    fiat({ ids, prices, supports, pageOf, environments }) {
      const chain = async (caip2: string) => (supports(caip2) ? caughtUp(caip2) : undefined);
      const parts = async () => ({ clock, ids, prices, chain, pageOf, store: await open() });
      return simulateFiatProviders(parts, environments);
    },
    cards({ ids, prices, supports, pageOf, environments, secret }) {
      const chain = async (caip2: string) => (supports(caip2) ? caughtUp(caip2) : undefined);
      const parts = async () => ({
        ...{ clock, ids, prices, chain, pageOf },
        ...{ secret: secret(), store: await open() },
      });
      return simulateCardIssuers(parts, environments);
    },
    prices: movablePrices(begun, open),
    // The reset opens the file if necessary, because it may contain chains of an earlier start.
    reset: async () => (await open()).reset(),
    image: async () => (await begun())?.image(),
    async load(image) {
      if (image === undefined) (await begun())?.reset();
      else await (await open()).load(image);
      for (const { make } of chains.values()) if (make.begun() !== undefined) (await make()).prepare?.();
    },
    async close() {
      for (const { make } of chains.values()) {
        if (make.begun() !== undefined) (await make.begun())?.close?.();
      }
      (await open.begun())?.close();
    },
  };
}

function faultOf(error: unknown): { fault: InvalidDepositError['field']; message: string } {
  if (!(error instanceof InvalidDepositError)) throw error;
  return { fault: error.field, message: error.message };
}

function assetOf(tokenAddress: string | null): string {
  if (tokenAddress === null) return NATIVE;
  return tokenAddress.startsWith('0x') ? tokenAddress.toLowerCase() : tokenAddress;
}
