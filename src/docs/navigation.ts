/** Whether an entry of the list has every word of the search. */
export function matches(entry: string, search: string): boolean {
  const text = entry.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** The operation that a fragment names: `#/wallets/walletRpc`. */
export function operationIn(fragment: string): string | undefined {
  return /^#\/[\w%-]+\/(\w+)$/.exec(fragment)?.[1];
}
