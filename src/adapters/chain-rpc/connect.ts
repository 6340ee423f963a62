import { loadOnce } from '../../load-once.ts';
import type { AnyChain, Chains, EvmCeilings, EvmChain, SolanaChain } from '../../ports/chains.ts';
import type { Log } from '../../ports/log.ts';
import { lazyMethods } from '../lazy-methods.ts';
import { ceilingsOf } from './ceilings.ts';

interface Endpoints {
  readonly caip2: string;
  readonly urls: readonly string[];
  /** Ceilings that replace the chain's defaults. */
  readonly ceilings?: Partial<EvmCeilings>;
}

/** The chains with configured nodes. The client for a kind of node is imported on the first call. */
export function connectChains(endpoints: readonly Endpoints[], log: Log): Chains {
  const chains = new Map(endpoints.map((each) => [each.caip2, connect(each, log)]));
  return { find: (caip2) => chains.get(caip2) };
}

function connect({ caip2, urls, ceilings }: Endpoints, log: Log): AnyChain {
  if (caip2.startsWith('eip155:')) {
    const load = loadOnce(async () => (await import('./evm.ts')).connectEvm(caip2, urls, log));
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
        'simulate',
        'simulateSequence',
        'movementsOf',
        'read',
        'code',
      ),
    };
  }
  const load = loadOnce(async () => (await import('./solana.ts')).connectSolana(caip2, urls, log));
  return {
    kind: 'solana',
    caip2,
    ...lazyMethods<SolanaChain>(load)(
      ...(['balances', 'broadcast', 'statusOf', 'latestBlockhash', 'simulate'] as const),
      ...(['tokenAccounts', 'mint', 'rentExemption'] as const),
    ),
  };
}
