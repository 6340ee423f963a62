import { EVMError, type ExecResult } from '@ethereumjs/evm';
import * as AbiParameters from 'ox/AbiParameters';
import { bytesToHex } from '../../../../engine/crypto/encoding.ts';
import { RevertError } from '../ledger.ts';
import type { Abis } from './abis.ts';

// Describes why an execution failed, in the words of geth (core/vm/errors.go, accounts/abi/abi.go).

const errorInputs = AbiParameters.from('string');
const panicInputs = AbiParameters.from('uint256');
const ERROR_SELECTOR = '08c379a0';
const PANIC_SELECTOR = '4e487b71';
const REVERTED = 'execution reverted';
const INVALID = 0xfe;
const MAX_STACK = 1_024;
/** The maximum number of hex digits of an unknown error's data in a message. */
const SHOWN_DATA = 264;

const { errorMessages: errors } = EVMError;
const faults: Readonly<Record<string, string>> = {
  [errors.REVERT]: REVERTED,
  [errors.CODESTORE_OUT_OF_GAS]: 'contract creation code storage out of gas',
  [errors.CODESIZE_EXCEEDS_MAXIMUM]: 'max code size exceeded',
  [errors.INITCODE_SIZE_VIOLATION]: 'max initcode size exceeded',
  [errors.CREATE_COLLISION]: 'contract address collision',
  [errors.INSUFFICIENT_BALANCE]: 'insufficient balance for transfer',
  [errors.INVALID_JUMP]: 'invalid jump destination',
  [errors.STATIC_STATE_CHANGE]: 'write protection',
  [errors.OUT_OF_RANGE]: 'return data out of bounds',
  [errors.INVALID_BYTECODE_RESULT]: 'invalid code: must not begin with 0xef',
  [errors.STACK_OVERFLOW]: `stack limit reached ${MAX_STACK} (${MAX_STACK - 1})`,
};

const panics: Readonly<Record<number, string>> = {
  0: 'generic panic',
  1: 'assert(false)',
  17: 'arithmetic underflow or overflow',
  18: 'division or modulo by zero',
  33: 'enum overflow',
  34: 'invalid encoded storage byte array accessed',
  49: 'out-of-bounds array access; popping on an empty array',
  50: 'out-of-bounds access of an array or bytesN',
  65: 'out of memory',
  81: 'uninitialized function',
};

/** Returns the reason why a call or creation failed, or undefined if it succeeded. */
export function faultOf({ exceptionError, runState, returnValue }: ExecResult): string | undefined {
  if (exceptionError === undefined) return undefined;
  const { error } = exceptionError;
  // Bytecode has a `runState`, and the entry point reverts with data unless its calldata is malformed. So this is a
  // precompiled contract that has rejected its input.
  if (error === errors.REVERT && runState === undefined && returnValue.length === 0)
    return 'precompiled contract failed';
  // The error for an invalid JUMP contains details after its name.
  if (error.startsWith(errors.INVALID_JUMP)) return faults[errors.INVALID_JUMP];
  if (error === errors.INVALID_OPCODE) return `invalid opcode: ${invalidName(runState)}`;
  if (error === errors.STACK_UNDERFLOW) {
    return `stack underflow (${runState?.stack.length ?? 0} <=> ${operandCount(runState?.opCode ?? INVALID)})`;
  }
  return faults[error] ?? error;
}

/**
 * Returns the name of the invalid opcode that ended the execution.
 *
 * NOTE: after a jump, the machine reports every undefined opcode as INVALID.
 */
export function invalidName(
  state: Pick<NonNullable<ExecResult['runState']>, 'code' | 'programCounter'> | undefined,
): string {
  const code = state?.code[state.programCounter] ?? INVALID;
  return code === INVALID ? 'INVALID' : `opcode 0x${code.toString(16)} not defined`;
}

/** Opcodes by their number of operands. Source: Ethereum yellow paper, appendix H. */
const operandsOfOperations: Readonly<Record<number, readonly number[]>> = {
  // ISZERO, NOT, CLZ, BALANCE, CALLDATALOAD, EXTCODESIZE, EXTCODEHASH, BLOCKHASH, BLOBHASH, POP, MLOAD, SLOAD, JUMP,
  // TLOAD, SELFDESTRUCT
  1: [0x15, 0x19, 0x1e, 0x31, 0x35, 0x3b, 0x3f, 0x40, 0x49, 0x50, 0x51, 0x54, 0x56, 0x5c, 0xff],
  // Arithmetic, comparisons, KECCAK256, MSTORE, MSTORE8, SSTORE, JUMPI, TSTORE, RETURN, REVERT
  2: [
    ...[0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x18],
    ...[0x1a, 0x1b, 0x1c, 0x1d, 0x20, 0x52, 0x53, 0x55, 0x57, 0x5d, 0xf3, 0xfd],
  ],
  // ADDMOD, MULMOD, CALLDATACOPY, CODECOPY, RETURNDATACOPY, MCOPY, CREATE
  3: [0x08, 0x09, 0x37, 0x39, 0x3e, 0x5e, 0xf0],
  // EXTCODECOPY, CREATE2
  4: [0x3c, 0xf5],
  // DELEGATECALL, STATICCALL
  6: [0xf4, 0xfa],
  // CALL, CALLCODE
  7: [0xf1, 0xf2],
};

function operandCount(opCode: number): number {
  if (opCode >= 0x80 && opCode <= 0x8f) return opCode - 0x7f;
  if (opCode >= 0x90 && opCode <= 0x9f) return opCode - 0x8e;
  if (opCode >= 0xa0 && opCode <= 0xa4) return opCode - 0x9e;
  const found = Object.entries(operandsOfOperations).find(([, all]) => all.includes(opCode));
  return Number(found?.[0] ?? 0);
}

/** Returns the reason why the outermost call failed, or undefined if it succeeded. */
export function revertOf(result: ExecResult, abis: Pick<Abis, 'error'>): RevertError | undefined {
  const fault = faultOf(result);
  if (fault === undefined) return undefined;
  const isShortfall = result.exceptionError!.error === errors.INSUFFICIENT_BALANCE;
  if (isShortfall) return new RevertError('insufficient funds for transfer', true);
  return new RevertError(fault === REVERTED ? reasonOf(bytesToHex(result.returnValue), abis) : fault);
}

/** Returns the message for the revert data of a smart contract, which is in hex digits. */
function reasonOf(data: string, abis: Pick<Abis, 'error'>): string {
  if (data === '') return REVERTED;
  const standard = standardReasonOf(data);
  if (standard !== undefined) return `${REVERTED}: ${standard}`;
  const known = abis.error(`0x${data}`);
  if (known === undefined) return `${REVERTED}: custom error 0x${data.slice(0, SHOWN_DATA)}`;
  return `${REVERTED}: ${known.name}(${known.arguments.map(({ value }) => value).join(', ')})`;
}

/** Returns the message of an `Error(string)` or `Panic(uint256)`, or undefined for other data. */
export function standardReasonOf(data: string): string | undefined {
  const parameters = `0x${data.slice(8)}` as const;
  try {
    if (data.startsWith(ERROR_SELECTOR)) return AbiParameters.decode(errorInputs, parameters)[0];
    if (!data.startsWith(PANIC_SELECTOR)) return undefined;
    const code = AbiParameters.decode(panicInputs, parameters)[0];
    return panics[Number(code)] ?? `unknown panic code: 0x${code.toString(16)}`;
  } catch {
    // The contract has encoded the error incorrectly.
    return undefined;
  }
}
