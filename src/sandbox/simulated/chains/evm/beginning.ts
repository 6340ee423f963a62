import type { Genesis } from './contracts/genesis.ts';
import { ZERO_WORD } from './state.ts';

/** The initial state of a chain. It is read wherever nothing has been stored. Addresses are lower-case 0x hex. */
export interface Beginning {
  code(address: string): Uint8Array;
  /** Returns the word in a slot. Slot and word are 64 hex digits. */
  word(address: string, slot: string): string;
  /** Returns the balance of the native asset. */
  native(address: string): bigint;
  nonce(address: string): number;
  /** Returns the smart contract to which the account delegates (EIP-7702), or undefined if it does not. */
  delegate(address: string): string | undefined;
}

const NO_CODE = new Uint8Array();

/** Returns the initial state: the sandbox's contracts on top of the state of a real chain, if there is one. */
export function beginningOf(genesis: Genesis, upstream: Beginning | undefined): Beginning {
  return {
    code: (address) => genesis.account(address)?.code ?? upstream?.code(address) ?? NO_CODE,
    word(address, slot) {
      const own = genesis.account(address);
      if (own !== undefined) return own.words.get(slot) ?? ZERO_WORD;
      return upstream?.word(address, slot) ?? ZERO_WORD;
    },
    native(address) {
      const own = genesis.native();
      if (own?.owner === address) return own.amount;
      return address.startsWith('0x') ? (upstream?.native(address) ?? 0n) : 0n;
    },
    nonce: (address) => upstream?.nonce(address) ?? 0,
    delegate: (address) => (genesis.account(address) === undefined ? upstream?.delegate(address) : undefined),
  };
}
