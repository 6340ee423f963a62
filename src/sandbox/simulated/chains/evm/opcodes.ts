import type { Common } from '@ethereumjs/common';
import { type EVMOpts, getOpcodesForHF } from '@ethereumjs/evm';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesTo0xHex } from '../../../../engine/crypto/encoding.ts';

// Opcodes of @ethereumjs/evm with changes: some pause for other work, and REVERT limits its memory.

const REVERT = 0xfd;
/** The opcode that takes the most time per gas, if its input is long. */
const KECCAK256 = 0x20;
/** The number of bytes that are hashed without a pause. */
const HASH_PART = 65_536;

type Handlers = ReturnType<typeof getOpcodesForHF>['handlers'];
type RunState = Parameters<NonNullable<ReturnType<Handlers['get']>>>[0];

/** Returns an opcode that works as usual and then calls `pauseIfDue`. */
export function pausingAfter(
  rules: Common,
  opcode: number,
  pauseIfDue: () => Promise<void> | undefined,
): NonNullable<EVMOpts['customOpcodes']>[number] {
  const { opcodes, handlers, dynamicGasHandlers } = getOpcodesForHF(rules);
  const { name, fee } = opcodes.get(opcode)!;
  const run = handlers.get(opcode)!;
  const gasFunction = dynamicGasHandlers.get(opcode);
  return {
    ...{ opcode, opcodeName: name, baseFee: fee },
    ...(gasFunction === undefined ? {} : { gasFunction }),
    logicFunction(state: Parameters<typeof run>[0], common: Common) {
      run(state, common);
      return pauseIfDue();
    },
  };
}

/**
 * Returns the opcode KECCAK256, which calls `pauseIfDue` after each part of a long input. A hash of 1 MB takes 100 ms,
 * for the gas of a few transfers.
 */
export function pausingHash(
  rules: Common,
  pauseIfDue: () => Promise<void> | undefined,
): NonNullable<EVMOpts['customOpcodes']>[number] {
  const opcode = pausingAfter(rules, KECCAK256, pauseIfDue) as {
    logicFunction: (state: RunState, common: Common) => Promise<void> | undefined;
  };
  const { logicFunction: hashShort } = opcode;
  async function hashLong({ stack, memory }: RunState, offset: number, length: number): Promise<void> {
    const hash = keccak_256.create();
    for (let at = 0; at < length; at += HASH_PART) {
      hash.update(memory.read(offset + at, Math.min(HASH_PART, length - at)));
      await pauseIfDue();
    }
    stack.push(BigInt(bytesTo0xHex(hash.digest())));
  }
  return {
    ...(opcode as ReturnType<typeof pausingAfter>),
    logicFunction(state: RunState, common: Common) {
      const [offset, length] = state.stack.popN(2) as [bigint, bigint];
      if (length > HASH_PART) return hashLong(state, Number(offset), Number(length));
      state.stack.push(length);
      state.stack.push(offset);
      return hashShort(state, common);
    },
  };
}

/**
 * Returns the opcode REVERT without operands if its memory would cost more gas than is left.
 *
 * NOTE: for observers of steps, the machine reads the data of a REVERT before it charges the gas. That data could
 * otherwise take any amount of memory.
 */
export function boundedRevert(rules: Common): NonNullable<EVMOpts['customOpcodes']>[number] {
  const { handlers, dynamicGasHandlers } = getOpcodesForHF(rules);
  const gasOf = dynamicGasHandlers.get(REVERT)!;
  return {
    ...{ opcode: REVERT, opcodeName: 'REVERT', baseFee: 0 },
    async gasFunction(state, gas, common) {
      const cost = await gasOf(state, gas, common);
      if (cost > state.gasLeft) {
        state.stack.popN(2);
        state.stack.push(0n);
        state.stack.push(0n);
      }
      return cost;
    },
    logicFunction: handlers.get(REVERT)!,
  };
}
