import { hash } from 'node:crypto';
import type { EarnRequest } from '../../generated/schemas.ts';
import { decimalText, fromRaw, readDecimal, toRaw } from '../assets/decimal.ts';
import { assetAtAddress } from '../assets/known-assets.ts';
import { chainOfCaip2 } from '../assets/known-chains.ts';
import type { PolicyAction } from '../policy/action.ts';
import { invalid } from './request-terms-error.ts';

/** The amount of a deposit to a vault or of a withdrawal from it. */
export interface EarnAmount {
  /** The amount in base units of the vault's asset, above 0. */
  readonly rawAmount: bigint;
  /** JSON pointer to the amount in the body. */
  readonly pointer: string;
}

/**
 * Reads the amount from a request's body.
 *
 * @param decimals the decimals of the vault's asset.
 * @throws RequestTermsError invalid_data, which names the field.
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
 * Returns the action that policies evaluate: the body with the amount in both spellings, `amount` and `raw_amount`.
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

/** Returns the action that policies evaluate when the fees of a vault are collected. */
export function feeCollectionAction(body: object): PolicyAction {
  const method = 'earn_fee_collect';
  return { method, units: [{ label: method, requestBody: { ...body } }] };
}

/**
 * Returns the action that policies evaluate for a claim of rewards: the body, with its chain both as name and as
 * CAIP-2 id.
 */
export function claimAction(body: object, { name, caip2 }: { name: string; caip2: string }): PolicyAction {
  const method = 'earn_incentive_claim';
  return { method, units: [{ label: method, requestBody: { ...body, chain: name, caip2 } }] };
}

/** Identifies a vault of an app. */
interface VaultPlace {
  readonly appId: string;
  readonly caip2: string;
  /** The vault's smart contract, 0x hex in any case. */
  readonly address: string;
}

/** The token that a vault accepts. */
export interface VaultAsset {
  /** 0x hex in any case. */
  readonly address: string;
  readonly decimals: number;
}

/** The largest value of `decimals()` in ERC-20, a uint8. */
const MAX_DECIMALS = 255;
const RADIX = 36;
/** The number of base-36 digits for an address (160 bits), decimals (8 bits) and a digest (256 bits). */
const [ADDRESS_DIGITS, DECIMALS_DIGITS, DIGEST_DIGITS] = [31, 2, 50];

/**
 * Derives the id of an app's vault from the smart contract and its asset, so a request that contains the id also
 * fixes contract and asset. Format: 'v' || asset address || decimals || SHA-256(app id, chain, contract, asset,
 * decimals), each in base 36.
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
 * Reads a vault's asset from the id. The address is in lower case. Returns undefined if the id does not belong to
 * this smart contract, or if its decimals differ from those of a known asset.
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
