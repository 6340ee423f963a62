import assert from 'node:assert/strict';
import type { QuoteWalletTransferRequest, TransferRequest } from '../../generated/schemas.ts';
import { readChainAddress } from '../assets/addresses.ts';
import { type Decimal, decimalText, readDecimal } from '../assets/decimal.ts';
import { assetAtAddress, assetNamed, type KnownAsset } from '../assets/known-assets.ts';
import { chainNamed, type KnownChain } from '../assets/known-chains.ts';
import { bytesTo0xHex, bytesToHex } from '../crypto/encoding.ts';
import type { PolicyAction } from '../policy/action.ts';
import { parseTronAddress } from '../policy/values.ts';
import type { BatchCall } from '../signing/ethereum/batch-executor.ts';
import { encodeTokenCall } from '../signing/ethereum/contract-calls.ts';
import type { TronContract } from '../signing/tron/raw-data.ts';
import { invalid, notSupported } from './request-terms-error.ts';

/** The asset to spend: a named asset, or a token by contract or mint. */
type TransferSource = KnownAsset | { readonly chain: KnownChain; readonly tokenAddress: string };

interface TransferArrival {
  readonly chain: KnownChain;
  /** Undefined if the source is a token without a name in the API, or if that name does not exist on the chain. */
  readonly asset: KnownAsset | undefined;
}

/** The terms of a requested transfer, after every check that needs no chain call. */
export interface TransferTerms {
  readonly source: TransferSource;
  /** The amount in whole units (not base units) of the asset that `amountType` fixes, above 0. */
  readonly amount: Decimal;
  /** The amount as written in the body. */
  readonly amountText: string;
  /** JSON pointer to `amountText` in the body. */
  readonly amountPointer: string;
  /** The side of an exchange that the amount fixes. Without an exchange, both sides have the same amount. */
  readonly amountType: 'exact_input' | 'exact_output';
  /** The recipient's address in the notation of the chain type. */
  readonly destination: string;
  /** The asset and chain on which the transfer arrives. */
  readonly arrival: TransferArrival;
  /** The app's share of the source amount, in hundredths of a percent. */
  readonly appFeeBps: number;
  /** Whether the transfer arrives as another asset or on another chain. */
  readonly isExchange: boolean;
}

/**
 * Reads the body of a transfer or of a transfer quote.
 *
 * @throws RequestTermsError invalid_data, which names the field; not_supported for an unknown chain, a chain of
 * another wallet type, and an asset that does not exist on the chain.
 */
export function readTransferTerms(
  chainType: string,
  body: TransferRequest | QuoteWalletTransferRequest,
): TransferTerms {
  const chain = requireChainAt('/source/chain', body.source.chain);
  if (chain.chainType !== chainType) {
    throw notSupported('/source/chain', `\`${chain.name}\` is not a chain of ${chainType} wallets`);
  }
  const source = readSource(chain, body.source);
  const { isExchange, ...arrival } = readArrival(source, body.destination);
  const destination = readChainAddress(arrival.chain.chainType, body.destination.address);
  if (destination === undefined) {
    throw invalid('/destination/address', `expected an address on \`${arrival.chain.name}\``);
  }
  const amountType = body.amount_type ?? 'exact_input';
  const appFeeBps = body.fee_configuration?.value ?? 0;
  return { source, ...readAmount(body), amountType, destination, arrival, appFeeBps, isExchange };
}

function readSource(chain: KnownChain, source: TransferRequest['source']): TransferSource {
  // INVARIANT: the body has either `asset` or `asset_address`. With both, policies could evaluate the address while
  // the named asset is moved. The signer also reads bodies that no server has validated.
  if ('asset' in source && 'asset_address' in source) {
    throw invalid('/source', 'expected `asset` or `asset_address`, not both');
  }
  if ('asset' in source) return requireAssetAt('/source/asset', chain, source.asset);
  const tokenAddress = readChainAddress(chain.chainType, source.asset_address);
  if (tokenAddress === undefined) {
    throw invalid('/source/asset_address', `expected the address of a token on \`${chain.name}\``);
  }
  return assetAtAddress(chain, tokenAddress) ?? { chain, tokenAddress };
}

function readArrival(
  source: TransferSource,
  destination: TransferRequest['destination'],
): TransferArrival & { isExchange: boolean } {
  const chain =
    destination.chain === undefined ? source.chain : requireChainAt('/destination/chain', destination.chain);
  const isElsewhere = chain !== source.chain;
  if (destination.asset === undefined) {
    const asset = 'asset' in source ? assetNamed(chain, source.asset) : undefined;
    return { chain, asset, isExchange: isElsewhere };
  }
  const asset = requireAssetAt('/destination/asset', chain, destination.asset);
  return { chain, asset, isExchange: isElsewhere || asset !== source };
}

function readAmount(body: TransferRequest | QuoteWalletTransferRequest) {
  const { amount: inSource } = body.source;
  if (inSource !== undefined && body.amount !== undefined) {
    throw invalid('/amount', 'expected `amount` here or in `source`, not both');
  }
  const pointer = inSource === undefined ? '/amount' : '/source/amount';
  const amountText = inSource ?? body.amount;
  if (amountText === undefined) throw invalid('/amount', 'expected `amount` here or in `source`');
  const amount = readDecimal(amountText);
  if (amount === undefined || amount.digits === 0n) {
    throw invalid(pointer, 'expected a decimal number above 0');
  }
  return { amount, amountText, amountPointer: pointer };
}

