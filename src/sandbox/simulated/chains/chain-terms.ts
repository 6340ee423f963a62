/** The parameters of a simulated chain, in the smallest unit of the native asset. */
export interface ChainTerms {
  readonly blockMs: number;
  /** The number of confirmations after which a block is final. */
  readonly finalityBlocks: number;
  /** On EVM chains: wei per gas, the same in every block. On Tempo: 10^-18 US dollars per gas. */
  readonly baseFee: bigint;
  readonly priorityFee: bigint;
}

const GWEI = 1_000_000_000n;

// CHOICE: block times, finality and fees approximate those of the real chains. They are constant, so that tests can
// rely on exact amounts.
const rollup: ChainTerms = {
  blockMs: 2_000,
  finalityBlocks: 60,
  baseFee: GWEI / 20n,
  priorityFee: GWEI / 1000n,
};
const ethereum: ChainTerms = { blockMs: 12_000, finalityBlocks: 64, baseFee: GWEI, priorityFee: GWEI / 10n };
// 20 * 10^9 attodollars per gas, so that a transfer costs about a tenth of a cent.
const tempo: ChainTerms = {
  ...rollup,
  blockMs: 500,
  finalityBlocks: 1,
  baseFee: 20n * GWEI,
  priorityFee: 0n,
};
const solana: ChainTerms = { blockMs: 400, finalityBlocks: 32, baseFee: 0n, priorityFee: 0n };
const tron: ChainTerms = { blockMs: 3_000, finalityBlocks: 19, baseFee: 0n, priorityFee: 0n };
const bitcoin: ChainTerms = { blockMs: 600_000, finalityBlocks: 6, baseFee: 0n, priorityFee: 0n };
const other: ChainTerms = { blockMs: 5_000, finalityBlocks: 1, baseFee: 0n, priorityFee: 0n };

const termsByChain: Readonly<Record<string, ChainTerms>> = {
  'eip155:1': ethereum,
  'eip155:11155111': ethereum,
  'eip155:137': { ...rollup, baseFee: 30n * GWEI, priorityFee: 30n * GWEI },
  'eip155:80002': { ...rollup, baseFee: 30n * GWEI, priorityFee: 30n * GWEI },
  'eip155:43114': { ...rollup, baseFee: 25n * GWEI, priorityFee: GWEI, finalityBlocks: 1 },
  'eip155:43113': { ...rollup, baseFee: 25n * GWEI, priorityFee: GWEI, finalityBlocks: 1 },
  'eip155:4217': tempo,
  'eip155:42431': tempo,
};

const termsByNamespace: Readonly<Record<string, ChainTerms>> = {
  eip155: rollup,
  solana,
  tron,
  bip122: bitcoin,
  pearl: bitcoin,
};

/** Returns the parameters of a chain, by its CAIP-2 id. */
export function termsOf(caip2: string): ChainTerms {
  const namespace = caip2.slice(0, caip2.indexOf(':'));
  return termsByChain[caip2] ?? termsByNamespace[namespace] ?? other;
}
