import { type EVM, EVMError, type ExecResult, Message } from '@ethereumjs/evm';
import { createAddressFromString } from '@ethereumjs/util';
import { bytesTo0xHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import type { EvmLog } from '../receipts.ts';

// Runs native programs: contracts that TypeScript implements instead of bytecode. They can call other contracts.

const { errorMessages: errors } = EVMError;
const MAX_DEPTH = 1_024;

/** Thrown when a native program reverts. `data` is the revert data. */
export class ProgramRevertError extends Error {
  readonly data: Uint8Array;

  constructor(data: Uint8Array) {
    super('the program has reverted');
    this.data = data;
  }
}

/** Thrown when a native program needs more gas than it has. */
class OutOfGasError extends Error {}
/** Thrown when a native program tries to change the state in a static call. */
class StaticCallError extends Error {}

interface Call {
  readonly from?: string;
  readonly to: string;
  readonly value?: bigint;
  readonly data?: Uint8Array;
  readonly gas: bigint;
}

interface Called {
  readonly succeeds: boolean;
  readonly returned: Uint8Array;
  readonly gasUsed: bigint;
}

/** The interface of a native program to the machine while it runs. Addresses are lower-case 0x hex. */
export interface Frame {
  readonly address: string;
  readonly caller: string;
  readonly value: bigint;
  readonly data: Uint8Array;
  charge(gas: bigint): void;
  /** Throws in a static call, in which the state must not change. */
  requireWritable(): void;
  log(log: EvmLog): void;
  /** Calls a contract. A failing call uses gas, but changes nothing else. */
  call(call: Call): Promise<Called>;
  /** Runs `work`, and undoes its changes to the state if it returns false. */
  attempt(work: () => Promise<boolean>): Promise<void>;
}

/**
 * Runs a native program.
 *
 * @param attempt runs work, and undoes its changes to the state if it returns false.
 */
export async function runProgram(
  evm: EVM,
  message: Message,
  attempt: Frame['attempt'],
  program: (frame: Frame) => Promise<Uint8Array>,
): Promise<ExecResult> {
  const logs: EvmLog[] = [];
  let left = message.gasLimit;
  const charge = (gas: bigint): void => {
    if (gas > left) throw new OutOfGasError();
    left -= gas;
  };
  const address = bytesTo0xHex(message.to!.bytes);
  const frame: Frame = {
    ...{ address, caller: bytesTo0xHex(message.caller.bytes), value: message.value, data: message.data },
    charge,
    requireWritable() {
      if (message.isStatic) throw new StaticCallError();
    },
    log: (log) => void logs.push(log),
    async call({ from = address, to, value = 0n, data = new Uint8Array(), gas }) {
      // A caller keeps 1/64 of its gas (EIP-150).
      const most = left - left / 64n;
      if (gas > most) throw new OutOfGasError();
      if (message.depth + 1 >= MAX_DEPTH) return { succeeds: false, returned: new Uint8Array(), gasUsed: 0n };
      const selfdestruct = new Map(message.selfdestruct);
      const createdAddresses = new Set(message.createdAddresses);
      const { execResult } = await evm.runCall({
        message: new Message({
          ...{ caller: createAddressFromString(from), to: createAddressFromString(to), value, data },
          ...{ gasLimit: gas, depth: message.depth + 1, isStatic: message.isStatic },
          ...{ selfdestruct, createdAddresses, gasRefund: message.gasRefund },
        }),
      });
      charge(execResult.executionGasUsed);
      const succeeds = execResult.exceptionError === undefined;
      if (succeeds) {
        for (const [gone, heir] of selfdestruct) message.selfdestruct?.set(gone, heir);
        for (const created of createdAddresses) message.createdAddresses?.add(created);
        message.gasRefund = execResult.gasRefund ?? 0n;
        for (const [bytes, topics, content] of execResult.logs ?? []) {
          logs.push({
            ...{ address: bytesTo0xHex(bytes), data: bytesTo0xHex(content) },
            topics: topics.map((topic) => bytesTo0xHex(topic)),
          });
        }
      }
      return { succeeds, returned: execResult.returnValue, gasUsed: execResult.executionGasUsed };
    },
    async attempt(work) {
      const before = logs.length;
      await attempt(async () => {
        const isDone = await work();
        if (!isDone) logs.length = before;
        return isDone;
      });
    },
  };
  const { selfdestruct, createdAddresses } = message;
  const ended = (error: EVMError['error'], returnValue: Uint8Array = new Uint8Array()): ExecResult => ({
    executionGasUsed: error === errors.REVERT ? message.gasLimit - left : message.gasLimit,
    ...{ returnValue, exceptionError: new EVMError(error) },
  });
  try {
    const returnValue = await program(frame);
    return {
      ...{ executionGasUsed: message.gasLimit - left, returnValue },
      ...{ ...(selfdestruct === undefined ? {} : { selfdestruct }) },
      ...{ ...(createdAddresses === undefined ? {} : { createdAddresses }) },
      logs: logs.map((log) => [
        hexToBytes(log.address.slice(2)),
        log.topics.map((topic) => hexToBytes(topic.slice(2))),
        hexToBytes(log.data.slice(2)),
      ]),
    };
  } catch (error) {
    if (error instanceof ProgramRevertError) return ended(errors.REVERT, error.data);
    if (error instanceof OutOfGasError) return ended(errors.OUT_OF_GAS);
    if (error instanceof StaticCallError) return ended(errors.STATIC_STATE_CHANGE);
    throw error;
  }
}
