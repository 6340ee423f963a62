import type { EVMResult, InterpreterStep, Message } from '@ethereumjs/evm';
import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import { LIMIT_EXCEEDED, RpcError } from '../../rpc-calls.ts';
import { faultOf, standardReasonOf } from '../execution-faults.ts';
import { textOf } from '../state-manager.ts';
import type { ResultTracer } from './tracers.ts';
import { quantity } from './views.ts';

/** CHOICE: a trace of calls has at most 10,000 calls and logs. */
const MAX_FRAMES = 10_000;
/** CHOICE: the inputs, outputs and logs of a trace have at most 10 MB together. */
const MAX_BYTES = 10_000_000;
const MAX_DEPTH = 1_024;
/** The maximum memory of an operation. It is more than the gas of a whole block can pay for. */
const MAX_MEMORY = 8_000_000n;
/** The gas that a call with value gets for free. */
const STIPEND = 2_300n;

interface Frame {
  type: string;
  from: string;
  to?: string;
  gas: string;
  gasUsed: string;
  input: string;
  output?: string;
  error?: string;
  revertReason?: string;
  value?: string;
  calls?: Frame[];
  logs?: LogFrame[];
}

interface LogFrame {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  /** The number of earlier calls in the frame. */
  readonly position: string;
  /** The log's position in the whole transaction. */
  index: string;
}

/** A message that has not ended, with its frame. */
interface Open {
  readonly frame: Frame;
  readonly isStatic: boolean;
  /** A call or creation whose operation has begun but whose message has not. */
  begun?: Frame | undefined;
}

/** Returns a tracer for the calls of a transaction. Its result has the format of geth's `callTracer`. */
export function callTracer({ withLog, onlyTopCall }: Readonly<Record<string, unknown>>): ResultTracer {
  const open: Open[] = [];
  let top: Frame | undefined;
  let count = 0;
  let bytes = 0;

  /**
   * Encodes data as hex.
   *
   * @throws RpcError if the trace contains too much data.
   */
  function hex(data: Uint8Array): string {
    bytes += data.length;
    if (bytes > MAX_BYTES) {
      throw new RpcError(LIMIT_EXCEEDED, `the inputs and outputs of the trace exceed ${MAX_BYTES} bytes`);
    }
    return bytesTo0xHex(data);
  }

  function add(parent: Frame, frame: Frame): void {
    if (onlyTopCall === true) return;
    count += 1;
    if (count > MAX_FRAMES) return;
    parent.calls ??= [];
    parent.calls.push(frame);
  }

  /** Ends a call for which no message was started, because the balance was too low or too many messages were open. */
  function endBegun(parent: Open): void {
    if (parent.begun === undefined) return;
    const error = open.length > MAX_DEPTH ? 'max call depth exceeded' : 'insufficient balance for transfer';
    const { to, ...frame } = parent.begun;
    add(parent.frame, { ...(frame.type.startsWith('CREATE') ? frame : { ...frame, to: to! }), error });
    delete parent.begun;
  }

  return {
    tracer: {
      enter(message) {
        const parent = open.at(-1);
        const frame = frameOf(message, parent?.begun?.type, hex);
        delete parent?.begun;
        open.push({ frame, isStatic: message.isStatic });
        top ??= frame;
      },
      exit(result) {
        const ended = open.pop()!;
        // If the frame itself has failed, the call whose operation has begun never took place.
        if (result.execResult.exceptionError === undefined) endBegun(ended);
        end(ended.frame, result, hex);
        const parent = open.at(-1);
        if (parent !== undefined) add(parent.frame, ended.frame);
      },
      step(step) {
        const running = open.at(-1)!;
        endBegun(running);
        const { name } = step.opcode;
        if (/^(CALL|CALLCODE|DELEGATECALL|STATICCALL|CREATE2?)$/.test(name))
          running.begun = begunBy(step, hex);
        else if (name === 'SELFDESTRUCT') {
          const frame = destructionBy(step);
          if (frame !== undefined && !running.isStatic) add(running.frame, frame);
        } else if (withLog === true && /^LOG\d$/.test(name) && !running.isStatic && canPay(step)) {
          count += 1;
          if (count > MAX_FRAMES) return;
          const { frame } = running;
          const position = quantity(frame.calls?.length ?? 0);
          frame.logs ??= [];
          frame.logs.push({
            address: textOf(step.address),
            ...logOf(step, hex),
            ...{ position, index: quantity(count) },
          });
        }
      },
    },
    resultOf({ gasLimit, gasUsed, isReverted }) {
      if (top === undefined) return { error: isReverted ? 'execution reverted' : undefined };
      numberLogs(top);
      return { ...top, gas: quantity(gasLimit), gasUsed: quantity(gasUsed) };
    },
  };
}

type ToHex = (data: Uint8Array) => string;

