import { lazyMethods } from '../../../engine/load-once.ts';
import type {
  AnyChain,
  Bundler,
  EvmChain,
  PlainChain,
  SolanaChain,
  TronChain,
} from '../../../ports/chains.ts';
import type { Upstream } from './evm/upstream.ts';
import { FEE_PAYER_ADDRESS, PAYMASTER_ADDRESS, tempoChains } from './sponsors.ts';
import type { Simulated, World } from './world.ts';

/** The implementation of chains in one CAIP-2 namespace. It is imported on the first call to one of them. */
interface ChainKind {
  /** The format of the references in the namespace (CAIP-2). */
  readonly reference: RegExp;
  readonly isEvm?: true;
  readonly load: () => Promise<(world: World, caip2: string, upstream?: Upstream) => Simulated>;
  /** Returns a chain whose methods first call `make`, which loads the implementation. */
  readonly proxy: (caip2: string, make: () => Promise<Simulated>) => AnyChain;
}

const commonMethods = ['balances', 'broadcast', 'statusOf', 'transfersOf', 'transfersAfter'] as const;

const reference = /^[-_a-zA-Z0-9]{1,32}$/;

const plain: ChainKind = {
  reference,
  load: async () => (await import('./plain/chain.ts')).simulatePlain,
  proxy: (caip2, make) => ({
    kind: 'plain',
    caip2,
    ...lazyMethods(chainOf<PlainChain>(make))(...commonMethods),
  }),
};

// CHOICE: a chain type without a registered CAIP-2 namespace uses its own name as the namespace.
const kinds: Readonly<Record<string, ChainKind>> = {
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
    isEvm: true,
    reference: /^[1-9]\d{0,15}$/,
    load: async () => (await import('./evm/chain.ts')).simulateEvm,
    proxy: (caip2, make) => ({
      kind: 'evm',
      caip2,
      chainId: BigInt(caip2.slice('eip155:'.length)),
      ...lazyMethods(chainOf<EvmChain>(make))(
        ...commonMethods,
        'nonce',
        'fees',
        'latestSeconds',
        'simulate',
        'movementsOf',
        'read',
        'code',
      ),
      ...(tempoChains.has(caip2) ? {} : { bundler: bundlerProxy(make) }),
    }),
  },
  tron: {
    reference,
    load: async () => (await import('./tron/chain.ts')).simulateTron,
    proxy: (caip2, make) => ({
      kind: 'tron',
      caip2,
      ...lazyMethods(chainOf<TronChain>(make))(...commonMethods, 'referenceBlock', 'simulate'),
    }),
  },
  spark: {
    reference: /^(mainnet|regtest)$/,
    load: async () => (await import('./spark/chain.ts')).simulateSpark,
    proxy: (caip2, make) => ({
      kind: 'plain',
      caip2,
      spark: lazyMethods(async () => (await chainOf<PlainChain>(make)()).spark!)(
        ...(['holdings', 'quoteDeposit', 'quoteWithdrawal'] as const),
        ...(['makeInvoice', 'readInvoice', 'quotePayment'] as const),
      ),
      ...lazyMethods(chainOf<PlainChain>(make))(...commonMethods),
    }),
  },
  solana: {
    reference,
    load: async () => (await import('./solana/chain.ts')).simulateSolana,
    proxy: (caip2, make) => ({
      kind: 'solana',
      caip2,
      ...lazyMethods(chainOf<SolanaChain>(make))(
        ...commonMethods,
        ...(['latestBlockhash', 'simulate', 'tokenAccounts', 'mint', 'rentExemption'] as const),
      ),
      feePayer: {
        address: FEE_PAYER_ADDRESS,
        ...lazyMethods(async () => (await chainOf<SolanaChain>(make)()).feePayer!)('sign'),
      },
    }),
  },
};

function bundlerProxy(make: () => Promise<Simulated>): Bundler {
  const bundler = async () => (await chainOf<EvmChain>(make)()).bundler!;
  return { paymaster: PAYMASTER_ADDRESS, ...lazyMethods(bundler)('broadcast', 'statusOf') };
}

/** Returns the kind of a chain, or undefined if the id is not that of a simulated chain. */
export function kindOf(caip2: string): ChainKind | undefined {
  const colon = caip2.indexOf(':');
  const namespace = caip2.slice(0, Math.max(colon, 0));
  const kind = Object.hasOwn(kinds, namespace) ? kinds[namespace] : undefined;
  return kind?.reference.test(caip2.slice(colon + 1)) === true ? kind : undefined;
}

// The table above guarantees that a namespace's chains are of the kind `C`.
function chainOf<C extends AnyChain>(make: () => Promise<Simulated>): () => Promise<C> {
  return async () => (await make()).chain as C;
}
