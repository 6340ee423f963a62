import { bytesToHex, hexToBytes } from '../../../engine/crypto/encoding.ts';
import type { ActionUnit } from '../../../engine/policy/action.ts';
import { tronAddressText } from '../../../engine/signing/tron/signer.ts';

/** A transfer of one asset from a wallet to one receiver. */
export interface PlainTransfer {
  /** The contract or mint in the notation of the chain type; null for the native asset. */
  readonly tokenAddress: string | null;
  readonly recipient: string;
  /** The amount in base units. */
  readonly rawAmount: bigint;
}

// Programs whose instructions move no assets. They commonly accompany a Solana transfer.
const BESIDE_TRANSFERS = new Set([
  'ComputeBudget111111111111111111111111111111',
  'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr',
  'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL',
]);

/**
 * The transfer that a transaction of a wallet makes, read from the units that policies evaluate. Undefined unless it
 * is exactly one transfer of one asset.
 *
 * NOTE: on Solana, the receiver of a token is a token account. The bytes do not contain its owner.
 */
export function plainTransferOf(units: readonly ActionUnit[]): PlainTransfer | undefined {
  const moving = units.filter(({ solanaInstruction: instruction }) => {
    const program = instruction?.programId;
    return typeof program !== 'string' || !BESIDE_TRANSFERS.has(program);
  });
  const [unit] = moving;
  if (unit === undefined || moving.length !== 1) return undefined;
  if (unit.ethereumCall !== undefined) return transferOfCall(unit.ethereumCall);
  if (unit.solanaInstruction !== undefined) return transferOfInstruction(unit.solanaInstruction);
  return unit.tronContract === undefined ? undefined : transferOfContract(unit.tronContract);
}

function transferOfCall({
  to,
  value,
  data,
}: NonNullable<ActionUnit['ethereumCall']>): PlainTransfer | undefined {
  if (to === undefined) return undefined;
  if (data.length === 0) return { tokenAddress: null, recipient: to, rawAmount: value };
  const token = value === 0n ? readTokenTransfer(data) : undefined;
  return token && { tokenAddress: to, recipient: `0x${token.recipientHex}`, rawAmount: token.rawAmount };
}

function transferOfInstruction({
  program,
  name,
  fields,
}: NonNullable<ActionUnit['solanaInstruction']>): PlainTransfer | undefined {
  const { to, lamports, mint, destination, amount } = fields;
  if (program === 'system' && name === 'Transfer') {
    if (typeof to !== 'string' || typeof lamports !== 'bigint') return undefined;
    return { tokenAddress: null, recipient: to, rawAmount: lamports };
  }
  if (program !== 'token' || name !== 'TransferChecked') return undefined;
  if (typeof mint !== 'string' || typeof destination !== 'string' || typeof amount !== 'bigint') {
    return undefined;
  }
  return { tokenAddress: mint, recipient: destination, rawAmount: amount };
}

function transferOfContract({
  type,
  fields,
  data,
}: NonNullable<ActionUnit['tronContract']>): PlainTransfer | undefined {
  const { to_address: to, amount, contract_address: contract, call_value: value } = fields;
  if (type === 'TransferContract' && typeof to === 'string' && typeof amount === 'bigint') {
    return { tokenAddress: null, recipient: tronText(to), rawAmount: amount };
  }
  const token =
    data === undefined || (value !== undefined && value !== 0n) ? undefined : readTokenTransfer(data);
  if (token === undefined || typeof contract !== 'string') return undefined;
  const recipient = tronText(`41${token.recipientHex}`);
  return { tokenAddress: tronText(contract), recipient, rawAmount: token.rawAmount };
}

function tronText(hexAddress: string): string {
  return tronAddressText(hexToBytes(hexAddress));
}

// transfer(address,uint256): selector || 12 zero bytes || address || amount
const TRANSFER = /^a9059cbb0{24}([0-9a-f]{40})([0-9a-f]{64})$/;

function readTokenTransfer(data: Uint8Array): { recipientHex: string; rawAmount: bigint } | undefined {
  const [, recipientHex, amountHex] = TRANSFER.exec(bytesToHex(data)) ?? [];
  if (recipientHex === undefined) return undefined;
  return { recipientHex, rawAmount: BigInt(`0x${amountHex}`) };
}
