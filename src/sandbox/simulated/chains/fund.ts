import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '../../../engine/crypto/encoding.ts';
import { type Ledger, NATIVE } from './ledger.ts';
import type { Block } from './pool.ts';
import {
  type Deposit,
  type Funded,
  InvalidDepositError,
  recordDeposit,
  registerToken,
  type World,
} from './world.ts';

interface PlainFunding {
  readonly world: World;
  readonly caip2: string;
  readonly ledger: Ledger;
  readonly block: Block;
  readonly deposit: Deposit;
  /** The sender of faucet deposits in lists of transfers. */
  readonly faucet: string;
  /** The maximum total supply of an asset. */
  readonly maxSupply: bigint;
  readonly defaultDecimals: number;
  isAddress(text: string): boolean;
}

/**
 * Deposits an asset on a chain that stores token balances per owner.
 *
 * @throws InvalidDepositError
 */
export function fundPlain(funding: PlainFunding): Funded {
  const { world, caip2, ledger, block, deposit, faucet, maxSupply, isAddress } = funding;
  const { address, tokenAddress, rawAmount, decimals = funding.defaultDecimals, symbol = 'TOKEN' } = deposit;
  const { payer } = deposit;
  for (const [field, text] of [
    ['address', address],
    ['tokenAddress', tokenAddress],
  ] as const) {
    if (text === null || isAddress(text)) continue;
    throw new InvalidDepositError(field, `expected an address of \`${caip2}\`, got \`${text}\``);
  }
  const asset = tokenAddress ?? NATIVE;
  if (payer === undefined && ledger.total(asset) + rawAmount > maxSupply) {
    throw new InvalidDepositError('rawAmount', `expected a total supply of at most ${maxSupply}`);
  }
  if (tokenAddress !== null) {
    registerToken(world, caip2, { address: tokenAddress, decimals, symbol, program: null });
  }
  if (payer !== undefined) debitPayer(ledger, { payer, asset, rawAmount });
  ledger.credit(address, asset, rawAmount);
  const movement = { sender: payer ?? faucet, recipient: address, asset, amount: rawAmount };
  const hash = recordDeposit(world, caip2, { ...movement, block, hashOf });
  return { hash, rawBalance: ledger.balance(address, asset), blockNumber: BigInt(block.number) };
}

/**
 * Debits the payer's account.
 *
 * @throws RevertError if the balance is too low.
 */
export function debitPayer(
  ledger: Ledger,
  { payer, asset, rawAmount }: { payer: string; asset: string; rawAmount: bigint },
): void {
  ledger.debit({ owner: payer, asset, amount: rawAmount, shortfall: `\`${payer}\` holds too little` });
}

function hashOf(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
