import * as AbiParameters from 'ox/AbiParameters';
import type { BroadcastRefusal } from '../../ports/chains.ts';
import { cutText, type NodeError } from './endpoint.ts';

// Nodes return no error codes for these; they are recognized by geth's message texts, which other nodes adopted.
const messageTexts: readonly { readonly reason: BroadcastRefusal; readonly text: RegExp }[] = [
  { reason: 'stale', text: /nonce (is )?too low|old ?nonce/i },
  {
    reason: 'insufficient_funds',
    text: /insufficient funds|insufficient ?balance|insufficient_?funds|exceeds account balance|doesn't have enough funds|lack of funds/i,
  },
  {
    reason: 'underpriced',
    text: /underpriced|fee ?too ?low|less than (the )?(block )?base fee|gas price (is )?(too low|below)|fee cap less than|tip too low/i,
  },
  { reason: 'reverts', text: /execution reverted|revert|out of gas|invalid opcode|gas required exceeds/i },
];

/** Whether the node already has the transaction, which counts as a successful broadcast. */
export function isAlreadyKnown({ message }: NodeError): boolean {
  return /already known|already imported|known transaction|already in (the )?mempool|alreadyknown/i.test(
    message,
  );
}

/** Maps a node's error to the port's refusal reasons; `invalid` for any other error. */
export function classifyRefusal(error: NodeError): { reason: BroadcastRefusal; message: string } {
  const revert = revertReason(error);
  if (revert !== undefined) return { reason: 'reverts', message: revert };
  const known = messageTexts.find(({ text }) => text.test(error.message));
  return { reason: known?.reason ?? 'invalid', message: error.message };
}

/** Why a call reverted, including the contract's revert reason if any; undefined when it did not revert. */
export function revertReason({ code, message, data }: NodeError): string | undefined {
  if (code !== 3 && !saysReverted(message.toLowerCase())) return undefined;
  const hex = typeof data === 'string' ? data : undefined;
  // Error(string)
  if (hex?.startsWith('0x08c379a0') !== true) return message;
  try {
    const [reason] = AbiParameters.decode(AbiParameters.from('string'), `0x${hex.slice(10)}`);
    return cutText(`execution reverted: ${reason}`);
  } catch {
    return message;
  }
}

function saysReverted(message: string): boolean {
  if (message.includes('execution reverted')) return true;
  const start = message.indexOf('vm execution error');
  return start >= 0 && message.indexOf('revert', start) >= 0;
}
