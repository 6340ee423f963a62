import { sha256 } from '@noble/hashes/sha2.js';
import {
  base58ToBytes,
  bytesToBase58,
  concatBytes,
  utf8ToBytes,
} from '../../../../engine/crypto/encoding.ts';
import { associatedTokenAddress, TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';
import { debitPayer } from '../fund.ts';
import { NATIVE, RevertError } from '../ledger.ts';
import { type Deposit, type Funded, InvalidDepositError, recordDeposit, registerToken } from '../world.ts';
import type { SolanaParts } from './parts.ts';
import { holding, rentExemption, TOKEN_ACCOUNT_BYTES } from './state.ts';

/** The sender of faucet deposits in lists of transfers. */
const FAUCET_ADDRESS = 'Faucet1111111111111111111111111111111111111';
const U64_MAX = 2n ** 64n - 1n;

/**
 * Deposits an asset, from the faucet or a payer; creates the token account if necessary. Throws InvalidDepositError,
 * and RevertError when the payer holds too little.
 */
export function fundSolana(parts: SolanaParts, deposit: Deposit): Funded {
  const { world, caip2, state, blocks } = parts;
  const { address, tokenAddress, rawAmount, decimals = 6, symbol = 'TOKEN' } = deposit;
  const { payer } = deposit;
  const { ledger } = state;
  checkAddress(address, 'address');
  if (tokenAddress !== null) checkAddress(tokenAddress, 'tokenAddress');
  const asset = tokenAddress ?? NATIVE;
  if (payer === undefined && ledger.total(asset) + rawAmount > U64_MAX) {
    throw new InvalidDepositError('rawAmount', 'expected a total supply below 2^64');
  }
  if (tokenAddress === null) {
    if (payer !== undefined) debitPayer(ledger, { payer, asset, rawAmount });
    ledger.credit(address, NATIVE, rawAmount);
  } else {
    registerToken(world, caip2, { address: tokenAddress, decimals, symbol, program: TOKEN_PROGRAM });
    fundToken(parts, { owner: address, mint: tokenAddress, amount: rawAmount, payer });
  }
  const block = blocks.head();
  const movement = { sender: payer ?? FAUCET_ADDRESS, recipient: address, asset, amount: rawAmount };
  const hash = recordDeposit(world, caip2, { ...movement, block, hashOf });
  const rawBalance =
    tokenAddress === null ? ledger.balance(address, NATIVE) : holding(state, address, tokenAddress);
  return { hash, rawBalance, blockNumber: BigInt(block.number) };
}

function fundToken(
  { state }: SolanaParts,
  { owner, mint, amount, payer }: { owner: string; mint: string; amount: bigint; payer: string | undefined },
): void {
  const accountOf = (holder: string) => associatedTokenAddress(holder, mint, state.mint(mint)!.program);
  if (payer !== undefined) {
    const own = state.tokenAccount(accountOf(payer));
    if (own === undefined || own.amount < amount) throw new RevertError(`\`${payer}\` holds too little`);
    state.writeTokenAccount({ ...own, amount: own.amount - amount });
  }
  const account = accountOf(owner);
  if (state.tokenAccount(account) === undefined) {
    state.openTokenAccount({ address: account, owner, mint });
    // The payer also pays the rent of the new account.
    const rent = rentExemption(TOKEN_ACCOUNT_BYTES);
    if (payer !== undefined) debitPayer(state.ledger, { payer, asset: NATIVE, rawAmount: rent });
    state.ledger.credit(account, NATIVE, rent);
  }
  const known = state.tokenAccount(account)!;
  state.writeTokenAccount({ ...known, amount: known.amount + amount });
}

// 64 bytes, the length of a signature.
function hashOf(text: string): string {
  const half = sha256(utf8ToBytes(text));
  return bytesToBase58(concatBytes(half, sha256(half)));
}

function checkAddress(address: string, field: 'address' | 'tokenAddress'): string {
  try {
    if (base58ToBytes(address).length === 32) return address;
  } catch {
    // refused below
  }
  throw new InvalidDepositError(field, `expected 32 bytes in base58, got \`${address}\``);
}
