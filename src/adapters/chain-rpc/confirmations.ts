/**
 * CHOICE: blocks until a deposit counts as final, where the operator sets nothing. Exchanges use similar numbers;
 * Polygon has seen reorganizations of dozens of blocks.
 */
const USUAL = 12;

const byChain: Readonly<Record<string, number>> = {
  'eip155:137': 128,
  'eip155:80002': 128,
};

/** The confirmations of a chain: those that the operator configured, otherwise the defaults. 0: not followed. */
export function confirmationsOf(caip2: string, configured: number | undefined): number {
  return configured ?? byChain[caip2] ?? USUAL;
}
