import type { EVMResult, InterpreterStep, Message } from '@ethereumjs/evm';
import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import { invalid, isRecord } from '../../rpc-calls.ts';
import { reasonOf, type Tracer } from '../interpreter.ts';
import type { Overlay } from '../overlay.ts';
import { textOf } from '../state-manager.ts';
import { quantity } from './views.ts';

// The tracers of `debug_traceTransaction` and `debug_traceCall`. Their results have the format of geth.

/** CHOICE: a trace of steps has at most 10,000 steps, and 1 MB of memory and stack in total. */
const MOST_STEPS = 10_000;
const MOST_STEP_BYTES = 1_048_576;
/** CHOICE: a trace of calls has at most 10,000 calls and logs. */
const MOST_FRAMES = 10_000;
const WORD_BYTES = 32;

/** The gas and the result of the whole call or transaction. */
interface Traced {
  readonly overlay: Overlay;
  readonly gasUsed: bigint;
  readonly isReverted: boolean;
}

/** A tracer with its result. */
export interface ResultTracer {
  readonly tracer: Tracer;
  resultOf(traced: Traced): unknown;
}

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
  /** The number of calls that the frame had made before. */
  readonly position: string;
  /** The position of the log in the whole transaction. */
  index: string;
}

/**
 * Reads the options of a trace.
 *
 * @throws RpcError
 */
export function tracerOf(options: unknown): ResultTracer {
  const { tracer: name, tracerConfig } = isRecord(options) ? options : {};
  const config = isRecord(tracerConfig) ? tracerConfig : {};
  if (name === undefined) return stepTracer(isRecord(options) ? options : {});
  if (name === 'callTracer') return callTracer(config);
  if (name === 'prestateTracer') return prestateTracer(config);
  if (name === 'noopTracer') return { tracer: {}, resultOf: () => ({}) };
  throw invalid(`expected \`callTracer\`, \`prestateTracer\` or no tracer, got \`${String(name)}\``);
}

// As on anvil, a trace contains a reason only for `Error(string)`.
const noAbis = { error: () => undefined };

