import { hash } from 'node:crypto';

/** What the id of a vault says of it. */
export interface VaultPlace {
  readonly appId: string;
  readonly caip2: string;
  /** The contract of the vault, 0x hex in any case. */
  readonly address: string;
}

/** ERC-20 declares `decimals` a uint8. */
const MOST_DECIMALS = 255;

/**
 * The id of an app's vault. It follows from the contract and the decimals of its asset, so that a request which names
 * the id names the contract: 'v' || the last 23 digits of SHA-256(app id, chain, address, decimals) in base 36, 119 bits.
 */
export function vaultIdOf({ appId, caip2, address }: VaultPlace, decimals: number): string {
  const text = JSON.stringify(['vault', appId, caip2, address.toLowerCase(), decimals]);
  return `v${BigInt(`0x${hash('sha256', text)}`)
    .toString(36)
    .slice(-23)
    .padStart(23, '0')}`;
}

/** The decimals of the asset of the vault that has this id; undefined if the id is not one of this contract. */
export function decimalsOfVault(id: string, place: VaultPlace): number | undefined {
  for (let decimals = 0; decimals <= MOST_DECIMALS; decimals += 1) {
    if (vaultIdOf(place, decimals) === id) return decimals;
  }
  return undefined;
}
