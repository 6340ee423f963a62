import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '../../crypto/encoding.ts';
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
  /** Whom deposits come from, in the lists of transfers. */
  readonly faucet: string;
  /** What all holdings of an asset may come to. */
  readonly most: bigint;
  readonly usualDecimals: number;
  isAddress(text: string): boolean;
}

/** Gives out an asset on a chain whose tokens are kept by owner. Throws InvalidDepositError. */
export function fundPlainly(funding: PlainFunding): Funded {
  const { world, caip2, ledger, block, deposit, faucet, most, isAddress } = funding;
  const { address, tokenAddress, rawAmount, decimals = funding.usualDecimals, symbol = 'TOKEN' } = deposit;
  const { payer } = deposit;
  for (const [field, text] of [
    ['address', address],
    ['tokenAddress', tokenAddress],
  ] as const) {
    if (text === null || isAddress(text)) continue;
    throw new InvalidDepositError(field, 'expected an address of this chain');
  }
  const asset = tokenAddress ?? NATIVE;
  if (payer === undefined && ledger.total(asset) + rawAmount > most) {
    throw new InvalidDepositError('rawAmount', `expected all holdings together to stay within ${most}`);
  }
  if (tokenAddress !== null) {
    registerToken(world, caip2, { address: tokenAddress, decimals, symbol, program: null });
  }
  if (payer !== undefined) takeFrom(ledger, { payer, asset, rawAmount });
  ledger.credit(address, asset, rawAmount);
  const movement = { sender: payer ?? faucet, recipient: address, asset, amount: rawAmount };
  const hash = recordDeposit(world, caip2, { ...movement, block, hashOf });
  return { hash, rawBalance: ledger.balance(address, asset), blockNumber: BigInt(block.number) };
}

/** Takes what is given out of the payer's account. Throws RevertError when it holds less. */
export function takeFrom(
  ledger: Ledger,
  { payer, asset, rawAmount }: { payer: string; asset: string; rawAmount: bigint },
): void {
  ledger.debit({ owner: payer, asset, amount: rawAmount, shortfall: `\`${payer}\` holds too little` });
}

function hashOf(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