function callTracer({ withLog, onlyTopCall }: Readonly<Record<string, unknown>>): ResultTracer {
  const open: Frame[] = [];
  let top: Frame | undefined;
  let count = 0;
  /** The operation that creates the next message. */
  let last: { readonly name: string; readonly depth: number } | undefined;
  const begin = (message: Message): Frame => {
    const isOp = last !== undefined && message.depth > 0 && last.depth === message.depth - 1;
    const type = message.to === undefined ? 'CREATE' : 'CALL';
    const name =
      isOp && /^(CALL|STATICCALL|DELEGATECALL|CALLCODE|CREATE2?)$/.test(last!.name) ? last!.name : type;
    const isInPlace = name === 'DELEGATECALL' || name === 'CALLCODE';
    const from = isInPlace ? message.to! : message.caller;
    const to = isInPlace ? message.codeAddress : message.to;
    return {
      ...{ type: name, from: textOf(from), ...(to === undefined ? {} : { to: textOf(to) }) },
      ...{ gas: quantity(message.gasLimit), gasUsed: '0x0', input: bytesTo0xHex(message.data) },
      ...(name === 'STATICCALL' ? {} : { value: quantity(message.value) }),
    };
  };
  const end = (frame: Frame, { execResult, createdAddress }: EVMResult): void => {
    const { exceptionError, returnValue, executionGasUsed } = execResult;
    frame.gasUsed = quantity(executionGasUsed);
    const output = bytesTo0xHex(returnValue);
    if (output !== '0x') frame.output = output;
    if (exceptionError === undefined) {
      if (createdAddress !== undefined) frame.to = textOf(createdAddress);
      return;
    }
    const isRevert = exceptionError.error === 'revert';
    frame.error = isRevert ? 'execution reverted' : exceptionError.error;
    if (isRevert && output.startsWith('0x08c379a0')) {
      frame.revertReason = reasonOf(output.slice(2), noAbis).replace('execution reverted: ', '');
    }
    dropLogs(frame);
  };
  return {
    tracer: {
      enter(message) {
        const frame = begin(message);
        open.push(frame);
        top ??= frame;
      },
      exit(result) {
        const frame = open.pop()!;
        end(frame, result);
        const parent = open.at(-1);
        if (parent === undefined || onlyTopCall === true) return;
        count += 1;
        if (count > MOST_FRAMES) return;
        parent.calls = [...(parent.calls ?? []), frame];
      },
      step(step) {
        last = { name: step.opcode.name, depth: step.depth };
        const frame = open.at(-1);
        if (withLog !== true || frame === undefined || !/^LOG\d$/.test(step.opcode.name)) return;
        count += 1;
        if (count > MOST_FRAMES) return;
        const position = quantity(frame.calls?.length ?? 0);
        const log = { address: textOf(step.address), ...logOf(step), position, index: quantity(count) };
        frame.logs = [...(frame.logs ?? []), log];
      },
    },
    resultOf({ gasUsed, isReverted }) {
      if (top === undefined) return { error: isReverted ? 'execution reverted' : undefined };
      numberLogs(top);
      return { ...top, gasUsed: quantity(gasUsed) };
    },
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

function logOf({ stack, memory, opcode }: InterpreterStep): { topics: string[]; data: string } {
  const [offset = 0n, length = 0n, ...topics] = [...stack].reverse();
  const count = Number(opcode.name.slice(3));
  const data = new Uint8Array(Number(length));
  data.set(memory.subarray(Number(offset), Number(offset) + Number(length)));
  return { topics: topics.slice(0, count).map(wordText), data: bytesTo0xHex(data) };
}

function wordText(value: bigint): string {
  return `0x${value.toString(16).padStart(2 * WORD_BYTES, '0')}`;
}

interface Account {
  balance?: string;
  nonce?: number;
  code?: string;
  storage?: Record<string, string>;
}

function prestateTracer({ diffMode }: Readonly<Record<string, unknown>>): ResultTracer {
  return {
    tracer: {},
    resultOf({ overlay }) {
      const all: Record<string, Account> = {};
      const [pre, post]: Record<string, Account>[] = [{}, {}];
      for (const [key, { original, value }] of overlay.cells()) {
        note(all, key, original);
        if (diffMode !== true) continue;
        const [before, after]: Record<string, Account>[] = [{}, {}];
        note(before!, key, original);
        note(after!, key, value);
        if (JSON.stringify(before) === JSON.stringify(after)) continue;
        note(pre!, key, original);
        note(post!, key, value);
      }
      return diffMode === true ? { pre, post } : all;
    },
  };
}

/** Adds the facts in a cell of an overlay to its account. `makeOverlay` defines the keys of cells. */
function note(accounts: Record<string, Account>, key: string, value: unknown): void {
  const [kind = '', address = '', second = ''] = key.split(' ');
  if (!/^0x[0-9a-f]{40}$/.test(address)) return;
  const account = (): Account => {
    accounts[address] ??= {};
    return accounts[address];
  };
  if (kind === 'balance') account().balance = quantity(value as bigint);
  else if (kind === 'nonce' && second === '' && (value as number) > 0) account().nonce = value as number;
  else if (kind === 'code' && (value as Uint8Array).length > 0)
    account().code = bytesTo0xHex(value as Uint8Array);
  else if (kind === 'delegate' && value !== undefined) account().code = `0xef0100${String(value).slice(2)}`;
  else if (kind === 'word')
    account().storage = { ...account().storage, [`0x${second}`]: `0x${String(value)}` };
}

interface StepView {
  readonly pc: number;
  readonly op: string;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  readonly stack?: string[];
  readonly memory?: string[];
}

function stepTracer(options: Readonly<Record<string, unknown>>): ResultTracer {
  const { enableMemory, disableStack, limit } = options;
  const most = typeof limit === 'number' && limit > 0 ? Math.min(limit, MOST_STEPS) : MOST_STEPS;
  const structLogs: StepView[] = [];
  let bytes = 0;
  let returned = '';
  return {
    tracer: {
      step({ pc, opcode, gasLeft, depth, stack, memory }) {
        if (structLogs.length >= most || bytes > MOST_STEP_BYTES) return;
        const hasStack = disableStack !== true;
        const hasMemory = enableMemory === true;
        bytes += (hasStack ? stack.length * WORD_BYTES : 0) + (hasMemory ? memory.length : 0);
        structLogs.push({
          ...{ pc, op: opcode.name, gas: Number(gasLeft) },
          ...{ gasCost: Number(opcode.dynamicFee ?? opcode.fee), depth: depth + 1 },
          ...(hasStack ? { stack: stack.map((word) => quantity(word)) } : {}),
          ...(hasMemory ? { memory: wordsOf(memory) } : {}),
        });
      },
      exit: ({ execResult }) => {
        returned = bytesTo0xHex(execResult.returnValue);
      },
    },
    resultOf: ({ gasUsed, isReverted }) => ({
      ...{ gas: Number(gasUsed), failed: isReverted, returnValue: returned, structLogs },
    }),
  };
}

function wordsOf(memory: Uint8Array): string[] {
  const words: string[] = [];
  for (let at = 0; at < memory.length; at += WORD_BYTES) {
    words.push(bytesTo0xHex(memory.subarray(at, at + WORD_BYTES)).slice(2));
  }
  return words;
}
