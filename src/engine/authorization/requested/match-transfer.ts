import type { TransferRequest } from '../../../generated/schemas.ts';
import {
  ethereumTransfer,
  fixesArrival,
  type Movement,
  readTransferTerms,
  type TransferTerms,
  transferAction,
  tronTransfer,
} from '../../actions/transfer-terms.ts';
import { readChainAddress } from '../../assets/addresses.ts';
import { fromRaw, toRaw } from '../../assets/decimal.ts';
import { bytesToBase58, equalBytes, hexToBytes } from '../../crypto/encoding.ts';
import type { PolicyAction } from '../../policy/action.ts';
import { decodeTokenCall } from '../../signing/ethereum/contract-calls.ts';
import { parseHexBytes, parseQuantity, type Quantity } from '../../signing/fields.ts';
import { encodeSolanaTransfer } from '../../signing/solana/encode-transfer.ts';
import { decodeSolanaInstructions } from '../../signing/solana/instructions.ts';
import { parseSolanaWire } from '../../signing/solana/signer.ts';
import { decodeSolanaTransaction, type SolanaTransaction } from '../../signing/solana/wire.ts';
import { NotComparableError } from './built-part.ts';
import {
  acceptedTerms,
  actionFields,
  areTexts,
  completedOnEthereum,
  completedOnTron,
  type Fields,
  hasOnly,
  isCompletedBy,
} from './completed-fields.ts';
import type { SignTask } from './match-task.ts';

// Reads a transfer from the transaction to be signed, compares it with the body, and builds it again as the server
// does. The result must equal the transaction to be signed.

/** The asset, amount and recipient that a transaction moves. */
interface SignedMovement extends Movement {
  /** The chain that the transaction names. Undefined if it names none. */
  readonly caip2?: string | undefined;
  /** The decimals of the token, which the chain checks. Undefined if the transaction does not contain them. */
  readonly decimals?: number | undefined;
}

interface TransferForm {
  readonly method: string;
  /** Reads the transfer from the params. Returns undefined if the transaction is not exactly one transfer. */
  readonly read: (params: Fields) => SignedMovement | undefined;
}

const forms: Readonly<Record<string, TransferForm>> = {
  ethereum: { method: 'eth_signTransaction', read: readOnEthereum },
  solana: { method: 'signTransaction', read: readOnSolana },
  tron: { method: 'tron_signTransaction', read: readOnTron },
};

/** Reads the single transfer of a task. Returns undefined if the task does anything else. */
export function movementOf({ method, params }: SignTask, chainType: string): SignedMovement | undefined {
  const form = Object.hasOwn(forms, chainType) ? forms[chainType] : undefined;
  return form?.method === method ? form.read(params as Fields) : undefined;
}

/** Reads the transfer of a body and the movement of a task. Returns undefined if the task does anything else. */
function readRequested(
  body: Fields,
  task: SignTask,
  chainType: string,
): { request: TransferRequest; terms: TransferTerms; movement: SignedMovement } | undefined {
  const movement = movementOf(task, chainType);
  if (!isTransferRequest(body)) return undefined;
  const terms = acceptedTerms(() => readTransferTerms(chainType, body));
  if (terms === undefined || movement === undefined) return undefined;
  return isAsked(terms, movement, chainType) ? { request: body, terms, movement } : undefined;
}

/**
 * Returns whether a task is the transfer of the body, or the deposit to an exchange for it.
 *
 * @param hasExchange whether the server has an exchange.
 * @throws NotComparableError for a transfer to another asset or chain if the server has no exchange.
 */
export function isTransferOf(
  body: Fields,
  task: SignTask,
  { chainType, hasExchange }: { readonly chainType: string; readonly hasExchange: boolean },
): boolean {
  const read = readRequested(body, task, chainType);
  if (read?.terms.isExchange === true && !hasExchange) {
    throw new NotComparableError(
      'transfers to another asset or chain need an exchange, which the signer does not know; nothing was signed',
    );
  }
  return read !== undefined;
}

