import assert from 'node:assert/strict';
import { lazyMethods } from '../../adapters/lazy-methods.ts';
import type {
  AnyChain,
  Bundler,
  Chains,
  EvmChain,
  PlainChain,
  SolanaChain,
  TronChain,
} from '../../ports/chains.ts';
import type { Exchange } from '../../ports/exchange.ts';
import type { ExchangeParts } from '../exchange/exchange.ts';
import { NATIVE } from './ledger.ts';
import { FEE_PAYER_ADDRESS, PAYMASTER_ADDRESS, tempoChains } from './sponsors.ts';
import type { ChainStore } from './store.ts';
import {
  type Deposit,
  type Funded,
  InvalidDepositError,
  type KnownToken,
  type Simulated,
  type World,
} from './world.ts';

/** Every simulated chain, and what a tester does with them. Only chains that `has` knows may be named. */
export interface SimulatedChains extends Chains {
  has(caip2: string): boolean;
  /** Gives out an asset, or says which member of the deposit the chain cannot take. */
  fund(
    caip2: string,
    deposit: Deposit,
  ): Promise<Funded | { readonly fault: InvalidDepositError['field']; readonly message: string }>;
  /** Decimals of a token, or of the native asset; undefined: never heard of. */
  decimalsOf(caip2: string, tokenAddress: string | null): Promise<number | undefined>;
  /** Ids of the chains that anything happened on, or that anybody asked. */
  used(): Promise<readonly string[]>;
  /** Makes blocks now, on one chain or on every chain that was used. The newest height of each. */
  mine(caip2: string | undefined, count: number): Promise<ReadonlyMap<string, bigint>>;
  /** Sum of an asset over every account, the paid fees included. */
  total(caip2: string, tokenAddress: string | null): Promise<bigint>;
  /** Exchanges assets between those chains that `deals` lets through, which must be simulated. */
  exchange(options: ExchangeOptions): Exchange;
  /** Back to empty chains. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

interface ExchangeOptions extends Pick<ExchangeParts, 'ids' | 'prices'> {
  deals(caip2: string): boolean;
}

interface SimulatedChainsOptions extends Omit<World, 'store' | 'knownTokens'> {
  /** Path of the file that holds the chains, or `:memory:`. */
  readonly file: string;
  knownTokens?: World['knownTokens'];
}

/** How the chains of one namespace are simulated. What they are made of is loaded when one of them is first asked. */
interface Kind {
  /** What the references of the namespace look like (CAIP-2). */
  readonly reference: RegExp;
  readonly load: () => Promise<(world: World, caip2: string) => Simulated>;
  /** The chain whose every answer waits for `make`. */
  readonly face: (caip2: string, make: () => Promise<Simulated>) => AnyChain;
}

const everyChain = ['balances', 'broadcast', 'statusOf', 'transfersOf', 'transfersAfter'] as const;

const reference = /^[-_a-zA-Z0-9]{1,32}$/;

const plain: Kind = {
  reference,
  load: async () => (await import('./plain/chain.ts')).simulatePlainly,
  face: (caip2, make) => ({ kind: 'plain', caip2, ...lazyMethods(chainOf<PlainChain>(make))(...everyChain) }),
};

// CHOICE: chain types without a registered CAIP-2 namespace are their own.
const kinds: Readonly<Record<string, Kind>> = {
  aptos: plain,
  bip122: plain,
  cosmos: plain,
  movement: plain,
  near: plain,
  pearl: plain,
  starknet: plain,
  stellar: plain,
  sui: plain,
  ton: plain,
  xrpl: plain,
  eip155: {
    reference: /^[1-9]\d{0,15}$/,
    load: async () => (await import('./evm/chain.ts')).simulateEvm,
    face: (caip2, make) => ({
      kind: 'evm',
      caip2,
      chainId: BigInt(caip2.slice('eip155:'.length)),
      ...lazyMethods(chainOf<EvmChain>(make))(...everyChain, 'nonce', 'fees', 'simulate', 'read', 'code'),
      ...(tempoChains.has(caip2) ? {} : { bundler: bundlerFace(make) }),
    }),
  },
  tron: {
    reference,
    load: async () => (await import('./tron/chain.ts')).simulateTron,
    face: (caip2, make) => ({
      kind: 'tron',
      caip2,
      ...lazyMethods(chainOf<TronChain>(make))(...everyChain, 'referenceBlock', 'simulate'),
    }),
  },
  spark: {
    reference: /^(mainnet|regtest)$/,
    load: async () => (await import('./spark/chain.ts')).simulateSpark,
    face: (caip2, make) => ({
      kind: 'plain',
      caip2,
      spark: lazyMethods(async () => (await chainOf<PlainChain>(make)()).spark!)(
        ...(['holdings', 'quoteDeposit', 'quoteWithdrawal'] as const),
        ...(['makeInvoice', 'readInvoice', 'quotePayment'] as const),
      ),
      ...lazyMethods(chainOf<PlainChain>(make))(...everyChain),
    }),
  },
  solana: {
    reference,
    load: async () => (await import('./solana/chain.ts')).simulateSolana,
    face: (caip2, make) => ({
      kind: 'solana',
      caip2,
      ...lazyMethods(chainOf<SolanaChain>(make))(
        ...everyChain,
        ...(['latestBlockhash', 'simulate', 'tokenAccounts', 'mint', 'rentExemption'] as const),
      ),
      feePayer: {
        address: FEE_PAYER_ADDRESS,
        ...lazyMethods(async () => (await chainOf<SolanaChain>(make)()).feePayer!)('sign'),
      },
    }),
  },
};