function requireChainAt(pointer: string, name: string): KnownChain {
  const chain = chainNamed(name);
  if (chain === undefined) throw notSupported(pointer, `the chain \`${name}\` is not supported`);
  return chain;
}

function requireAssetAt(pointer: string, chain: KnownChain, name: string): KnownAsset {
  const asset = assetNamed(chain, name);
  if (asset === undefined) throw notSupported(pointer, `no asset \`${name}\` is known on \`${chain.name}\``);
  return asset;
}

/**
 * Returns the action that policies evaluate: the body, with all omitted fields and alternative spellings filled in.
 * So another spelling of the same transfer cannot bypass a rule.
 *
 * CHOICE: the amount appears as `amount` and `source.amount`, and the source by name and by address. The
 * destination's chain and asset default to the source's. If the request fixes the amount that an exchange delivers,
 * the action has the amount to spend, because rules on amounts limit spending.
 *
 * @param spent the amount to spend in units of the source asset, once the exchange has quoted it.
 * @throws RequestTermsError not_supported if the request fixes the amount that an exchange delivers and `spent` is
 * missing.
 */
export function transferAction(body: TransferRequest, terms: TransferTerms, spent?: Decimal): PolicyAction {
  const { source } = terms;
  const amountText = fixesArrival(terms) ? textOf(spent) : terms.amountText;
  const asset = 'asset' in source ? source.asset : undefined;
  const requestBody = {
    ...body,
    amount: amountText,
    source: {
      ...(asset === undefined ? {} : { asset }),
      ...(source.tokenAddress === null ? {} : { asset_address: source.tokenAddress }),
      // Addresses stay as they were sent, because conditions of ALLOW rules compare exact text.
      ...body.source,
      amount: amountText,
    },
    destination: {
      chain: source.chain.name,
      ...(asset === undefined ? {} : { asset }),
      ...body.destination,
    },
  };
  return { method: 'transfer', units: [{ label: 'transfer', requestBody }] };
}

/**
 * Returns whether the request fixes the amount that an exchange delivers. The amount to spend then comes from the
 * quote.
 */
export function fixesArrival({ isExchange, amountType }: TransferTerms): boolean {
  return isExchange && amountType === 'exact_output';
}

function textOf(spent: Decimal | undefined): string {
  if (spent === undefined) {
    throw notSupported('/amount_type', 'what an exchange costs is known once it is asked, and judged then');
  }
  return decimalText(spent);
}

// These functions build the transfer transaction of each chain, without the values that only the chain knows. For
// Solana, see `encodeSolanaTransfer`.

/** A transfer of one asset to an address on the same chain. */
export interface Movement {
  /** The token's smart contract (EVM, TRON) or mint (Solana); null for the native asset. */
  readonly tokenAddress: string | null;
  /** The amount in base units. */
  readonly rawAmount: bigint;
  readonly to: string;
}

/** Returns the call that moves an asset on an EVM chain. */
export function transferCall({ tokenAddress, rawAmount, to }: Movement): BatchCall {
  if (tokenAddress === null) return { to, value: rawAmount, data: new Uint8Array() };
  const data = encodeTokenCall({ name: 'transfer', to: to.toLowerCase(), amount: rawAmount });
  return { to: tokenAddress, value: 0n, data };
}

/** Returns the fields of a transaction that contains only the transfer call. */
export function ethereumTransfer(
  movement: Movement,
): { readonly to: string; readonly value: string } | { readonly to: string; readonly data: string } {
  const { to, value, data } = transferCall(movement);
  return data.length === 0 ? { to, value: `0x${value.toString(16)}` } : { to, data: bytesTo0xHex(data) };
}

/** CHOICE: 100 TRX, several times what the most expensive stablecoin transfer burns. */
const FEE_LIMIT_SUN = 100_000_000;

/**
 * Returns the raw data that moves an asset on TRON, without block reference and times. Addresses: `T…` or `41` and 40
 * hex digits. An amount of TRX must be a safe integer in sun, which covers the total supply.
 */
export function tronTransfer(movement: Movement & { readonly from: string }): {
  readonly contract: [TronContract];
  readonly fee_limit: number;
} {
  return { contract: [tronContract(movement)], fee_limit: FEE_LIMIT_SUN };
}

function tronContract({
  tokenAddress,
  rawAmount,
  from,
  to,
}: Movement & { readonly from: string }): TronContract {
  const owner = tronHex(from);
  if (tokenAddress === null) {
    const amount = Number(rawAmount);
    return { type: 'TransferContract', owner_address: owner, to_address: tronHex(to), amount };
  }
  const recipient = `0x${tronHex(to).slice(2)}` as const;
  return {
    type: 'TriggerSmartContract',
    owner_address: owner,
    contract_address: tronHex(tokenAddress),
    data: bytesToHex(encodeTokenCall({ name: 'transfer', to: recipient, amount: rawAmount })),
  };
}

/** Returns a TRON address as 42 hex digits: `41`, then the 20 bytes of the address. */
function tronHex(address: string): string {
  const addressHex = parseTronAddress(address);
  assert(addressHex !== undefined, `the addresses of a transfer are read: ${address}`);
  return addressHex;
}
