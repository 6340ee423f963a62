import type { ExecResult } from '@ethereumjs/evm';
import { bytesToHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { OPERATION_LANE } from '../machine.ts';
import type { EvmState } from '../state.ts';

/*
 * The entry point returns the next nonce, which clients read before they build a user operation. It does not run
 * operations itself, because the simulated bundler executes them.
 */

// Source: account-abstraction v0.8, INonceManager.sol: getNonce(address,uint192).
const GET_NONCE = '35567e1a';
const WORD_DIGITS = 64;
const GAS = 2_100n;

/** Runs a call of the entry point. It accepts every call, and returns nothing for calls other than `getNonce`. */
export function callEntryPoint({ accounts }: EvmState, data: Uint8Array): ExecResult {
  const text = bytesToHex(data);
  const isAsked = text.startsWith(GET_NONCE) && text.length >= GET_NONCE.length + 2 * WORD_DIGITS;
  if (!isAsked) return { executionGasUsed: 0n, returnValue: new Uint8Array() };
  const [sender, key] = [0, 1].map((at) => {
    const start = GET_NONCE.length + at * WORD_DIGITS;
    return text.slice(start, start + WORD_DIGITS);
  }) as [string, string];
  const nonceKey = BigInt(`0x${key}`).toString(16);
  const sequence = accounts.nonce(`0x${sender.slice(24)}`, `${OPERATION_LANE}${nonceKey}`);
  const nonce = (BigInt(`0x${key}`) << 64n) | BigInt(sequence);
  return {
    executionGasUsed: GAS,
    returnValue: hexToBytes(BigInt.asUintN(256, nonce).toString(16).padStart(WORD_DIGITS, '0')),
  };
}