function bundlerFace(make: () => Promise<Simulated>): Bundler {
  const bundler = async () => (await chainOf<EvmChain>(make)()).bundler!;
  return { paymaster: PAYMASTER_ADDRESS, ...lazyMethods(bundler)('broadcast', 'statusOf') };
}

/**
 * The simulated chains of every namespace that is known here; each chain begins when it is first asked, and the file
 * is opened then. Nothing is shared with the server's own database, so asking inside its transactions is safe.
 */
export function openSimulatedChains(options: SimulatedChainsOptions): SimulatedChains {
  const { file, clock, confirmAfterMs, knownTokens = () => [] } = options;
  const made = new Map<string, { chain: AnyChain; make: () => Promise<Simulated> }>();
  let listed: readonly KnownToken[] | undefined;
  const tokens = (): readonly KnownToken[] => {
    listed ??= knownTokens();
    return listed;
  };
  let opened: Promise<ChainStore> | undefined;
  const open = (): Promise<ChainStore> => {
    opened ??= import('./store.ts').then(({ openChainStore }) => openChainStore(file));
    return opened;
  };

  function get(caip2: string) {
    const known = made.get(caip2);
    if (known !== undefined) return known;
    const kind = kindOf(caip2);
    if (kind === undefined) return undefined;
    let simulated: Promise<Simulated> | undefined;
    const make = (): Promise<Simulated> => {
      simulated ??= Promise.all([open(), kind.load()]).then(([store, simulate]) =>
        simulate({ store, clock, confirmAfterMs, knownTokens: tokens }, caip2),
      );
      return simulated;
    };
    const entry = { chain: kind.face(caip2, make), make };
    made.set(caip2, entry);
    return entry;
  }

  function simulatedOf(caip2: string): Promise<Simulated> {
    const entry = get(caip2);
    assert(entry, 'expected a chain that is simulated');
    return entry.make();
  }

  // What is in memory only and was never opened holds nothing.
  const used = async (): Promise<readonly string[]> => {
    if (opened === undefined && file === ':memory:') return [];
    const rows = (await open()).all<{ caip2: string }>('select caip2 from chains order by caip2');
    return rows.map(({ caip2 }) => caip2);
  };

  return {
    find: (caip2) => get(caip2)?.chain,
    used,
    has: (caip2) => kindOf(caip2) !== undefined,
    async fund(caip2, deposit) {
      const [chain, store] = [await simulatedOf(caip2), await open()];
      try {
        return store.atomically(() => {
          chain.head();
          return chain.give(deposit);
        });
      } catch (error) {
        return faultOf(error);
      }
    },
    decimalsOf: async (caip2, tokenAddress) => (await simulatedOf(caip2)).decimalsOf(tokenAddress),
    async mine(caip2, count) {
      const named = caip2 === undefined ? await used() : [caip2];
      const heights = new Map<string, bigint>();
      for (const name of named) heights.set(name, BigInt((await simulatedOf(name)).mine(count).number));
      return heights;
    },
    total: async (caip2, tokenAddress) => (await simulatedOf(caip2)).ledger.total(assetOf(tokenAddress)),
    exchange({ ids, prices, deals }) {
      let simulated: Promise<Exchange> | undefined;
      const chain = async (caip2: string) => (deals(caip2) ? simulatedOf(caip2) : undefined);
      const make = (): Promise<Exchange> => {
        simulated ??= Promise.all([open(), import('../exchange/exchange.ts')]).then(
          ([store, { simulateExchange }]) => simulateExchange({ clock, ids, prices, store, chain }),
        );
        return simulated;
      };
      return lazyMethods(make)('quote', 'statusOf');
    },
    // A file that was not opened yet may hold chains of an earlier start.
    reset: async () => (await open()).reset(),
    close: async () => (await opened)?.close(),
  };
}

function kindOf(caip2: string): Kind | undefined {
  const colon = caip2.indexOf(':');
  const namespace = caip2.slice(0, Math.max(colon, 0));
  const kind = Object.hasOwn(kinds, namespace) ? kinds[namespace] : undefined;
  return kind?.reference.test(caip2.slice(colon + 1)) === true ? kind : undefined;
}

// Which kind a namespace makes is known by the table above.
function chainOf<C extends AnyChain>(make: () => Promise<Simulated>): () => Promise<C> {
  return async () => (await make()).chain as C;
}

function faultOf(error: unknown): { fault: InvalidDepositError['field']; message: string } {
  if (!(error instanceof InvalidDepositError)) throw error;
  return { fault: error.field, message: error.message };
}

function assetOf(tokenAddress: string | null): string {
  if (tokenAddress === null) return NATIVE;
  return tokenAddress.startsWith('0x') ? tokenAddress.toLowerCase() : tokenAddress;
}
