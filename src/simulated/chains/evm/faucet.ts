import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex, utf8ToBytes } from '../../../crypto/encoding.ts';
import { debitPayer } from '../fund.ts';
import { NATIVE } from '../ledger.ts';
import { type Deposit, type Funded, InvalidDepositError, recordDeposit, registerToken } from '../world.ts';
import type { EvmParts } from './parts.ts';

/** The sender of faucet deposits in lists of transfers. */
const FAUCET_ADDRESS = '0x00000000000000000000000000000000000fa0ce';
const MAX_AMOUNT = 2n ** 256n - 1n;

/**
 * Deposits an asset, from the faucet or a payer. Throws InvalidDepositError, and RevertError when the payer holds too
 * little.
 */
export function fundEvm({ world, caip2, state, blocks }: EvmParts, deposit: Deposit): Funded {
  const { ledger } = state;
  const owner = checkAddress(deposit.address, 'address');
  const asset = deposit.tokenAddress === null ? NATIVE : checkAddress(deposit.tokenAddress, 'tokenAddress');
  const { payer, rawAmount } = deposit;
  if (payer === undefined && ledger.total(asset) + rawAmount > MAX_AMOUNT) {
    throw new InvalidDepositError('rawAmount', 'expected a total supply below 2^256');
  }
  if (asset !== NATIVE) {
    const { decimals = 18, symbol = 'TOKEN' } = deposit;
    registerToken(world, caip2, { address: asset, decimals, symbol, program: null });
  }
  if (payer !== undefined) debitPayer(ledger, { payer, asset, rawAmount });
  ledger.credit(owner, asset, rawAmount);
  const block = blocks.head();
  const movement = { sender: payer ?? FAUCET_ADDRESS, recipient: owner, asset, amount: rawAmount };
  const hash = recordDeposit(world, caip2, { ...movement, block, hashOf });
  return { hash, rawBalance: ledger.balance(owner, asset), blockNumber: BigInt(block.number) };
}

function hashOf(text: string): string {
  return bytesTo0xHex(keccak_256(utf8ToBytes(text)));
}

function checkAddress(address: string, field: 'address' | 'tokenAddress'): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(address)) return address.toLowerCase();
  throw new InvalidDepositError(field, `expected 0x and 40 hex digits, got \`${address}\``);
}
