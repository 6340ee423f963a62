import { bytesTo0xHex } from '../../../../engine/crypto/encoding.ts';
import { encodeTokenCall } from '../../../../engine/signing/ethereum/contract-calls.ts';
import { wordOf } from './contracts/storage-layout.ts';
import { type Interpreter, type Tracer, watched } from './interpreter.ts';
import { readContract } from './machine.ts';
import { makeOverlay } from './overlay.ts';
import type { EvmParts } from './parts.ts';
import type { EvmState } from './state.ts';
import { textOf } from './state-manager.ts';

/**
 * Finds the storage slot of a token balance. Tokens of real chains use different layouts, so this observes
 * `balanceOf`: it reads the slot and returns its value.
 */

/** A balance that no token has by accident. */
const PROBE = 0x5eed_c0de_5eed_c0den;
/** The maximum number of slots to try. No known token reads so many slots for a balance. */
const MAX_SLOTS = 64;

interface Slot {
  readonly address: string;
  readonly slot: string;
}

interface Account {
  readonly token: string;
  readonly owner: string;
}

/**
 * Returns the storage slot with an account's balance in a token. Returns undefined if the token computes its
 * balances, or if there is no token at the address.
 */
export async function findBalanceSlot(parts: EvmParts, account: Account): Promise<Slot | undefined> {
  const { state } = parts;
  const interpreter = await parts.interpreter();
  const read: Slot[] = [];
  const tracer: Tracer = {
    step({ opcode, stack, address }) {
      if (opcode.name === 'SLOAD') read.push({ address: textOf(address), slot: wordOf(stack.at(-1)!) });
    },
  };
  const balance = await balanceOf(watched(interpreter, { tracer }), state, account);
  if (balance === undefined || read.length > MAX_SLOTS) return undefined;
  // `balanceOf` usually reads the balance last, so start there.
  for (const at of read.reverse()) {
    const probed = makeOverlay(state);
    probed.state.bytecode.setWord(at.address, at.slot, wordOf(PROBE));
    if ((await balanceOf(interpreter, probed.state, account)) === PROBE) return at;
  }
  return undefined;

  async function balanceOf(by: Interpreter, seen: EvmState, { token, owner }: Account) {
    const data = encodeTokenCall({ name: 'balanceOf', owner });
    const returned = await readContract(by, seen, { block: parts.blocks.head(), to: token, data });
    return returned?.length === 32 ? BigInt(bytesTo0xHex(returned)) : undefined;
  }
}
