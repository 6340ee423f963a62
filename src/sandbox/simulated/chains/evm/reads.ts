import { bytesToHex, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { readWithBigints, writeWithBigints } from '../ledger.ts';
import type { Overlay } from './overlay.ts';

/*
 * The state that an execution read is stored with its receipt. A tracer can then execute the transaction again,
 * although the chain stores only its latest state. Code that existed before is omitted, because it does not change.
 */

/** The prefix of the key of an account's code. The other prefixes are likewise those of `makeOverlay`. */
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

/** Parses the output of `readsOf`, by key. */
export function recallReads(text: string): ReadonlyMap<string, unknown> {
  const reads = readWithBigints(text) as readonly (readonly [string, unknown?])[];
  return new Map(
    reads.map(([key, value]) => [key, key.startsWith(CODE) ? hexToBytes(String(value)) : value] as const),
  );
}
