import { ceilingsOf, type EvmCeilings } from '../../engine/assets/fee-ceilings.ts';
import { lazyMethods, loadOnce } from '../../engine/load-once.ts';
import type { AnyChain, Chains, EvmChain, SolanaChain } from '../../ports/chains.ts';
import type { Log } from '../../ports/runtime.ts';
import type { ObserveDisagreement, ObserveNode } from './nodes.ts';

interface Endpoints {
  readonly caip2: string;
  readonly urls: readonly string[];
  /** Ceilings that override the chain's defaults. */
  readonly ceilings?: Partial<EvmCeilings>;
  /**
   * The number of blocks after which a deposit is final. With 0, deposits are not followed. When undefined, the
   * chain's default applies.
   */
  readonly confirmations?: number;
  /** The pause before nodes that disagree are queried again, in ms. */
  readonly compareAgainMs?: number;
}

interface ConnectOptions {
  /** Returns the addresses of the chain's named tokens. */
  readonly namedTokens?: (caip2: string) => readonly string[];
  /**
   * The number of cells that read the transfers of each chain. They share what is read. Undefined for programs that
   * read no transfers repeatedly.
   */
  readonly cells?: number | undefined;
  readonly observe?: ObserveNode | undefined;
  readonly observeDisagreement?: ObserveDisagreement | undefined;
}

/** CHOICE: a process may read a claimed page of transfers for one minute. Then another process can claim the page. */
const LEASE_MS = 60_000;

/** Connects the chains with configured nodes. The client for a kind of node is imported on the first call. */
export function connectChains(
  endpoints: readonly Endpoints[],
  log: Log,
  options: ConnectOptions = {},
): Chains {
  const chains = new Map(endpoints.map((each) => [each.caip2, connect(each, log, options)]));
  const followed = [...chains.values()].filter((chain) => chain.transfersAfter !== undefined);
  return {
    find: (caip2) => chains.get(caip2),
    listing: async () => followed.map(({ caip2 }) => caip2),
  };
}

function connect(
  endpoints: Endpoints,
  log: Log,
  { namedTokens = () => [], cells, observe, observeDisagreement }: ConnectOptions,
): AnyChain {
  const { caip2, urls, ceilings, compareAgainMs } = endpoints;
  const confirmations = confirmationsOf(caip2, endpoints.confirmations);
  const options = {
    ...{ caip2, urls, log, compareAgainMs, observe, observeDisagreement },
    confirmations: BigInt(confirmations),
  };
  const isFollowed = confirmations > 0;
  if (caip2.startsWith('eip155:')) {
    const load = loadOnce(async () => {
      const { connectEvm } = await import('./evm.ts');
      const tokens = namedTokens(caip2).map((address) => address.toLowerCase());
      return connectEvm({ ...options, namedTokens: tokens, cells });
    });
    const chainId = BigInt(caip2.slice('eip155:'.length));
    return {
      kind: 'evm',
      caip2,
      chainId,
      ceilings: ceilingsOf(caip2, ceilings),
      ...lazyMethods<EvmChain>(load)(
        'balances',
        'broadcast',
        'statusOf',
        'nonce',
        'fees',
        'latestSeconds',
        'simulate',
        'movementsOf',
        'read',
        'code',
      ),
      ...(isFollowed ? followed(load) : {}),
      ...(isFollowed && cells !== undefined ? lazyMethods<EvmChain>(load)('transfersAwait') : {}),
    };
  }
  const load = loadOnce(async () => {
    const { connectSolana } = await import('./solana.ts');
    return connectSolana({ ...options, namedTokens: namedTokens(caip2) });
  });
  return {
    kind: 'solana',
    caip2,
    ...lazyMethods<SolanaChain>(load)(
      ...(['balances', 'broadcast', 'statusOf', 'latestBlockhash', 'latestSeconds', 'simulate'] as const),
      ...(['tokenAccounts', 'mint', 'rentExemption'] as const),
    ),
    ...(isFollowed ? followed(load) : {}),
  };
}

function followed(load: () => Promise<EvmChain | SolanaChain>) {
  return { transferLeaseMs: LEASE_MS, ...lazyMethods(load)('transfersAfter') };
}

/**
 * CHOICE: the number of blocks after which a deposit is final, when the operator sets none. Exchanges use similar
 * numbers. Polygon has had reorganizations of dozens of blocks.
 */
const USUAL = 12;

const byChain: Readonly<Record<string, number>> = {
  'eip155:137': 128,
  'eip155:80002': 128,
};

/**
 * Returns the number of confirmations of a chain: the configured number, or else the default. With 0, deposits are not
 * followed.
 */
function confirmationsOf(caip2: string, configured: number | undefined): number {
  return configured ?? byChain[caip2] ?? USUAL;
}
