import { hash } from 'node:crypto';
import type { EarnRequest } from '../../generated/schemas.ts';
import { decimalText, fromRaw, readDecimal, toRaw } from '../assets/decimal.ts';
import { assetAtAddress } from '../assets/known-assets.ts';
import { chainOfCaip2 } from '../assets/known-chains.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid } from './request-terms-error.ts';

/** The amount of a deposit into a vault, or of a withdrawal. */
export interface EarnAmount {
  /** The amount in base units of the vault's asset, above 0. */
  readonly rawAmount: bigint;
  /** JSON pointer to the amount in the body. */
  readonly pointer: string;
}

/**
 * Reads the amount of a body.
 *
 * @param decimals the decimals of the vault's asset.
 * @throws RequestTermsError invalid_data naming the field.
 */
export function readEarnAmount(body: EarnRequest, decimals: number): EarnAmount {
  if (body.amount !== undefined && body.raw_amount !== undefined) {
    throw invalid('/raw_amount', 'expected `amount` or `raw_amount`, not both');
  }
  const pointer = body.amount === undefined ? '/raw_amount' : '/amount';
  const rawAmount = body.amount === undefined ? readRaw(body.raw_amount) : readUnits(body.amount, decimals);
  if (rawAmount === 0n) throw invalid(pointer, 'expected an amount above 0');
  if (rawAmount >= 2n ** 256n) throw invalid(pointer, 'expected an amount below 2^256');
  return { rawAmount, pointer };
}

function readRaw(text: string | undefined): bigint {
  if (text === undefined) throw invalid('/raw_amount', 'expected `amount` or `raw_amount`');
  return BigInt(text);
}

function readUnits(text: string, decimals: number): bigint {
  const amount = readDecimal(text);
  if (amount === undefined) throw invalid('/amount', 'expected a decimal number above 0');
  const rawAmount = toRaw(amount, decimals);
  if (rawAmount === undefined) {
    throw invalid('/amount', `expected at most ${decimals} decimals, as the asset of the vault has`);
  }
  return rawAmount;
}

/**
 * The action that policies evaluate: the body with both spellings of the amount.
 *
 * CHOICE: `amount` is written without superfluous zeros, whichever spelling was sent.
 */
export function earnAction(
  method: 'earn_deposit' | 'earn_withdraw',
  body: EarnRequest,
  { rawAmount, decimals }: { readonly rawAmount: bigint; readonly decimals: number },
): PolicyAction {
  const requestBody = {
    ...body,
    amount: decimalText(fromRaw(rawAmount, decimals)),
    raw_amount: String(rawAmount),
  };
  return { method, units: [{ label: method, requestBody }] };
}

/** The action that policies evaluate when fees of a vault are collected. */
export function feeCollectionAction(body: object): PolicyAction {
  const method = 'earn_fee_collect';
  return { method, units: [{ label: method, requestBody: { ...body } }] };
}

/** The action that policies evaluate for a claim of rewards: the body, with its chain in both spellings. */
export function claimAction(body: object, { name, caip2 }: { name: string; caip2: string }): PolicyAction {
  const method = 'earn_incentive_claim';
  return { method, units: [{ label: method, requestBody: { ...body, chain: name, caip2 } }] };
}

/** The data that identify a vault of an app. */
interface VaultPlace {
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
const MAX_DECIMALS = 255;
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
  if (address >> 160n !== 0n || asset.decimals > MAX_DECIMALS || vaultIdOf(place, asset) !== id)
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
