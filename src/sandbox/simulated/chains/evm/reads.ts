import { bytesToHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { readWithBigints, writeWithBigints } from '../ledger.ts';
import type { Overlay } from './overlay.ts';

/*
 * The state that an execution has read is stored with its receipt. A tracer can then execute the transaction again,
 * although the chain keeps only its latest state. Code that existed before is omitted, because it does not change.
 */

/** The key of the code of an account, of its words, and so on: see `makeOverlay`. */
const CODE = 'code ';

/** Everything that an execution has read, as it was before. */
export function readsOf(overlay: Overlay): string {
  const reads: [string, unknown?][] = [];
  for (const [key, { original }] of overlay.cells()) {
    if (original === undefined) reads.push([key]);
    else if (!key.startsWith(CODE)) reads.push([key, original]);
    else if ((original as Uint8Array).length === 0) reads.push([key, bytesToHex(original as Uint8Array)]);
  }
  return writeWithBigints(reads);
}

/** The output of `readsOf`, by key. */
export function recallReads(text: string): ReadonlyMap<string, unknown> {
  const reads = readWithBigints(text) as readonly (readonly [string, unknown?])[];
  return new Map(
    reads.map(([key, value]) => [key, key.startsWith(CODE) ? hexToBytes(String(value)) : value] as const),
  );
}
