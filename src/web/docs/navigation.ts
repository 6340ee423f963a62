/** Returns the operation that a fragment such as `#/wallets/walletRpc` names. Undefined for any other fragment. */
export function operationIn(fragment: string): string | undefined {
  return /^#\/[\w%-]+\/(\w+)$/.exec(fragment)?.[1];
}
