/**
 * The highest fees that the server may fill in: wei per gas, tip in wei per gas, gas, and wei for the whole
 * transaction.
 */
export interface EvmCeilings {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
  readonly gas: bigint;
  /** The maximum of gas × price per gas, in wei. */
  readonly fee: bigint;
}

const GWEI = 1_000_000_000n;
const ETHER = 1_000_000_000n * GWEI;

/**
 * CHOICE: the default prices are far above what chains have ever charged. The default total is one unit of the native
 * asset, as in go-ethereum's `--rpc.txfeecap`. The default gas is the maximum of one transaction (EIP-7825).
 */
const usual: EvmCeilings = {
  maxFeePerGas: 2_000n * GWEI,
  maxPriorityFeePerGas: 500n * GWEI,
  gas: 2n ** 24n,
  fee: ETHER,
};

/**
 * The ceilings of chains whose native asset is cheap, or that count gas in another way, where they differ from the
 * usual ones.
 */
const byChain: Readonly<Record<string, Partial<EvmCeilings>>> = {
  // Polygon
  'eip155:137': { maxFeePerGas: 20_000n * GWEI, maxPriorityFeePerGas: 5_000n * GWEI, fee: 100n * ETHER },
  'eip155:80002': { maxFeePerGas: 20_000n * GWEI, maxPriorityFeePerGas: 5_000n * GWEI, fee: 100n * ETHER },
  // Arbitrum, where gas includes the cost of layer 1
  'eip155:42161': { gas: 2n ** 26n },
  'eip155:421614': { gas: 2n ** 26n },
  // zkSync Era, where gas includes published data
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
 * Returns the ceilings of a chain: the operator's settings where given, else the defaults. The server and its signer
 * must have the same settings.
 */
export function ceilingsOf(caip2: string, configured: Partial<EvmCeilings> = {}): EvmCeilings {
  return { ...usual, ...byChain[caip2], ...configured };
}
