import { findReceipt } from '../receipts.ts';
import type { EvmState } from '../state.ts';
import { PAIR_FACTORY_ADDRESS } from './addresses.ts';
import { solidity } from './generated/solidity.ts';
import { addressIn, elementSlot, numberIn, wordOf } from './storage-layout.ts';

/** Two amounts in base units, in the order of a pool's tokens. */
type PoolAmounts = readonly [bigint, bigint];

/** A trade in a pool, with the reserves before and after it. */
interface PoolTrade {
  readonly paidIn: PoolAmounts;
  readonly paidOut: PoolAmounts;
  readonly before: PoolAmounts;
  readonly after: PoolAmounts;
}

/** A pool of two tokens, and its trades in one transaction. Addresses are lower-case 0x hex. */
export interface Pool {
  readonly address: string;
  readonly tokens: readonly [string, string];
  readonly reserves: PoolAmounts;
  readonly trades: readonly PoolTrade[];
}

/** CHOICE: only the first 1,000 pools of a chain are listed, because anyone can create pools. */
const MAX_POOLS = 1_000;
const RESERVE_BITS = 112;

// keccak256("Swap(address,uint256,uint256,uint256,uint256,address)")
const SWAP_TOPIC = '0xd78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822';
// keccak256("Sync(uint112,uint112)")
const SYNC_TOPIC = '0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1';

/**
 * Returns the pools of a chain's factory in the order of their creation. With a hash, returns only the pools in which
 * that transaction traded, in the order of its trades.
 */
export function poolsOn(state: EvmState, hash: string | undefined): readonly Pool[] {
  const all = addressesOn(state);
  if (hash === undefined) return all.map((address) => ({ ...readPool(state, address), trades: [] }));
  const trades = tradesOf(state, hash);
  return [...trades]
    .filter(([address]) => all.includes(address))
    .map(([address, own]) => ({ ...readPool(state, address), trades: own }));
}

function addressesOn({ bytecode }: EvmState): readonly string[] {
  const list = wordOf(solidity.Factory.slots.allPairs);
  const count = numberIn(bytecode.word(PAIR_FACTORY_ADDRESS, list));
  const shown = count > BigInt(MAX_POOLS) ? MAX_POOLS : Number(count);
  return Array.from({ length: shown }, (_, index) =>
    addressIn(bytecode.word(PAIR_FACTORY_ADDRESS, elementSlot(list, index))),
  );
}

function readPool({ bytecode }: EvmState, address: string): Omit<Pool, 'trades'> {
  const { token0, token1, reserve0 } = solidity.Pair.slots;
  const read = (slot: number): string => bytecode.word(address, wordOf(slot));
  // Both reserves share a word with the time of the last trade, which is in its top bits.
  const packed = numberIn(read(reserve0));
  const reserves = [
    BigInt.asUintN(RESERVE_BITS, packed),
    BigInt.asUintN(RESERVE_BITS, packed >> BigInt(RESERVE_BITS)),
  ] as const;
  return { address, tokens: [addressIn(read(token0)), addressIn(read(token1))], reserves };
}

/** Returns the trades of a transaction by pool. A pool logs its new reserves immediately before each trade. */
function tradesOf(state: EvmState, hash: string): ReadonlyMap<string, PoolTrade[]> {
  const trades = new Map<string, PoolTrade[]>();
  const latest = new Map<string, PoolAmounts>();
  for (const { address, topics, data } of findReceipt(state, hash)?.logs ?? []) {
    const words = (data.slice(2).match(/.{64}/g) ?? []).map(numberIn);
    const [first, second, third, fourth] = words;
    if (topics[0] === SYNC_TOPIC && second !== undefined) latest.set(address, [first!, second]);
    const after = latest.get(address);
    if (topics[0] !== SWAP_TOPIC || after === undefined || fourth === undefined) continue;
    const [paidIn, paidOut] = [
      [first!, second!],
      [third!, fourth],
    ] as const;
    const before = [after[0] - paidIn[0] + paidOut[0], after[1] - paidIn[1] + paidOut[1]] as const;
    trades.set(address, [...(trades.get(address) ?? []), { paidIn, paidOut, before, after }]);
  }
  return trades;
}
