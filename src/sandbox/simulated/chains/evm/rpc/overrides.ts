import { NATIVE } from '../../ledger.ts';
import type { Block } from '../../pool.ts';
import { invalid, isRecord } from '../../rpc-calls.ts';
import type { ExecutionBlock } from '../interpreter.ts';
import { makeOverlay } from '../overlay.ts';
import { type EvmState, setCodeAt, ZERO_WORD } from '../state.ts';
import { addressOf, bytesOf, hashText, numberOf } from './calls.ts';

// The changes of state and block that a caller makes for the execution of its own call only. Source: geth,
// `StateOverride` and `BlockOverrides`.

/**
 * Returns the state with the changes of a caller. An execution treats them like changes by an earlier transaction, which
 * matters for the gas of writing a slot.
 *
 * @throws RpcError
 */
export function overriddenState(state: EvmState, overrides: unknown): EvmState {
  if (overrides == null) return state;
  if (!isRecord(overrides)) throw invalid('invalid argument: expected overrides by address');
  const emptied = new Set<string>();
  const { bytecode } = state;
  const word = (address: string, slot: string): string =>
    emptied.has(address) ? ZERO_WORD : bytecode.word(address, slot);
  const { state: changed } = makeOverlay({ ...state, bytecode: { ...bytecode, word } });
  for (const [text, changes] of Object.entries(overrides)) {
    const address = addressOf(text);
    if (!isRecord(changes)) throw invalid('invalid argument: expected overrides of an account');
    const { balance, nonce, code, stateDiff, state: whole, movePrecompileToAddress } = changes;
    if (movePrecompileToAddress != null) throw invalid('`movePrecompileToAddress` is not supported');
    if (whole != null && stateDiff != null) {
      throw invalid(`account ${address} has both 'state' and 'stateDiff'`);
    }
    if (whole != null) emptied.add(address);
    if (balance != null) changed.ledger.setBalance(address, NATIVE, numberOf(balance, 'balance'));
    if (nonce != null) changed.accounts.setNonce(address, '', safeNumberOf(nonce, 'nonce'));
    if (code != null) setCodeAt(changed, address, bytesOf(code));
    for (const [slot, content] of wordsOf(whole ?? stateDiff))
      changed.bytecode.setWord(address, slot, content);
  }
  return changed;
}

function wordsOf(words: unknown): [slot: string, word: string][] {
  if (words == null) return [];
  if (!isRecord(words)) throw invalid('invalid argument: expected words by slot');
  const digits = (value: unknown, name: string): string =>
    numberOf(value, name).toString(16).padStart(64, '0');
  return Object.entries(words).map(([slot, word]) => [digits(slot, 'slot'), digits(word, 'word')]);
}

/**
 * Returns the block with the changes of a caller.
 *
 * @throws RpcError
 */
export function overriddenBlock(block: Block, overrides: unknown): ExecutionBlock {
  if (overrides == null) return block;
  if (!isRecord(overrides)) throw invalid('invalid argument: expected overrides of a block');
  const { number, time, gasLimit, feeRecipient, prevRandao, baseFeePerGas, blobBaseFee } = overrides;
  return {
    number: number == null ? block.number : safeNumberOf(number, 'number'),
    seconds: time == null ? block.seconds : safeNumberOf(time, 'time'),
    header: {
      ...(gasLimit == null ? {} : { gasLimit: numberOf(gasLimit, 'gasLimit') }),
      ...(feeRecipient == null ? {} : { coinbase: addressOf(feeRecipient) }),
      ...(prevRandao == null ? {} : { prevRandao: hashText(prevRandao) }),
      ...(baseFeePerGas == null ? {} : { baseFee: numberOf(baseFeePerGas, 'baseFeePerGas') }),
      ...(blobBaseFee == null ? {} : { blobBaseFee: numberOf(blobBaseFee, 'blobBaseFee') }),
    },
  };
}

function safeNumberOf(value: unknown, name: string): number {
  const number = numberOf(value, name);
  if (number <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(number);
  throw invalid(`invalid argument: expected \`${name}\` below 2^53`);
}
