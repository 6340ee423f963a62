import { bytesToHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { readWithBigints, writeWithBigints } from '../ledger.ts';
import { makeOverlay, type Overlay } from './overlay.ts';
import type { EvmState } from './state.ts';

/**
 * The state that an execution has read is stored with its receipt. So a tracer can execute the transaction again,
 * although the chain stores only its latest state. Code that existed before is omitted, because it does not change.
 */

/** The prefix of the key of an account's code. All prefixes are those that `makeOverlay` uses. */
const CODE = 'code ';

/** Serializes everything that an execution read, with the values before the execution. */
export function readsOf(overlay: Overlay): string {
  const reads: [string, unknown?][] = [];
  for (const [key, { original }] of overlay.cells()) {
    if (original === undefined) reads.push([key]);
    else if (!key.startsWith(CODE)) reads.push([key, original]);
    else if ((original as Uint8Array).length === 0) reads.push([key, bytesToHex(original as Uint8Array)]);
  }
  return writeWithBigints(reads);
}

/** Parses the output of `readsOf` into a map by key. */
export function recallReads(text: string): ReadonlyMap<string, unknown> {
  const reads = readWithBigints(text) as readonly (readonly [string, unknown?])[];
  return new Map(
    reads.map(([key, value]) => [key, key.startsWith(CODE) ? hexToBytes(String(value)) : value] as const),
  );
}

/** CHOICE: earlier state is available for blocks that at most 1,000 transactions have followed. */
const MAX_LATER = 1_000;

interface ReadsRow {
  readonly reads: string | null;
}

/**
 * Returns the state after a block, reconstructed from what later transactions read first. Returns undefined if it is
 * unknown: deposits by the sandbox change balances without reading anything.
 */
export function overlayAfter(state: EvmState, block: number): Overlay | undefined {
  const later = state.world.store.all<ReadsRow>(
    `select reads from evm_receipts where caip2 = ? and block_number > ?
     order by block_number, position limit ?`,
    ...[state.caip2, block, MAX_LATER + 1],
  );
  if (later.length > MAX_LATER || later.some(({ reads }) => reads === null)) return undefined;
  const recalled = new Map<string, unknown>();
  for (const { reads } of later) {
    for (const [key, value] of recallReads(reads!)) if (!recalled.has(key)) recalled.set(key, value);
  }
  return makeOverlay(state, recalled);
}
