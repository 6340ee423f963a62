import type { InterpreterStep } from '@ethereumjs/evm';
import { bytesTo0xHex } from '../../../../../engine/crypto/encoding.ts';
import { invalid, isRecord } from '../../rpc-calls.ts';
import { invalidName } from '../execution-faults.ts';
import type { Tracer } from '../interpreter.ts';
import type { Overlay } from '../overlay.ts';
import { textOf } from '../state-manager.ts';
import { callTracer } from './call-tracer.ts';
import { stateTracer } from './state-tracer.ts';
import { quantity } from './views.ts';

// The tracers of `debug_traceTransaction` and `debug_traceCall`. Their results have the format of geth.

/** CHOICE: a trace of steps has at most 10,000 steps, and 1 MB of memory and stack in total. */
const MAX_STEPS = 10_000;
const MAX_STEP_BYTES = 1_048_576;
const WORD_BYTES = 32;

/** The result and the gas of the traced call or transaction. */
interface Traced {
  readonly overlay: Overlay;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly isReverted: boolean;
}

export interface ResultTracer {
  readonly tracer: Tracer;
  resultOf(traced: Traced): unknown;
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
  if (name === 'prestateTracer') return stateTracer(config);
  if (name === 'noopTracer') return { tracer: {}, resultOf: () => ({}) };
  throw invalid(`expected \`callTracer\`, \`prestateTracer\` or no tracer, got \`${String(name)}\``);
}

interface StepView {
  readonly pc: number;
  op: string;
  readonly gas: number;
  readonly gasCost: number;
  readonly depth: number;
  readonly refund?: number;
  readonly stack?: string[];
  readonly memory?: string[];
  storage?: Record<string, string>;
}

/** Returns a tracer for the steps of a transaction. Its result has the format of geth's `structLogger`. */
function stepTracer(options: Readonly<Record<string, unknown>>): ResultTracer {
  const { enableMemory, disableStack, disableStorage, limit } = options;
  const most = typeof limit === 'number' && limit > 0 ? Math.min(limit, MAX_STEPS) : MAX_STEPS;
  const structLogs: StepView[] = [];
  /** The slots that were read or written so far, by contract. */
  const storages = new Map<string, Record<string, string>>();
  /** An SLOAD whose result is on the stack at the next step. */
  let reading: { readonly view: StepView; readonly contract: string; readonly slot: string } | undefined;
  let bytes = 0;
  let returned = '';

  const isFull = (): boolean => structLogs.length >= most || bytes > MAX_STEP_BYTES;

  function note({ view, contract, slot }: NonNullable<typeof reading>, word: bigint): void {
    const known = { ...storages.get(contract), [slot]: wordText(word) };
    storages.set(contract, known);
    view.storage = known;
  }

  return {
    tracer: {
      step(step) {
        if (isFull()) return;
        const { pc, opcode, gasLeft, gasRefund, depth, stack, memory, address } = step;
        const hasStack = disableStack !== true;
        const hasMemory = enableMemory === true;
        bytes += (hasStack ? stack.length * WORD_BYTES : 0) + (hasMemory ? memory.length : 0);
        if (reading !== undefined) note(reading, stack.at(-1) ?? 0n);
        reading = undefined;
        const view: StepView = {
          ...{ pc, op: opcode.name, gas: Number(gasLeft) },
          ...{ gasCost: Number(costOf(step)), depth: depth + 1 },
          ...(gasRefund === 0n ? {} : { refund: Number(gasRefund) }),
          ...(hasStack ? { stack: stack.map((word) => quantity(word)) } : {}),
          ...(hasMemory ? { memory: wordsOf(memory) } : {}),
        };
        structLogs.push(view);
        const [slot, word] = [stack.at(-1), stack.at(-2)];
        if (disableStorage === true || slot === undefined) return;
        const place = { view, contract: textOf(address), slot: wordText(slot) };
        if (opcode.name === 'SLOAD') reading = place;
        else if (opcode.name === 'SSTORE' && word !== undefined) note(place, word);
      },
      exit({ execResult: { returnValue, exceptionError, runState } }) {
        returned = bytesTo0xHex(returnValue);
        if (isFull()) return;
        reading = undefined;
        const last = structLogs.at(-1);
        // A step does not show which undefined opcode it is.
        if (last?.op === 'INVALID' && runState !== undefined) last.op = invalidName(runState);
        if (exceptionError !== undefined || runState === undefined) return;
        const { programCounter: pc, code, opCode, gasLeft, gasRefund, stack, env } = runState;
        // Code without a halting instruction at its end stops there.
        if (pc < code.length || code.length === 0 || endings.includes(opCode)) return;
        structLogs.push({
          ...{ pc, op: 'STOP', gas: Number(gasLeft), gasCost: 0, depth: env.depth + 1 },
          ...(gasRefund === 0n ? {} : { refund: Number(gasRefund) }),
          ...(disableStack === true ? {} : { stack: stack.getStack().map((word) => quantity(word)) }),
        });
      },
    },
    resultOf: ({ gasUsed, isReverted }) => ({
      ...{ gas: Number(gasUsed), failed: isReverted, returnValue: returned, structLogs },
    }),
  };
}

/** The opcodes STOP, RETURN and SELFDESTRUCT. */
const endings: readonly number[] = [0x00, 0xf3, 0xff];

/** Returns the gas cost of an operation, including the gas that a call passes on. */
function costOf({ opcode: { name, fee, dynamicFee }, gasLeft, stack }: InterpreterStep): bigint {
  const cost = dynamicFee ?? BigInt(fee);
  if (!/^(CALL|CALLCODE|DELEGATECALL|STATICCALL)$/.test(name) || gasLeft < cost) return cost;
  const left = gasLeft - cost;
  const most = left - left / 64n;
  const asked = stack.at(-1) ?? 0n;
  return cost + (asked < most ? asked : most);
}

const wordText = (value: bigint): string => `0x${value.toString(16).padStart(2 * WORD_BYTES, '0')}`;

function wordsOf(memory: Uint8Array): string[] {
  const words: string[] = [];
  for (let at = 0; at < memory.length; at += WORD_BYTES) {
    words.push(bytesTo0xHex(memory.subarray(at, at + WORD_BYTES)).slice(2));
  }
  return words;
}
