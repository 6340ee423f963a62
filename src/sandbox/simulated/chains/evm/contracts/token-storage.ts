import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '../../../../../engine/crypto/encoding.ts';
import { type ContractAccounts, type Ledger, NATIVE, RevertError } from '../../ledger.ts';
import type { Bytecode } from '../state.ts';
import { solidity } from './generated/solidity.ts';
import { addressWord, memberSlot, numberIn, stringWords, wordOf } from './storage-layout.ts';

/**
 * The balances and allowances of the sandbox's tokens, which are in the storage of their contracts. The faucet, the
 * bank, the exchange and the card issuer change them directly, without calling the contract.
 */

const { slots } = solidity.Token;
const BALANCES = wordOf(slots.balanceOf);
const ALLOWANCES = wordOf(slots.allowance);
export const SUPPLY_SLOT = wordOf(slots.totalSupply);
const MAX_AMOUNT = 2n ** 256n - 1n;
const MAX_REMEMBERED = 10_000;

/** The decimals and the symbol of a token of the sandbox. */
export interface TokenTerms {
  readonly decimals: number;
  readonly symbol: string;
}

/** The EIP-712 domains of the tokens whose name and version there are not the default: the symbol and 1. */
const published: Readonly<Record<string, readonly [name: string, version: string]>> = {
  USDC: ['USD Coin', '2'],
  EURC: ['EURC', '2'],
  USDT: ['Tether USD', '1'],
};

export function tokenWords({ decimals, symbol }: TokenTerms): [slot: string, word: string][] {
  const [name, version] = published[symbol] ?? [symbol, '1'];
  return [
    ...stringWords(wordOf(slots.name), name),
    ...stringWords(wordOf(slots.symbol), symbol),
    ...stringWords(wordOf(slots.version), version),
    [wordOf(slots.decimals), wordOf(decimals)],
  ];
}

const balanceSlots = new Map<string, string>();

/** Returns the slot of an account's balance. It is the same in every token. */
export function balanceSlot(owner: string): string {
  const known = balanceSlots.get(owner);
  if (known !== undefined) return known;
  if (balanceSlots.size >= MAX_REMEMBERED) balanceSlots.clear();
  const slot = memberSlot(BALANCES, ownerWord(owner));
  balanceSlots.set(owner, slot);
  return slot;
}

export function allowanceSlot(owner: string, spender: string): string {
  return memberSlot(memberSlot(ALLOWANCES, addressWord(owner)), addressWord(spender));
}

/** Returns the word of an account. The account that collects fees has no address, so the hash of its name is used. */
function ownerWord(owner: string): string {
  if (owner.startsWith('0x')) return addressWord(owner);
  return bytesToHex(keccak_256(utf8ToBytes(owner)));
}

/** Returns a ledger that keeps the native asset in `native`, and tokens in the storage of their contracts. */
export function withTokens(native: Ledger, bytecode: Pick<Bytecode, 'word' | 'setWord'>): Ledger {
  const read = (token: string, slot: string): bigint => numberIn(bytecode.word(token, slot));
  const change = (owner: string, token: string, from: bigint, to: bigint): void => {
    bytecode.setWord(token, balanceSlot(owner), wordOf(to));
    bytecode.setWord(token, SUPPLY_SLOT, wordOf(read(token, SUPPLY_SLOT) + to - from));
  };
  const balance = (owner: string, asset: string): bigint =>
    asset === NATIVE ? native.balance(owner, asset) : read(asset, balanceSlot(owner));
  return {
    balance,
    setBalance(owner, asset, amount) {
      if (asset === NATIVE) native.setBalance(owner, asset, amount);
      else change(owner, asset, balance(owner, asset), amount);
    },
    debit({ owner, asset, amount, shortfall }) {
      if (asset === NATIVE) return native.debit({ owner, asset, amount, shortfall });
      const held = balance(owner, asset);
      if (held < amount) throw new RevertError(shortfall);
      change(owner, asset, held, held - amount);
    },
    credit(owner, asset, amount) {
      if (asset === NATIVE) return native.credit(owner, asset, amount);
      const held = balance(owner, asset);
      if (held + amount > MAX_AMOUNT) throw new RevertError('the balance would exceed 2^256 - 1');
      change(owner, asset, held, held + amount);
    },
    total: (asset) => (asset === NATIVE ? native.total(asset) : read(asset, SUPPLY_SLOT)),
  };
}

export function tokenAllowances({
  word,
  setWord,
}: Pick<Bytecode, 'word' | 'setWord'>): Pick<ContractAccounts, 'allowance' | 'setAllowance'> {
  return {
    allowance: ({ token, owner, spender }) => numberIn(word(token, allowanceSlot(owner, spender))),
    setAllowance: ({ token, owner, spender }, amount) =>
      setWord(token, allowanceSlot(owner, spender), wordOf(amount)),
  };
}
