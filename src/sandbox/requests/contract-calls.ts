import type { DecodedItem } from '../controllable-chains.ts';
import type { RecordedExchange } from '../generated/schemas.ts';

type ContractCall = RecordedExchange['contract_calls'][number];

/** The maximum number of calls that are decoded in one request. */
const MOST_CALLS = 100;
/** Calls are not this deep in any request of the API, and each level takes stack. */
const MAX_DEPTH = 32;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const CALL_DATA = /^0x[0-9a-fA-F]{8,}$/;

/**
 * Decodes the calls of contracts in a request body: each object with an address in `to` and call data in `data`.
 *
 * @param decode decodes the data of a call to an address in lower case. Returns undefined for an unknown function.
 */
export function contractCallsIn(
  body: unknown,
  decode: (to: string, data: string) => DecodedItem | undefined,
): ContractCall[] {
  const calls: ContractCall[] = [];
  visit(body, '', 0);
  return calls;

  function visit(value: unknown, pointer: string, depth: number): void {
    if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
    if (calls.length === MOST_CALLS) return;
    const { to, data } = value as Record<string, unknown>;
    if (typeof to === 'string' && ADDRESS.test(to) && typeof data === 'string' && CALL_DATA.test(data)) {
      const decoded = decode(to.toLowerCase(), data.toLowerCase());
      if (decoded !== undefined) {
        calls.push({ pointer, to, call: { name: decoded.name, arguments: [...decoded.arguments] } });
      }
    }
    for (const [key, member] of Object.entries(value)) visit(member, `${pointer}/${key}`, depth + 1);
  }
}
