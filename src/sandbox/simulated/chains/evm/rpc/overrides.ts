import { NATIVE } from '../../ledger.ts';
import { invalid, isRecord } from '../../rpc-calls.ts';
import type { Overlay } from '../overlay.ts';
import { addressOf, bytesOf, numberOf } from './calls.ts';

/** Changes the state of an overlay for a single call. Source: geth, state overrides of eth_call. */
export function override({ state }: Overlay, overrides: unknown): void {
  if (!isRecord(overrides)) throw invalid('invalid argument: expected overrides by address');
  for (const [text, changes] of Object.entries(overrides)) {
    const address = addressOf(text);
    if (!isRecord(changes)) throw invalid('invalid argument: expected overrides of an account');
    const { balance, nonce, code, stateDiff, state: whole } = changes;
    if (whole !== undefined) throw invalid('`state` is not supported: use `stateDiff`');
    if (balance !== undefined) state.ledger.setBalance(address, NATIVE, numberOf(balance, 'balance'));
    if (nonce !== undefined) state.accounts.setNonce(address, '', Number(numberOf(nonce, 'nonce')));
    if (code !== undefined) state.bytecode.setCode(address, bytesOf(code));
    for (const [slot, word] of Object.entries(isRecord(stateDiff) ? stateDiff : {})) {
      const [key, content] = [numberOf(slot, 'slot'), numberOf(word, 'word')].map((each) =>
        each.toString(16).padStart(64, '0'),
      ) as [string, string];
      state.bytecode.setWord(address, key, content);
    }
  }
}
