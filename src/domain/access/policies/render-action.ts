import { bytesTo0xHex } from '../../../crypto/encoding.ts';
import type { PolicyAction } from '../../../policy/action.ts';

/** A decoded action as JSON. */
export interface ActionView {
  readonly method: string;
  readonly units: readonly Readonly<Record<string, unknown>>[];
}

/**
 * A decoded action as JSON: large integers as decimal text, bytes as `0x` hex, absent fields left out. Names are
 * those of `src/policy/action.ts`.
 */
export function renderAction({ method, units }: PolicyAction): ActionView {
  return { method, units: units.map((unit) => render(unit) as Readonly<Record<string, unknown>>) };
}

function render(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Uint8Array) return bytesTo0xHex(value);
  if (Array.isArray(value)) return value.map(render);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members.map(([name, member]) => [name, render(member)]));
}
