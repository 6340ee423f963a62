/** The most that a transaction may pay for gas where its fee was filled in. Wei per gas; gas; wei. */
export interface EvmCeilings {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly gas: bigint;
  /** gas × maxFeePerGas. */
  readonly fee: bigint;
}

const GWEI = 1_000_000_000n;
const ETHER = 1_000_000_000n * GWEI;

/**
 * CHOICE: far above what chains have asked for, and a total of one unit of the native asset, as go-ethereum's
 * `--rpc.txfeecap`. Gas as in EIP-7825, the most that one transaction can use.
 */
const usual: EvmCeilings = {
  maxFeePerGas: 2_000n * GWEI,
  maxPriorityFeePerGas: 500n * GWEI,
  gas: 2n ** 24n,
  fee: ETHER,
};

/** Chains with cheap native assets, or that count gas in another way. */
const byChain: Readonly<Record<string, Partial<EvmCeilings>>> = {
  // Polygon
  'eip155:137': { maxFeePerGas: 20_000n * GWEI, maxPriorityFeePerGas: 5_000n * GWEI, fee: 100n * ETHER },
  'eip155:80002': { maxFeePerGas: 20_000n * GWEI, maxPriorityFeePerGas: 5_000n * GWEI, fee: 100n * ETHER },
  // Arbitrum, whose gas includes the cost of layer 1
  'eip155:42161': { gas: 2n ** 26n },
  'eip155:421614': { gas: 2n ** 26n },
  // zkSync Era, whose gas includes published data
  'eip155:324': { gas: 2n ** 27n },
  // Avalanche
  'eip155:43114': { fee: 10n * ETHER },
  'eip155:43113': { fee: 10n * ETHER },
  // MegaETH
  'eip155:4326': { gas: 2n ** 30n },
  // Hyperliquid
  'eip155:999': { fee: 10n * ETHER },
};

/**
 * The ceilings of a chain: those that the operator configured, otherwise the defaults. The server and its signer have
 * the same ceilings.
 */
export function ceilingsOf(caip2: string, configured: Partial<EvmCeilings> = {}): EvmCeilings {
  return { ...usual, ...byChain[caip2], ...configured };
}