/**
 * Returns the action that policies evaluate for a transfer: its body, with the signed amount if an exchange
 * determines the amount.
 */
export function requestedTransferAction(
  body: Fields,
  task: SignTask,
  chainType: string,
): PolicyAction | undefined {
  const read = readRequested(body, task, chainType);
  if (read === undefined) return undefined;
  const { request, terms, movement } = read;
  const { source } = terms;
  const spent =
    fixesArrival(terms) && 'asset' in source ? fromRaw(movement.rawAmount, source.decimals) : undefined;
  return transferAction(request, terms, spent);
}

const ofTransfer: readonly string[] = [
  ...['source', 'destination', 'amount', 'amount_type'],
  ...['fee_configuration', 'slippage_bps', 'custody_options'],
  ...actionFields,
];

/** Checks only the fields that this file reads. The server has validated the rest of the body. */
function isTransferRequest(body: Fields): body is Fields & TransferRequest {
  const { amount, amount_type: type, source, destination } = body;
  return (
    hasOnly(body, ofTransfer) &&
    areTexts({ amount, amount_type: type }, [], ['amount', 'amount_type']) &&
    areTexts(source, [], ['asset', 'asset_address', 'chain', 'amount']) &&
    areTexts(destination, [], ['address', 'asset', 'chain'])
  );
}

/**
 * Returns whether the transaction moves what the body requests.
 *
 * NOTE: an exchange chooses its own deposit address, and the amount to spend for a fixed amount that arrives.
 */
function isAsked(terms: TransferTerms, movement: SignedMovement, chainType: string): boolean {
  const { source, destination, isExchange } = terms;
  return (
    isOfAsset(movement, source, chainType) &&
    (isExchange ? 'asset' in source : isSameAddress(chainType, movement.to, destination)) &&
    isAskedAmount(terms, movement)
  );
}

/** Returns whether a movement is of this asset. The chain is compared only if the movement names it. */
export function isOfAsset(
  { caip2, tokenAddress }: SignedMovement,
  asset: { readonly chain: { readonly caip2: string }; readonly tokenAddress: string | null },
  chainType: string,
): boolean {
  if (caip2 !== undefined && caip2 !== asset.chain.caip2) return false;
  return tokenAddress === null || asset.tokenAddress === null
    ? tokenAddress === asset.tokenAddress
    : isSameAddress(chainType, tokenAddress, asset.tokenAddress);
}

function isSameAddress(chainType: string, one: string, other: string): boolean {
  const read = readChainAddress(chainType, one);
  return read !== undefined && read === readChainAddress(chainType, other);
}

/** All values that `decimals()` of an ERC-20 token can have, a uint8. */
const anyDecimals: readonly number[] = Array.from({ length: 256 }, (_, index) => index);

/**
 * Returns whether a movement has the amount that the body requests.
 *
 * CHOICE: only the chain knows the decimals of an ERC-20 token without a name, and the signer cannot read the chain.
 * So the amount of such a token is compared except for the number of trailing zeros.
 */
function isAskedAmount(terms: TransferTerms, { rawAmount, decimals }: SignedMovement): boolean {
  if (fixesArrival(terms)) return true;
  const { source, amount } = terms;
  const known = 'asset' in source ? source.decimals : decimals;
  const possible = known === undefined ? anyDecimals : [known];
  return possible.some((each) => toRaw(amount, each) === rawAmount);
}

function readOnEthereum(params: Fields): SignedMovement | undefined {
  const transaction = params.transaction as Fields;
  const { to, data, value = 0, chain_id: chainId } = transaction;
  const movement = movementOfCall(String(to), {
    data: parseHexBytes(typeof data === 'string' ? data : '0x', '/transaction/data'),
    value: parseQuantity(value as Quantity, '/transaction/value', 256),
  });
  if (movement === undefined) return undefined;
  if (!isCompletedBy(ethereumTransfer(movement), transaction, completedOnEthereum)) return undefined;
  return {
    ...movement,
    caip2: `eip155:${parseQuantity(chainId as Quantity, '/transaction/chain_id', 256)}`,
  };
}

