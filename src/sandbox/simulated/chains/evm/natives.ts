import { hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { BATCH_EXECUTOR_ADDRESS, decodeBatch } from '../../../../engine/signing/ethereum/batch-executor.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../engine/signing/ethereum/simple-account.ts';
import { decodeTokenCall, type TokenCall } from '../../../../engine/signing/ethereum/token-calls.ts';
import { RevertError } from '../ledger.ts';
import { PAYMASTER_ADDRESS } from '../sponsors.ts';
import { applyTokenCall } from '../token-effects.ts';
import { knownToken } from '../world.ts';
import { effectsOf, type Frame } from './frame.ts';
import { isWrappedNative, programAt } from './programs/find-program.ts';
import type { Program } from './programs/program.ts';
import type { EvmState } from './state.ts';
import { answerTokenQuery } from './token-queries.ts';

// Contracts that run without bytecode. To bytecode they look like other contracts.

/** A call of a contract that has no bytecode. Addresses are lower-case 0x hex. `value` has already moved. */
interface NativeCall {
  /** The account whose code runs. */
  readonly self: string;
  readonly from: string;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly isStatic: boolean;
  /** Calls another account from `self`. Throws RevertError. */
  call(to: string, value: bigint, data: Uint8Array): Promise<void>;
}

/** Returns the return data. Throws RevertError. */
export type Native = (frame: Frame, call: NativeCall) => Uint8Array | Promise<Uint8Array>;

/** What EXTCODECOPY finds at a contract without bytecode: INVALID. */
const NATIVE_CODE = Uint8Array.of(0xfe);

const NOTHING = new Uint8Array();
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

// CHOICE: gas per token call, close to that of common token contracts.
const TOKEN_GAS: Readonly<Record<TokenCall['name'], bigint>> = {
  transfer: 30_000n,
  approve: 25_000n,
  transferFrom: 38_000n,
};
const BATCHED_CALL_GAS = 3_000n;
const BATCHED_VALUE_GAS = 9_000n;

/** Contracts on every chain that accept calls and do nothing by themselves. */
const passive: ReadonlySet<string> = new Set([
  BATCH_EXECUTOR_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
  ENTRY_POINT_ADDRESS,
  PAYMASTER_ADDRESS,
]);

/** The token at an address; undefined for other addresses. */
export function tokenAt(state: EvmState, address: string): { decimals: number; symbol: string } | undefined {
  const { world, caip2, accounts } = state;
  const token = accounts.token(address) ?? knownToken(world, caip2, address);
  if (token !== undefined || !isWrappedNative(state, address)) return token;
  return { decimals: 18, symbol: `W${world.nativeSymbol(caip2).toUpperCase()}` };
}

/** Whether a contract without bytecode is at an address. */
function isNative(state: EvmState, address: string): boolean {
  return (
    passive.has(address) || tokenAt(state, address) !== undefined || programAt(state, address) !== undefined
  );
}

/** What runs at an address, unless it is bytecode or nothing. */
export function nativeAt(state: EvmState, address: string): Native | undefined {
  const delegate = state.accounts.delegate(address);
  if (delegate === BATCH_EXECUTOR_ADDRESS) return runBatch;
  if (delegate === SIMPLE_ACCOUNT_ADDRESS) return accept;
  if (delegate !== undefined || state.bytecode.code(address).length > 0) return undefined;
  const program = programAt(state, address);
  if (program !== undefined) return (frame, call) => runProgram(program, frame, call);
  if (passive.has(address)) return accept;
  return tokenAt(state, address) === undefined ? undefined : runToken;
}

function accept(): Uint8Array {
  return NOTHING;
}

function runProgram(program: Program, frame: Frame, call: NativeCall): Uint8Array {
  const answer = program.read(frame, call.data) ?? tokenQuery(frame, call);
  if (answer !== undefined) return answer;
  if (call.isStatic) throw new RevertError('execution reverted');
  return program.run(frame, call) ?? NOTHING;
}

function runToken(frame: Frame, call: NativeCall): Uint8Array {
  const answer = tokenQuery(frame, call);
  const token = decodeTokenCall(call.data);
  if (answer !== undefined || token === undefined) return answer ?? NOTHING;
  if (call.isStatic) throw new RevertError('execution reverted');
  frame.gas += TOKEN_GAS[token.name];
  return applyTokenCall(effectsOf(frame), { from: call.from, token: call.self, value: call.value }, token);
}

function tokenQuery({ state }: Frame, { self, data }: NativeCall): Uint8Array | undefined {
  const answer = answerTokenQuery({ token: tokenAt(state, self), to: self, data, state });
  return answer.length === 0 ? undefined : answer;
}

async function runBatch(frame: Frame, { self, from, data, call }: NativeCall): Promise<Uint8Array> {
  if (data.length === 0) return NOTHING;
  const calls = decodeBatch(data);
  if (calls === undefined) throw new RevertError('execution reverted: unsupported execution mode');
  if (from !== self) throw new RevertError('execution reverted: unauthorized');
  for (const { to, value, data: inner } of calls) {
    frame.gas += BATCHED_CALL_GAS + (value > 0n ? BATCHED_VALUE_GAS : 0n);
    await call(to === NO_ADDRESS ? self : to.toLowerCase(), value, inner);
  }
  return NOTHING;
}

/** The code at an address: empty for a plain account, `ef0100` || contract for a delegated one (EIP-7702). */
export function codeAt(state: EvmState, address: string): Uint8Array {
  const delegate = state.accounts.delegate(address);
  if (delegate !== undefined) return hexToBytes(`ef0100${delegate.slice(2)}`);
  const code = state.bytecode.code(address);
  return code.length === 0 && isNative(state, address) ? NATIVE_CODE : code;
}