function frameOf(message: Message, opcode: string | undefined, hex: ToHex): Frame {
  const type =
    message.depth > 0 && opcode !== undefined ? opcode : message.to === undefined ? 'CREATE' : 'CALL';
  const isInPlace = type === 'DELEGATECALL' || type === 'CALLCODE';
  const from = isInPlace ? message.to! : message.caller;
  const to = isInPlace ? message.codeAddress : message.to;
  return {
    ...{ type, from: textOf(from), ...(to === undefined ? {} : { to: textOf(to) }) },
    ...{ gas: quantity(message.gasLimit), gasUsed: '0x0', input: hex(message.data) },
    ...(type === 'STATICCALL' ? {} : { value: quantity(message.value) }),
  };
}

function end(frame: Frame, { execResult, createdAddress }: EVMResult, hex: ToHex): void {
  frame.gasUsed = quantity(execResult.executionGasUsed);
  const output = hex(execResult.returnValue);
  const error = faultOf(execResult);
  if (error === undefined) {
    if (output !== '0x') frame.output = output;
    if (createdAddress !== undefined) frame.to = textOf(createdAddress);
    return;
  }
  frame.error = error;
  dropLogs(frame);
  if (error !== 'execution reverted' || output === '0x') return;
  frame.output = output;
  const reason = standardReasonOf(output.slice(2));
  if (reason !== undefined && reason !== '') frame.revertReason = reason;
}

/** Returns the operands of an operation, in order. */
function operandsOf({ stack }: InterpreterStep): bigint[] {
  return stack.slice(-7).reverse();
}

function canPay({ gasLeft, opcode }: InterpreterStep): boolean {
  return gasLeft >= (opcode.dynamicFee ?? BigInt(opcode.fee));
}

function memoryOf({ memory }: InterpreterStep, offset: bigint, length: bigint): Uint8Array {
  // The operation will fail, because there is not enough gas for so much memory.
  if (length > MAX_MEMORY) return new Uint8Array();
  const data = new Uint8Array(Number(length));
  if (length > 0n && offset < BigInt(memory.length)) {
    data.set(memory.subarray(Number(offset), Number(offset) + Number(length)));
  }
  return data;
}

/**
 * Returns the frame of a call or creation that ends before its message starts, or undefined if there is not enough
 * gas for its operands.
 */
function begunBy(step: InterpreterStep, hex: ToHex): Frame | undefined {
  if (!canPay(step)) return undefined;
  const { opcode, gasLeft, address } = step;
  const { name: type } = opcode;
  const [first = 0n, second = 0n, third = 0n, ...others] = operandsOf(step);
  const left = gasLeft - (opcode.dynamicFee ?? BigInt(opcode.fee));
  const most = left - left / 64n;
  const from = textOf(address);
  if (type.startsWith('CREATE')) {
    const input = hex(memoryOf(step, second, third));
    return { type, from, gas: quantity(most), gasUsed: '0x0', input, value: quantity(first) };
  }
  const [offset = 0n, length = 0n] = type === 'CALL' || type === 'CALLCODE' ? others : [third, ...others];
  const gas = (first < most ? first : most) + (third > 0n ? STIPEND : 0n);
  return {
    ...{ type, from, to: `0x${BigInt.asUintN(160, second).toString(16).padStart(40, '0')}` },
    ...{ gas: quantity(gas), gasUsed: '0x0', input: hex(memoryOf(step, offset, length)) },
    ...(type === 'CALL' || type === 'CALLCODE' ? { value: quantity(third) } : {}),
  };
}

/**
 * Returns the destruction of a contract as a call without gas, as geth shows it. Returns undefined if the operation
 * fails.
 */
function destructionBy(step: InterpreterStep): Frame | undefined {
  const [beneficiary] = operandsOf(step);
  if (beneficiary === undefined || !canPay(step)) return undefined;
  return {
    ...{ type: 'SELFDESTRUCT', from: textOf(step.address), gas: '0x0', gasUsed: '0x0', input: '0x' },
    to: `0x${BigInt.asUintN(160, beneficiary).toString(16).padStart(40, '0')}`,
    value: quantity(step.account.balance),
  };
}

/** Numbers the logs from 0 in the order in which they were emitted, without those of reverted calls. */
function numberLogs(top: Frame): void {
  const all = (frame: Frame): LogFrame[] => [...(frame.logs ?? []), ...(frame.calls ?? []).flatMap(all)];
  const logs = all(top).sort((one, other) => Number(one.index) - Number(other.index));
  for (const [at, log] of logs.entries()) log.index = quantity(at);
}

function dropLogs(frame: Frame): void {
  delete frame.logs;
  for (const call of frame.calls ?? []) dropLogs(call);
}

function logOf(step: InterpreterStep, hex: ToHex): { topics: string[]; data: string } {
  const [offset = 0n, length = 0n, ...topics] = operandsOf(step);
  const count = Number(step.opcode.name.slice(3));
  const words = topics.slice(0, count).map((topic) => `0x${topic.toString(16).padStart(64, '0')}`);
  return { topics: words, data: hex(memoryOf(step, offset, length)) };
}