/** Returns the movement of a call: its value, or the tokens that it transfers. */
function movementOfCall(
  to: string,
  { data, value }: { readonly data: Uint8Array; readonly value: bigint },
): Movement | undefined {
  if (data.length === 0) return { tokenAddress: null, to, rawAmount: value };
  const call = decodeTokenCall(data);
  return call?.name === 'transfer' ? { tokenAddress: to, to: call.to, rawAmount: call.amount } : undefined;
}

function readOnSolana({ transaction }: Fields): SignedMovement | undefined {
  const signed = decodeSolanaTransaction(parseSolanaWire(String(transaction)));
  const read = solanaMovement(signed);
  const [payer] = signed.staticKeys;
  if (read === undefined || payer === undefined) return undefined;
  const { movement, tokenProgram } = read;
  const { tokenAddress, decimals = 0, to, rawAmount } = movement;
  const mint = tokenAddress === null ? undefined : { address: tokenAddress, decimals, tokenProgram };
  const wire = encodeSolanaTransfer({ from: bytesToBase58(payer), to, mint, rawAmount });
  const built = decodeSolanaTransaction(wire);
  // The decoded fields share memory with the wire bytes, so this also changes the transaction.
  built.recentBlockhash.set(signed.recentBlockhash);
  return equalBytes(built.message, signed.message) ? movement : undefined;
}

/**
 * Returns the movement of the last instruction. For tokens, the previous instruction creates the recipient's token
 * account and names its owner.
 */
function solanaMovement(
  signed: SolanaTransaction,
): { movement: SignedMovement; tokenProgram: string } | undefined {
  const last = decodeSolanaInstructions(signed).at(-1);
  const { to, lamports, mint, amount, decimals } = last?.fields ?? {};
  const name = `${last?.program} ${last?.instructionName}`;
  const tokenProgram = last?.programId ?? '';
  if (name === 'system Transfer' && typeof to === 'string' && typeof lamports === 'bigint') {
    return { movement: { tokenAddress: null, to, rawAmount: lamports }, tokenProgram };
  }
  const owner = signed.staticKeys[signed.instructions[0]?.accountIndexes[OWNER_OF_NEW_ACCOUNT] ?? -1];
  if (name !== 'token TransferChecked' || owner === undefined) return undefined;
  if (typeof mint !== 'string' || typeof amount !== 'bigint') return undefined;
  const moved = { tokenAddress: mint, to: bytesToBase58(owner), rawAmount: amount };
  return { movement: { ...moved, decimals: Number(decimals) }, tokenProgram };
}

// The index of the owner among the accounts: payer, token account, owner, mint, programs. Source:
// spl-associated-token-account instruction.rs.
const OWNER_OF_NEW_ACCOUNT = 2;

function readOnTron(params: Fields): SignedMovement | undefined {
  const rawData = params.raw_data as Fields;
  const [contract = {}] = rawData.contract as readonly Fields[];
  const movement = tronMovement(contract);
  const from = String(contract.owner_address);
  const addresses = [from, movement?.to, movement?.tokenAddress ?? from];
  const areRead = addresses.every((each) => readChainAddress('tron', String(each)) !== undefined);
  if (movement === undefined || !areRead) return undefined;
  return isCompletedBy(tronTransfer({ ...movement, from }), rawData, completedOnTron) ? movement : undefined;
}

function tronMovement(contract: Fields): Movement | undefined {
  const { type, to_address: to, amount, contract_address: token, data } = contract;
  if (type === 'TransferContract') {
    return Number.isSafeInteger(amount)
      ? { tokenAddress: null, to: String(to), rawAmount: BigInt(amount as number) }
      : undefined;
  }
  if (type !== 'TriggerSmartContract' || typeof data !== 'string') return undefined;
  const call = decodeTokenCall(hexToBytes(data));
  if (call?.name !== 'transfer') return undefined;
  return { tokenAddress: String(token), to: `41${call.to.slice(2)}`, rawAmount: call.amount };
}
