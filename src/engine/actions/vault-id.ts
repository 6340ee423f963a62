import { hash } from 'node:crypto';
import { assetAtAddress } from '../assets/known-assets.ts';
import { chainOfCaip2 } from '../assets/known-chains.ts';

/** The data that identify a vault of an app. */
export interface VaultPlace {
  readonly appId: string;
  readonly caip2: string;
  /** The vault contract, 0x hex in any case. */
  readonly address: string;
}

/** The token that a vault accepts. */
export interface VaultAsset {
  /** 0x hex in any case. */
  readonly address: string;
  readonly decimals: number;
}

/** ERC-20 declares `decimals` a uint8. */
const MOST_DECIMALS = 255;
const RADIX = 36;
/** The numbers of base-36 digits for 160, 8 and 256 bits. */
const [ADDRESS_DIGITS, DECIMALS_DIGITS, DIGEST_DIGITS] = [31, 2, 50];

/**
 * The id of an app's vault. It is derived from the contract and its asset, so that a request which names the id names
 * both: 'v' || asset || its decimals || SHA-256(app id, chain, contract, asset, decimals), each in base 36.
 */
export function vaultIdOf(place: VaultPlace, asset: VaultAsset): string {
  const { appId, caip2, address } = place;
  const token = asset.address.toLowerCase();
  const text = JSON.stringify(['vault', appId, caip2, address.toLowerCase(), token, asset.decimals]);
  const parts = [
    digits(BigInt(token), ADDRESS_DIGITS),
    digits(BigInt(asset.decimals), DECIMALS_DIGITS),
    digits(BigInt(`0x${hash('sha256', text)}`), DIGEST_DIGITS),
  ];
  return `v${parts.join('')}`;
}

/**
 * The asset of the vault with this id, with its address in lower case. Undefined if the id is not an id of this
 * contract, or if it gives other decimals than a named asset has.
 */
export function assetOfVault(id: string, place: VaultPlace): VaultAsset | undefined {
  const read = /^v([0-9a-z]{31})([0-9a-z]{2})[0-9a-z]{50}$/.exec(id);
  if (read === null) return undefined;
  const [, token = '', decimals = ''] = read;
  const address = numberOf(token);
  const asset = {
    address: `0x${address.toString(16).padStart(40, '0')}`,
    decimals: Number(numberOf(decimals)),
  };
  if (address >> 160n !== 0n || asset.decimals > MOST_DECIMALS || vaultIdOf(place, asset) !== id)
    return undefined;
  const chain = chainOfCaip2(place.caip2);
  const known = chain && assetAtAddress(chain, asset.address);
  return known === undefined || known.decimals === asset.decimals ? asset : undefined;
}

function digits(value: bigint, count: number): string {
  return value.toString(RADIX).padStart(count, '0');
}

function numberOf(text: string): bigint {
  return [...text].reduce(
    (value, digit) => value * BigInt(RADIX) + BigInt(Number.parseInt(digit, RADIX)),
    0n,
  );
}
